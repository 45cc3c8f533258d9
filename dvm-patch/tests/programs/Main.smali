.class public Lorg/example/tunnel/Main;
.super Ljava/lang/Object;
.source "Main.java"

.method public static leaf(J)J
    .registers 4
    .line 3
    const-wide/16 v0, 0x7
    mul-long/2addr p0, v0
    return-wide p0
.end method

# Returns after p0 rounds; never, if p0 is negative.
.method public static run(I)J
    .registers 4
    .line 8
    const-wide/16 v0, 0x1
    :again
    .line 9
    if-eqz p0, :done
    invoke-static {v0, v1}, Lorg/example/tunnel/Main;->leaf(J)J
    move-result-wide v0
    add-int/lit8 p0, p0, -0x1
    goto :again
    :done
    .line 10
    return-wide v0
.end method
