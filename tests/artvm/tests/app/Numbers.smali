.class public Lorg/example/vm/Numbers;
.super Ljava/lang/Object;
.source "Numbers.java"

# The natives of java.lang's numbers, each called once: the results (doubles as bits) folded as sum * 31 + result.

.method private static fold(JJ)J
    .locals 2
    const-wide/16 v0, 0x1f
    mul-long/2addr v0, p0
    add-long/2addr v0, p2
    return-wide v0
.end method

.method public static bits(I)J
    .locals 6
    const-wide/16 v0, 0x0
    const v2, 0x12345678
    invoke-static {v2}, Ljava/lang/Integer;->reverse(I)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const v2, 0x12345678
    invoke-static {v2}, Ljava/lang/Integer;->reverseBytes(I)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const v2, -0x1
    invoke-static {v2}, Ljava/lang/Integer;->bitCount(I)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const v2, -0x5
    const v3, 0x7
    invoke-static {v2, v3}, Ljava/lang/Integer;->compare(II)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const v2, 0x345678
    invoke-static {v2}, Ljava/lang/Integer;->highestOneBit(I)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const v2, 0x12345600
    invoke-static {v2}, Ljava/lang/Integer;->lowestOneBit(I)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const v2, 0x0
    invoke-static {v2}, Ljava/lang/Integer;->numberOfLeadingZeros(I)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const v2, 0x600
    invoke-static {v2}, Ljava/lang/Integer;->numberOfTrailingZeros(I)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const v2, 0x12345678
    const v3, 0x24
    invoke-static {v2, v3}, Ljava/lang/Integer;->rotateLeft(II)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const v2, 0x12345678
    const v3, -0x4
    invoke-static {v2, v3}, Ljava/lang/Integer;->rotateRight(II)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const v2, -0x9
    invoke-static {v2}, Ljava/lang/Integer;->signum(I)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x123456789abcdef0L
    invoke-static {v2, v3}, Ljava/lang/Long;->reverse(J)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x123456789abcdef0L
    invoke-static {v2, v3}, Ljava/lang/Long;->reverseBytes(J)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, -0x2L
    invoke-static {v2, v3}, Ljava/lang/Long;->bitCount(J)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x9L
    const-wide v4, -0x9L
    invoke-static {v2, v3, v4, v5}, Ljava/lang/Long;->compare(JJ)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3456789abcdefL
    invoke-static {v2, v3}, Ljava/lang/Long;->highestOneBit(J)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x1200000000L
    invoke-static {v2, v3}, Ljava/lang/Long;->lowestOneBit(J)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x1L
    invoke-static {v2, v3}, Ljava/lang/Long;->numberOfLeadingZeros(J)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x0L
    invoke-static {v2, v3}, Ljava/lang/Long;->numberOfTrailingZeros(J)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x123456789abcdef0L
    const v4, 0x44
    invoke-static {v2, v3, v4}, Ljava/lang/Long;->rotateLeft(JI)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x123456789abcdef0L
    const v4, -0x8
    invoke-static {v2, v3, v4}, Ljava/lang/Long;->rotateRight(JI)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0xcL
    invoke-static {v2, v3}, Ljava/lang/Long;->signum(J)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const v2, 0x1234
    invoke-static {v2}, Ljava/lang/Short;->reverseBytes(S)S
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const v2, -0x80000000
    invoke-static {v2}, Ljava/lang/Math;->abs(I)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, -0x5L
    invoke-static {v2, v3}, Ljava/lang/Math;->abs(J)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const v2, -0x3
    const v3, 0x3
    invoke-static {v2, v3}, Ljava/lang/Math;->min(II)I
    move-result v2
    int-to-long v2, v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, -0x3L
    const-wide v4, 0x3L
    invoke-static {v2, v3, v4, v5}, Ljava/lang/Math;->max(JJ)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    return-wide v0
.end method

.method public static math(I)J
    .locals 6
    const-wide/16 v0, 0x0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->cos(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->sin(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->acos(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->asin(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->atan(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x4050000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->cbrt(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->cosh(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->exp(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->expm1(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->log(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->log10(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->log1p(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->sinh(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->tan(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->tanh(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->sqrt(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->ceil(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->floor(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fe4000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->rint(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x4004000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->rint(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3ff0000000000000L
    const-wide v4, 0xc000000000000000L
    invoke-static {v2, v3, v4, v5}, Ljava/lang/Math;->atan2(DD)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x4008000000000000L
    const-wide v4, 0x4010000000000000L
    invoke-static {v2, v3, v4, v5}, Ljava/lang/Math;->hypot(DD)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3ff0000000000000L
    const-wide v4, 0x4000000000000000L
    invoke-static {v2, v3, v4, v5}, Ljava/lang/Math;->nextAfter(DD)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3ff8000000000000L
    const-wide v4, 0x4004000000000000L
    invoke-static {v2, v3, v4, v5}, Ljava/lang/Math;->pow(DD)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x8000000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->abs(D)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x4000000000000000L
    const-wide v4, 0xbff0000000000000L
    invoke-static {v2, v3, v4, v5}, Ljava/lang/Math;->min(DD)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x4000000000000000L
    const-wide v4, 0xbff0000000000000L
    invoke-static {v2, v3, v4, v5}, Ljava/lang/Math;->max(DD)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x4004000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->round(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0xc004000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->round(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x7ff8000000000000L
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    return-wide v0
.end method

.method public static edges(I)J
    .locals 6
    const-wide/16 v0, 0x0
    const-wide v2, 0x3ff0000000000000L
    const-wide v4, 0x7ff0000000000000L
    invoke-static {v2, v3, v4, v5}, Ljava/lang/Math;->pow(DD)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x0000000000000000L
    const-wide v4, 0x8000000000000000L
    invoke-static {v2, v3, v4, v5}, Ljava/lang/Math;->min(DD)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x8000000000000000L
    const-wide v4, 0x0000000000000000L
    invoke-static {v2, v3, v4, v5}, Ljava/lang/Math;->max(DD)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3ff0000000000000L
    const-wide v4, 0x7ff8000000000000L
    invoke-static {v2, v3, v4, v5}, Ljava/lang/Math;->max(DD)D
    move-result-wide v2
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x3fdfffffffffffffL
    invoke-static {v2, v3}, Ljava/lang/Math;->round(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x7e37e43c8800759cL
    invoke-static {v2, v3}, Ljava/lang/Math;->round(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0x7ff8000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->round(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    const-wide v2, 0xfff0000000000000L
    invoke-static {v2, v3}, Ljava/lang/Math;->round(D)J
    move-result-wide v2
    invoke-static {v0, v1, v2, v3}, Lorg/example/vm/Numbers;->fold(JJ)J
    move-result-wide v0
    return-wide v0
.end method
