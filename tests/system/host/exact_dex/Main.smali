# A program whose counts follow from its text: exact_dex.rs has them for run(8).
.class public Lorg/example/counted/Main;
.super Ljava/lang/Object;
.source "Main.java"

# The exception of part(1) is caught here.
.method public static run(I)J
    .registers 7
    .line 10
    const-wide/16 v0, 0x0
    const/4 v2, 0x0
    :loop
    if-ge v2, p0, :done
    :called
    invoke-static {v2}, Lorg/example/counted/Main;->part(I)I
    move-result v3
    :returned
    .catch Ljava/lang/ArithmeticException; {:called .. :returned} :caught
    int-to-long v4, v3
    add-long/2addr v0, v4
    :next
    add-int/lit8 v2, v2, 0x1
    goto :loop
    :caught
    move-exception v3
    goto :next
    :done
    return-wide v0
.end method

# An exception in the middle of a block, a monitor, a recursion, and the switch between them.
.method static part(I)I
    .registers 4
    .line 20
    and-int/lit8 v0, p0, 0x3
    const/4 v1, 0x0
    packed-switch v0, :parts
    goto :end

    :divide
    add-int/lit8 v1, v1, 0x1
    div-int/2addr v1, v0
    add-int/lit8 v1, v1, 0x5
    :divided
    .catch Ljava/lang/ArithmeticException; {:divide .. :divided} :thrown
    goto :end
    :thrown
    move-exception v2
    add-int/lit8 v1, v1, 0x2
    goto :end

    :lock
    const-class v2, Lorg/example/counted/Main;
    monitor-enter v2
    :locked
    invoke-static {p0}, Lorg/example/counted/Main;->leaf(I)I
    move-result v1
    monitor-exit v2
    :unlocked
    .catchall {:locked .. :unlocked} :release
    goto :end
    :release
    move-exception v1
    :again
    monitor-exit v2
    :released
    .catchall {:again .. :released} :release
    throw v1

    :recurse
    const/4 v1, 0x3
    invoke-static {v1}, Lorg/example/counted/Main;->down(I)I
    move-result v1
    :end
    return v1

    :parts
    .packed-switch 0x0
        :divide
        :lock
        :recurse
    .end packed-switch
.end method

# leaf(1) throws.
.method static leaf(I)I
    .registers 2
    .line 30
    add-int/lit8 v0, p0, -0x1
    div-int v0, p0, v0
    return v0
.end method

.method static down(I)I
    .registers 2
    .line 40
    if-eqz p0, :zero
    add-int/lit8 p0, p0, -0x1
    invoke-static {p0}, Lorg/example/counted/Main;->down(I)I
    move-result v0
    return v0
    :zero
    const/4 v0, 0x0
    return v0
.end method
