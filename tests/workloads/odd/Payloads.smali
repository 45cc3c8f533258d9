# Data between the instructions: tables of switches and of arrays, at an odd and an even place.
.class public Lorg/example/odd/Payloads;
.super Ljava/lang/Object;
.source "Payloads.java"

.method public static all()I
    .registers 2
    .line 5
    const/4 v0, 0x2
    invoke-static {v0}, Lorg/example/odd/Payloads;->packed(I)I
    move-result v0
    .line 6
    const/16 v1, 0x3e8
    invoke-static {v1}, Lorg/example/odd/Payloads;->sparse(I)I
    move-result v1
    add-int/2addr v0, v1
    .line 7
    invoke-static {}, Lorg/example/odd/Payloads;->array()I
    move-result v1
    add-int/2addr v0, v1
    .line 8
    return v0
.end method

.method public static packed(I)I
    .registers 2
    .line 20
    packed-switch p0, :table
    .line 21
    const/4 v0, 0x0
    return v0
    :one
    .line 22
    const/16 v0, 0xa
    return v0
    :two
    .line 23
    const/16 v0, 0x14
    return v0
    :table
    .packed-switch 0x1
        :one
        :two
    .end packed-switch
.end method

.method public static sparse(I)I
    .registers 2
    .line 30
    sparse-switch p0, :table
    .line 31
    const/4 v0, 0x0
    nop
    return v0
    :thousand
    .line 32
    const/16 v0, 0x64
    return v0
    :table
    .sparse-switch
        -0x5 -> :thousand
        0x3e8 -> :thousand
    .end sparse-switch
.end method

.method public static array()I
    .registers 3
    .line 40
    const/4 v0, 0x3
    new-array v1, v0, [B
    .line 41
    fill-array-data v1, :bytes
    .line 42
    const/4 v0, 0x2
    aget-byte v0, v1, v0
    return v0
    :bytes
    .array-data 1
        0x1t
        0x2t
        0x3t
    .end array-data
.end method
