.class public Lorg/example/corpus/Switches;
.super Ljava/lang/Object;
.source "Switches.java"

.method static packed(I)I
    .registers 2
    .line 1
    packed-switch p0, :table
    .line 2
    const/4 v0, -0x1
    return v0
    :a
    .line 3
    const/4 v0, 0x1
    return v0
    :b
    .line 4
    const/4 v0, 0x2
    return v0
    nop
    :table
    .packed-switch -0x2
        :a
        :b
        :a
        :b
        :b
    .end packed-switch
.end method

.method static sparse(I)I
    .registers 2
    .line 1
    sparse-switch p0, :table
    const/4 v0, -0x1
    return v0
    :a
    .line 2
    const/4 v0, 0x1
    return v0
    :table
    .sparse-switch
        -0x80000000 -> :a
        -0x1 -> :a
        0x0 -> :a
        0x12345 -> :a
        0x7fffffff -> :a
    .end sparse-switch
.end method

.method static empty(I)V
    .registers 1
    packed-switch p0, :packed
    sparse-switch p0, :sparse
    return-void
    :packed
    .packed-switch 0x0
    .end packed-switch
    :sparse
    .sparse-switch
    .end sparse-switch
.end method

# Arrays of each width, of even and odd sizes in bytes.
.method static arrays(Ljava/lang/Object;)V
    .registers 1
    .line 10
    fill-array-data p0, :bytes
    .line 11
    fill-array-data p0, :shorts
    .line 12
    fill-array-data p0, :ints
    .line 13
    fill-array-data p0, :longs
    .line 14
    fill-array-data p0, :none
    .line 15
    return-void
    :bytes
    .array-data 1
        0x1t
        -0x1t
        0x7ft
    .end array-data
    :shorts
    .array-data 2
        0x1s
        -0x1s
        0x7fffs
    .end array-data
    :ints
    .array-data 4
        0x1
        -0x1
        0x7fffffff
    .end array-data
    :longs
    .array-data 8
        0x1L
        -0x1L
    .end array-data
    :none
    .array-data 4
    .end array-data
.end method
