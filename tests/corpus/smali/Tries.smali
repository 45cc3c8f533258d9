.class public Lorg/example/corpus/Tries;
.super Ljava/lang/Object;
.source "Tries.java"

# One range within another, one behind it, handlers shared and of their own.
.method static nested()V
    .registers 2
    .line 1
    :outer
    invoke-static {}, Lorg/example/corpus/Tries;->nested()V
    :inner
    .line 2
    invoke-static {}, Lorg/example/corpus/Tries;->nested()V
    :innerEnd
    .catch Ljava/lang/IllegalStateException; {:inner .. :innerEnd} :state
    .catch Ljava/lang/RuntimeException; {:inner .. :innerEnd} :runtime
    .line 3
    invoke-static {}, Lorg/example/corpus/Tries;->nested()V
    :outerEnd
    .catch Ljava/lang/Exception; {:outer .. :outerEnd} :exception
    .catchall {:outer .. :outerEnd} :all
    .line 4
    return-void
    :state
    .line 5
    move-exception v0
    goto :all
    :runtime
    .line 6
    move-exception v0
    throw v0
    :exception
    .line 7
    move-exception v0
    return-void
    :all
    .line 8
    move-exception v1
    throw v1
.end method

# Ranges that overlap without one being within the other.
.method static overlapping()V
    .registers 1
    :first
    invoke-static {}, Lorg/example/corpus/Tries;->nested()V
    :second
    invoke-static {}, Lorg/example/corpus/Tries;->overlapping()V
    :firstEnd
    .catch Ljava/lang/Error; {:first .. :firstEnd} :handler
    invoke-static {}, Lorg/example/corpus/Tries;->nested()V
    :secondEnd
    .catchall {:second .. :secondEnd} :handler
    return-void
    :handler
    move-exception v0
    throw v0
.end method

# The handler is within the range that it serves, and the range takes in all of the code.
.method static whole()V
    .registers 1
    :start
    .catchall {:start .. :end} :start
    nop
    return-void
    :end
.end method

# An odd number of code units: the ranges are aligned behind them.
.method static odd(Ljava/lang/Object;)V
    .registers 1
    :start
    monitor-enter p0
    :end
    .catchall {:start .. :end} :handler
    :handler
    move-exception p0
    throw p0
.end method
