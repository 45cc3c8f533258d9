.method public static native nanoTime()J
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native currentTimeMillis()J
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static identityHashCode(Ljava/lang/Object;)I
    .locals 1
    if-eqz p0, :null
    invoke-static {p0}, Ljava/lang/Object;->identityHashCodeNative(Ljava/lang/Object;)I
    move-result v0
    return v0
    :null
    const/4 v0, 0x0
    return v0
.end method

.method public static gc()V
    .locals 1
    new-instance v0, Ldalvik/system/VMRuntime;
    invoke-direct {v0}, Ldalvik/system/VMRuntime;-><init>()V
    invoke-virtual {v0}, Ldalvik/system/VMRuntime;->concurrentGC()V
    return-void
.end method

.method public static arraycopy([CI[CII)V
    .locals 0
    invoke-static/range {p0 .. p4}, Ljava/lang/System;->arraycopy(Ljava/lang/Object;ILjava/lang/Object;II)V
    return-void
.end method
