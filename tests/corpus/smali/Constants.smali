.class public Lorg/example/corpus/Constants;
.super Ljava/lang/Object;

.method static integers()V
    .registers 2
    const/4 v0, -0x8
    const/4 v0, 0x7
    const/16 v0, -0x8000
    const/16 v0, 0x7fff
    const/high16 v0, -0x80000000
    const/high16 v0, 0x7fff0000
    const-wide/16 v0, -0x1L
    const-wide/32 v0, -0x80000000L
    const-wide/high16 v0, -0x8000000000000000L
    const-wide/high16 v0, 0x7fff000000000000L
    add-int/lit8 v0, v1, -0x80
    add-int/lit8 v0, v1, 0x7f
    rsub-int v0, v1, -0x8000
    xor-int/lit16 v0, v1, 0x7fff
    return-void
.end method

.method static floats()V
    .registers 2
    const v0, 0.1f
    const v0, 1.0E10f
    const v0, 1.0E-10f
    const v0, 123456.7f
    const v0, 999999.5f
    const v0, Infinityf
    const v0, -Infinityf
    const v0, NaNf
    const v0, 0xffc00000
    const v0, -0.0f
    const v0, 0x1
    return-void
.end method

.method static doubles()V
    .registers 2
    const-wide v0, 0.1
    const-wide v0, 3.141592653589793
    const-wide v0, 1.0E100
    const-wide v0, 1.7976931348623157E308
    const-wide v0, 4.9E-324
    const-wide v0, 123456.5
    const-wide v0, 1234567.0
    const-wide v0, 0.0001
    const-wide v0, 0.00001
    const-wide v0, Infinity
    const-wide v0, -Infinity
    const-wide v0, NaN
    const-wide v0, -0x7000000000000L
    const-wide v0, -0.0
    return-void
.end method
