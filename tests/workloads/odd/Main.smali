# Runs every method of this folder that can run; each adds a number of its own, so that the sum tells if one is missing.
.class public Lorg/example/odd/Main;
.super Ljava/lang/Object;
.source "Main.java"

.method public static run(I)J
    .registers 6
    .param p0, "rounds"
    .line 10
    const-wide/16 v0, 0x0
    :again
    .line 11
    if-lez p0, :done
    .line 12
    invoke-static {}, Lorg/example/odd/Names;->all()I
    move-result v2
    int-to-long v2, v2
    add-long/2addr v0, v2
    .line 13
    invoke-static {}, Lorg/example/odd/Overloads;->all()I
    move-result v2
    int-to-long v2, v2
    add-long/2addr v0, v2
    .line 14
    invoke-static {}, Lorg/example/odd/DebugInfo;->all()I
    move-result v2
    int-to-long v2, v2
    add-long/2addr v0, v2
    .line 15
    invoke-static {}, Lorg/example/odd/Payloads;->all()I
    move-result v2
    int-to-long v2, v2
    add-long/2addr v0, v2
    .line 16
    invoke-static {}, Lorg/example/odd/Generated;->all()I
    move-result v2
    int-to-long v2, v2
    add-long/2addr v0, v2
    .line 17
    invoke-static {}, LNoPackage;->a()I
    move-result v2
    int-to-long v2, v2
    add-long/2addr v0, v2
    .line 11
    add-int/lit8 p0, p0, -0x1
    goto :again
    :done
    .line 19
    return-wide v0
.end method
