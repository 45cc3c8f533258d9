.method public static valueOf(S)Ljava/lang/Short;
    .locals 1
    new-instance v0, Ljava/lang/Short;
    invoke-direct {v0}, Ljava/lang/Short;-><init>()V
    iput-short p0, v0, Ljava/lang/Short;->value:S
    return-object v0
.end method

.method public shortValue()S
    .locals 1
    iget-short v0, p0, Ljava/lang/Short;->value:S
    return v0
.end method

.method public static native reverseBytes(S)S
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method
