# Of Android's daemons the collector's one: it runs concurrent collections and heap trims. The runtime calls start when
# it has started and stop when it ends; a zygote stops it before a fork and starts it on both sides.
.field private static heapTaskDaemon:Ljava/lang/Thread;

.method public static declared-synchronized start()V
    .locals 2
    sget-object v0, Ljava/lang/Daemons;->heapTaskDaemon:Ljava/lang/Thread;
    if-nez v0, :running
    new-instance v0, Ljava/lang/Daemons$HeapTaskDaemon;
    invoke-direct {v0}, Ljava/lang/Daemons$HeapTaskDaemon;-><init>()V
    sput-object v0, Ljava/lang/Daemons;->heapTaskDaemon:Ljava/lang/Thread;
    # Started here, not by the thread: a stop that follows at once must not be undone by it.
    new-instance v1, Ldalvik/system/VMRuntime;
    invoke-direct {v1}, Ldalvik/system/VMRuntime;-><init>()V
    invoke-virtual {v1}, Ldalvik/system/VMRuntime;->startHeapTaskProcessor()V
    invoke-virtual {v0}, Ljava/lang/Thread;->start()V
    :running
    return-void
.end method

.method public static declared-synchronized stop()V
    .locals 2
    sget-object v0, Ljava/lang/Daemons;->heapTaskDaemon:Ljava/lang/Thread;
    if-eqz v0, :stopped
    new-instance v1, Ldalvik/system/VMRuntime;
    invoke-direct {v1}, Ldalvik/system/VMRuntime;-><init>()V
    invoke-virtual {v1}, Ldalvik/system/VMRuntime;->stopHeapTaskProcessor()V
    invoke-virtual {v0}, Ljava/lang/Thread;->join()V
    const/4 v0, 0x0
    sput-object v0, Ljava/lang/Daemons;->heapTaskDaemon:Ljava/lang/Thread;
    :stopped
    return-void
.end method

.method public static waitForDaemonStart()V
    .locals 0
    return-void
.end method
