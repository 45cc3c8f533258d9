.method public static valueOf(J)Ljava/lang/Long;
    .locals 1
    new-instance v0, Ljava/lang/Long;
    invoke-direct {v0}, Ljava/lang/Long;-><init>()V
    iput-wide p0, v0, Ljava/lang/Long;->value:J
    return-object v0
.end method

.method public longValue()J
    .locals 2
    iget-wide v0, p0, Ljava/lang/Long;->value:J
    return-wide v0
.end method

.method public static native reverse(J)J
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native reverseBytes(J)J
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native bitCount(J)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native compare(JJ)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native highestOneBit(J)J
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native lowestOneBit(J)J
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native numberOfLeadingZeros(J)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native numberOfTrailingZeros(J)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native rotateRight(JI)J
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native rotateLeft(JI)J
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native signum(J)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method
