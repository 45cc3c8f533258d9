.class public Lorg/example/vm/Thrower;
.super Ljava/lang/Thread;
.source "Thrower.java"

.method public constructor <init>()V
    .locals 1
    const-string v0, "thrower"
    invoke-direct {p0, v0}, Ljava/lang/Thread;-><init>(Ljava/lang/String;)V
    return-void
.end method

.method public run()V
    .locals 1
    .line 12
    const/4 v0, 0x0
    throw v0
.end method
