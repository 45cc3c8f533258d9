.class public Lorg/example/vm/Main;
.super Ljava/lang/Object;
.source "Main.java"

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

.method public static divide(I)J
    .locals 2
    .line 41
    const/4 v0, 0x0
    div-int v0, p0, v0
    int-to-long v0, v0
    return-wide v0
.end method

.method public static throwWithMessage(I)J
    .locals 4
    new-instance v0, Ljava/lang/IllegalStateException;
    const-string v1, "outer"
    new-instance v2, Ljava/lang/RuntimeException;
    const-string v3, "inner"
    invoke-direct {v2, v3}, Ljava/lang/RuntimeException;-><init>(Ljava/lang/String;)V
    invoke-direct {v0, v1, v2}, Ljava/lang/IllegalStateException;-><init>(Ljava/lang/String;Ljava/lang/Throwable;)V
    throw v0
.end method

# n threads, each adding sum(1000) to a counter under a lock; joined before the counter is read.
.method public static threads(I)J
    .locals 5
    new-instance v0, Lorg/example/vm/Counter;
    invoke-direct {v0}, Lorg/example/vm/Counter;-><init>()V
    new-array v1, p0, [Ljava/lang/Thread;
    const/4 v2, 0x0
    :start
    if-ge v2, p0, :started
    new-instance v3, Ljava/lang/Thread;
    const-string v4, "worker"
    invoke-direct {v3, v0, v4}, Ljava/lang/Thread;-><init>(Ljava/lang/Runnable;Ljava/lang/String;)V
    invoke-virtual {v3}, Ljava/lang/Thread;->start()V
    aput-object v3, v1, v2
    add-int/lit8 v2, v2, 0x1
    goto :start
    :started
    const/4 v2, 0x0
    :join
    if-ge v2, p0, :joined
    aget-object v3, v1, v2
    invoke-virtual {v3}, Ljava/lang/Thread;->join()V
    add-int/lit8 v2, v2, 0x1
    goto :join
    :joined
    iget-wide v0, v0, Lorg/example/vm/Counter;->total:J
    return-wide v0
.end method

.method public static throwingThread(I)J
    .locals 2
    new-instance v0, Lorg/example/vm/Thrower;
    invoke-direct {v0}, Lorg/example/vm/Thrower;-><init>()V
    invoke-virtual {v0}, Ljava/lang/Thread;->start()V
    invoke-virtual {v0}, Ljava/lang/Thread;->join()V
    const-wide/16 v0, 0x0
    return-wide v0
.end method

# Allocates n megabytes in arrays of 64 KB, of which every 16th lives on for a while: many times the heap.
.method public static garbage(I)J
    .locals 7
    const/16 v0, 0x40
    new-array v0, v0, [[B
    mul-int/lit8 v1, p0, 0x10
    const/4 v2, 0x0
    const-wide/16 v4, 0x0
    :next
    if-ge v2, v1, :done
    const/high16 v3, 0x10000
    new-array v3, v3, [B
    array-length v6, v3
    int-to-long v6, v6
    add-long/2addr v4, v6
    rem-int/lit8 v6, v2, 0x10
    if-nez v6, :drop
    div-int/lit8 v6, v2, 0x10
    and-int/lit8 v6, v6, 0x3f
    aput-object v3, v0, v6
    :drop
    add-int/lit8 v2, v2, 0x1
    goto :next
    :done
    return-wide v4
.end method

# What the VM throws by itself, each caught: 1 null, 2 bounds, 4 cast, 8 stack overflow, 16 array size.
.method public static implicitExceptions(I)J
    .locals 5
    const/4 v0, 0x0
    const/4 v1, 0x0
    :null_start
    iget-wide v2, v1, Lorg/example/vm/Counter;->total:J
    :null_end
    .catch Ljava/lang/NullPointerException; {:null_start .. :null_end} :null_caught
    :bounds
    const/4 v1, 0x1
    new-array v2, v1, [I
    :bounds_start
    aget v2, v2, v1
    :bounds_end
    .catch Ljava/lang/ArrayIndexOutOfBoundsException; {:bounds_start .. :bounds_end} :bounds_caught
    :cast
    new-instance v1, Ljava/lang/Object;
    invoke-direct {v1}, Ljava/lang/Object;-><init>()V
    :cast_start
    check-cast v1, Lorg/example/vm/Counter;
    :cast_end
    .catch Ljava/lang/ClassCastException; {:cast_start .. :cast_end} :cast_caught
    :stack
    :stack_start
    invoke-static {p0}, Lorg/example/vm/Main;->forever(I)I
    :stack_end
    .catch Ljava/lang/StackOverflowError; {:stack_start .. :stack_end} :stack_caught
    :size
    const/4 v1, -0x1
    :size_start
    new-array v1, v1, [I
    :size_end
    .catch Ljava/lang/NegativeArraySizeException; {:size_start .. :size_end} :size_caught
    :done
    int-to-long v0, v0
    return-wide v0
    :null_caught
    add-int/lit8 v0, v0, 0x1
    goto :bounds
    :bounds_caught
    add-int/lit8 v0, v0, 0x2
    goto :cast
    :cast_caught
    add-int/lit8 v0, v0, 0x4
    goto :stack
    :stack_caught
    add-int/lit8 v0, v0, 0x8
    goto :size
    :size_caught
    add-int/lit8 v0, v0, 0x10
    goto :done
.end method

.method public static forever(I)I
    .locals 1
    invoke-static {p0}, Lorg/example/vm/Main;->forever(I)I
    move-result v0
    add-int/lit8 v0, v0, 0x1
    return v0
.end method

# The bits of sqrt(n) + sin(n) * pow(n, 1.5): java.lang.Math through libm.
.method public static math(I)J
    .locals 8
    int-to-double v0, p0
    invoke-static {v0, v1}, Ljava/lang/Math;->sqrt(D)D
    move-result-wide v2
    invoke-static {v0, v1}, Ljava/lang/Math;->sin(D)D
    move-result-wide v4
    const-wide v6, 0x3ff8000000000000L
    invoke-static {v0, v1, v6, v7}, Ljava/lang/Math;->pow(DD)D
    move-result-wide v6
    mul-double/2addr v4, v6
    add-double/2addr v2, v4
    invoke-static {v2, v3}, Ljava/lang/Double;->doubleToRawLongBits(D)J
    move-result-wide v0
    return-wide v0
.end method

# "boot.dex".hashCode() * 10 + length + indexOf('x'), checked against Java's definition.
.method public static string(I)J
    .locals 4
    const-string v0, "boot.dex"
    invoke-virtual {v0}, Ljava/lang/String;->hashCode()I
    move-result v1
    mul-int/lit8 v1, v1, 0xa
    invoke-virtual {v0}, Ljava/lang/String;->length()I
    move-result v2
    add-int/2addr v1, v2
    const/16 v3, 0x78
    invoke-virtual {v0, v3}, Ljava/lang/String;->indexOf(I)I
    move-result v2
    add-int/2addr v1, v2
    int-to-long v0, v1
    return-wide v0
.end method

.method public static unsupported(I)J
    .locals 3
    new-instance v0, Ljava/lang/StringBuilder;
    invoke-direct {v0}, Ljava/lang/StringBuilder;-><init>()V
    invoke-virtual {v0, p0}, Ljava/lang/StringBuilder;->append(I)Ljava/lang/StringBuilder;
    const-wide/16 v0, 0x0
    return-wide v0
.end method

# Bound to the library's function of the mangled name: twice(n) + loads, where loads counts JNI_OnLoad.
.method public static native twice(I)J
.end method

# Prints the process's command line and comm, and returns n.
.method public static native printName(I)J
.end method
