.method public static valueOf(D)Ljava/lang/Double;
    .locals 1
    new-instance v0, Ljava/lang/Double;
    invoke-direct {v0}, Ljava/lang/Double;-><init>()V
    iput-wide p0, v0, Ljava/lang/Double;->value:D
    return-object v0
.end method

.method public doubleValue()D
    .locals 2
    iget-wide v0, p0, Ljava/lang/Double;->value:D
    return-wide v0
.end method

.method public static native doubleToRawLongBits(D)J
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native doubleToLongBits(D)J
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native isInfinite(D)Z
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native isNaN(D)Z
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native longBitsToDouble(J)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method
