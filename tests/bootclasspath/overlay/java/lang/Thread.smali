.field private started:Z
.field private target:Ljava/lang/Runnable;

# The runtime's own constructor: of the main thread and of attached ones.
.method public constructor <init>(Ljava/lang/ThreadGroup;Ljava/lang/String;IZ)V
    .locals 1
    invoke-direct {p0}, Ljava/lang/Object;-><init>()V
    iput-object p1, p0, Ljava/lang/Thread;->group:Ljava/lang/ThreadGroup;
    iput-object p2, p0, Ljava/lang/Thread;->name:Ljava/lang/String;
    iput p3, p0, Ljava/lang/Thread;->priority:I
    iput-boolean p4, p0, Ljava/lang/Thread;->daemon:Z
    new-instance v0, Ljava/lang/Object;
    invoke-direct {v0}, Ljava/lang/Object;-><init>()V
    iput-object v0, p0, Ljava/lang/Thread;->lock:Ljava/lang/Object;
    return-void
.end method

.method public constructor <init>()V
    .locals 1
    const/4 v0, 0x0
    invoke-direct {p0, v0}, Ljava/lang/Thread;-><init>(Ljava/lang/Runnable;)V
    return-void
.end method

.method public constructor <init>(Ljava/lang/Runnable;)V
    .locals 1
    const-string v0, "Thread"
    invoke-direct {p0, p1, v0}, Ljava/lang/Thread;-><init>(Ljava/lang/Runnable;Ljava/lang/String;)V
    return-void
.end method

.method public constructor <init>(Ljava/lang/String;)V
    .locals 1
    const/4 v0, 0x0
    invoke-direct {p0, v0, p1}, Ljava/lang/Thread;-><init>(Ljava/lang/Runnable;Ljava/lang/String;)V
    return-void
.end method

.method public constructor <init>(Ljava/lang/Runnable;Ljava/lang/String;)V
    .locals 3
    sget-object v0, Ljava/lang/ThreadGroup;->mainThreadGroup:Ljava/lang/ThreadGroup;
    const/4 v1, 0x5
    const/4 v2, 0x0
    invoke-direct {p0, v0, p2, v1, v2}, Ljava/lang/Thread;-><init>(Ljava/lang/ThreadGroup;Ljava/lang/String;IZ)V
    iput-object p1, p0, Ljava/lang/Thread;->target:Ljava/lang/Runnable;
    return-void
.end method

.method public run()V
    .locals 1
    iget-object v0, p0, Ljava/lang/Thread;->target:Ljava/lang/Runnable;
    if-eqz v0, :nothing
    invoke-interface {v0}, Ljava/lang/Runnable;->run()V
    :nothing
    return-void
.end method

.method public declared-synchronized start()V
    .locals 3
    iget-boolean v0, p0, Ljava/lang/Thread;->started:Z
    if-nez v0, :refuse
    const/4 v0, 0x1
    iput-boolean v0, p0, Ljava/lang/Thread;->started:Z
    const-wide/16 v0, 0x0
    iget-boolean v2, p0, Ljava/lang/Thread;->daemon:Z
    invoke-static {p0, v0, v1, v2}, Ljava/lang/Thread;->nativeCreate(Ljava/lang/Thread;JZ)V
    return-void
    :refuse
    new-instance v0, Ljava/lang/IllegalThreadStateException;
    invoke-direct {v0}, Ljava/lang/IllegalThreadStateException;-><init>()V
    throw v0
.end method

.method public final isAlive()Z
    .locals 4
    iget-wide v0, p0, Ljava/lang/Thread;->nativePeer:J
    const-wide/16 v2, 0x0
    cmp-long v0, v0, v2
    if-eqz v0, :gone
    const/4 v0, 0x1
    return v0
    :gone
    const/4 v0, 0x0
    return v0
.end method

# A thread that ends clears its nativePeer and notifies its lock.
.method public final join()V
    .locals 2
    iget-object v0, p0, Ljava/lang/Thread;->lock:Ljava/lang/Object;
    monitor-enter v0
    :guarded
    invoke-virtual {p0}, Ljava/lang/Thread;->isAlive()Z
    move-result v1
    if-eqz v1, :gone
    invoke-virtual {v0}, Ljava/lang/Object;->wait()V
    goto :guarded
    :gone
    monitor-exit v0
    :end
    .catchall {:guarded .. :end} :thrown
    return-void
    :thrown
    move-exception v1
    :again
    monitor-exit v0
    :released
    .catchall {:again .. :released} :thrown
    throw v1
.end method

.method public static sleep(J)V
    .locals 3
    new-instance v0, Ljava/lang/Object;
    invoke-direct {v0}, Ljava/lang/Object;-><init>()V
    const/4 v1, 0x0
    monitor-enter v0
    :guarded
    invoke-static {v0, p0, p1, v1}, Ljava/lang/Thread;->sleep(Ljava/lang/Object;JI)V
    monitor-exit v0
    :end
    .catchall {:guarded .. :end} :thrown
    return-void
    :thrown
    move-exception v2
    :again
    monitor-exit v0
    :released
    .catchall {:again .. :released} :thrown
    throw v2
.end method

.method public final setDaemon(Z)V
    .locals 0
    iput-boolean p1, p0, Ljava/lang/Thread;->daemon:Z
    return-void
.end method

.method public final getName()Ljava/lang/String;
    .locals 1
    iget-object v0, p0, Ljava/lang/Thread;->name:Ljava/lang/String;
    return-object v0
.end method

.method public interrupt()V
    .locals 0
    invoke-virtual {p0}, Ljava/lang/Thread;->interrupt0()V
    return-void
.end method

# Registered by the launcher: prints the throwable and ends the process, as Android's default handler does.
.method public final native dispatchUncaughtException(Ljava/lang/Throwable;)V
.end method
