# A class whose compiler was told to forget where it came from.
.class public Lorg/example/corpus/NoSource;
.super Ljava/lang/Object;

.method static lines()V
    .registers 0
    .line 1
    nop
    .line 2
    return-void
.end method

.method static abstractTwin()V
    .registers 0
    return-void
.end method
