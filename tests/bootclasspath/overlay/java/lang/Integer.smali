.method public static valueOf(I)Ljava/lang/Integer;
    .locals 1
    new-instance v0, Ljava/lang/Integer;
    invoke-direct {v0}, Ljava/lang/Integer;-><init>()V
    iput p0, v0, Ljava/lang/Integer;->value:I
    return-object v0
.end method

.method public intValue()I
    .locals 1
    iget v0, p0, Ljava/lang/Integer;->value:I
    return v0
.end method

.method public static native reverse(I)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native reverseBytes(I)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native bitCount(I)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native compare(II)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native highestOneBit(I)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native lowestOneBit(I)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native numberOfLeadingZeros(I)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native numberOfTrailingZeros(I)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native rotateRight(II)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native rotateLeft(II)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native signum(I)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method
