.class public Lorg/example/vm/Counter;
.super Ljava/lang/Object;
.implements Ljava/lang/Runnable;
.source "Counter.java"

.field public total:J

.method public constructor <init>()V
    .locals 0
    invoke-direct {p0}, Ljava/lang/Object;-><init>()V
    return-void
.end method

.method public run()V
    .locals 2
    const/16 v0, 0x3e8
    invoke-static {v0}, Lorg/example/vm/Main;->sum(I)J
    move-result-wide v0
    invoke-direct {p0, v0, v1}, Lorg/example/vm/Counter;->add(J)V
    return-void
.end method

.method private declared-synchronized add(J)V
    .locals 2
    iget-wide v0, p0, Lorg/example/vm/Counter;->total:J
    add-long/2addr v0, p1
    iput-wide v0, p0, Lorg/example/vm/Counter;->total:J
    return-void
.end method
