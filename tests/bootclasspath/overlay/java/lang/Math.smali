# C's functions of the same names, in libopenjdk.so; java.lang.Math's own rounding and NaN rules where they differ.

.method public static native abs(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native abs(F)F
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native abs(J)J
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native abs(I)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native min(DD)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native min(FF)F
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native min(JJ)J
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native min(II)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native max(DD)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native max(FF)F
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native max(JJ)J
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native max(II)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native cos(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native sin(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native acos(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native asin(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native atan(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native cbrt(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native cosh(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native exp(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native expm1(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native log(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native log10(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native log1p(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native sinh(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native tan(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native tanh(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native sqrt(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native ceil(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native floor(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native rint(D)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native atan2(DD)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native pow(DD)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native hypot(DD)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native nextAfter(DD)D
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native round(D)J
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method

.method public static native round(F)I
    .annotation build Ldalvik/annotation/optimization/FastNative;
    .end annotation
.end method
