# An inner class's anonymous class.
.class final Lorg/example/odd/Names$Inner$1;
.super Ljava/lang/Object;
.source "Names.java"

.method static a()I
    .registers 1
    .line 40
    const/16 v0, 0x80
    return v0
.end method
