.method public static valueOf(F)Ljava/lang/Float;
    .locals 1
    new-instance v0, Ljava/lang/Float;
    invoke-direct {v0}, Ljava/lang/Float;-><init>()V
    iput p0, v0, Ljava/lang/Float;->value:F
    return-object v0
.end method

.method public floatValue()F
    .locals 1
    iget v0, p0, Ljava/lang/Float;->value:F
    return v0
.end method

.method public static native floatToRawIntBits(F)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native floatToIntBits(F)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native isInfinite(F)Z
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native isNaN(F)Z
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native intBitsToFloat(I)F
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method
