# An app whose stack is 4, 16 or 64 managed frames deep, always, and whose leaf is a loop.
.class public Lorg/example/depth/Depth;
.super Ljava/lang/Object;
.source "Depth.java"

.method public static of4(I)J
    .registers 3
    const/16 v0, 2
    invoke-static {p0, v0}, Lorg/example/depth/Depth;->down(II)J
    move-result-wide v0
    return-wide v0
.end method

.method public static of16(I)J
    .registers 3
    const/16 v0, 14
    invoke-static {p0, v0}, Lorg/example/depth/Depth;->down(II)J
    move-result-wide v0
    return-wide v0
.end method

.method public static of64(I)J
    .registers 3
    const/16 v0, 62
    invoke-static {p0, v0}, Lorg/example/depth/Depth;->down(II)J
    move-result-wide v0
    return-wide v0
.end method

# Calls itself `left` times, then loops: rounds times 2^20 steps.
.method private static down(II)J
    .registers 7
    if-eqz p1, :bottom
    add-int/lit8 p1, p1, -1
    invoke-static {p0, p1}, Lorg/example/depth/Depth;->down(II)J
    move-result-wide v0
    return-wide v0
    :bottom
    const-wide/16 v0, 1
    :round
    if-lez p0, :done
    const/high16 v2, 0x100000
    :step
    if-eqz v2, :next
    const-wide/16 v3, 31
    mul-long/2addr v0, v3
    add-int/lit8 v2, v2, -1
    goto :step
    :next
    add-int/lit8 p0, p0, -1
    goto :round
    :done
    return-wide v0
.end method
