.class public Lorg/example/vm/Compiled;
.super Ljava/lang/Object;
.source "Compiled.java"

# Calls sum until it has code of its own, n times at most; then prints where its code is, and returns sum(1000).
.method public static run(I)J
    .locals 4
    const/16 v0, 0x3e8
    :next
    invoke-static {v0}, Lorg/example/vm/Compiled;->sum(I)J
    move-result-wide v1
    invoke-static {}, Lorg/example/vm/Compiled;->isCompiled()Z
    move-result v3
    if-nez v3, :done
    add-int/lit8 p0, p0, -0x1
    if-gtz p0, :next
    :done
    invoke-static {}, Lorg/example/vm/Compiled;->showCode()V
    return-wide v1
.end method

# The sum of 0..n-1.
.method public static sum(I)J
    .locals 5
    const-wide/16 v0, 0x0
    const/4 v2, 0x0
    :next
    if-ge v2, p0, :done
    int-to-long v3, v2
    add-long/2addr v0, v3
    add-int/lit8 v2, v2, 0x1
    goto :next
    :done
    return-wide v0
.end method

.method private static native isCompiled()Z
.end method

.method private static native showCode()V
.end method
