.class public Ljava/lang/IllegalThreadStateException;
.super Ljava/lang/IllegalArgumentException;

.method public constructor <init>()V
    .locals 0
    invoke-direct {p0}, Ljava/lang/IllegalArgumentException;-><init>()V
    return-void
.end method
