.class final Ljava/lang/Daemons$HeapTaskDaemon;
.super Ljava/lang/Thread;

.method constructor <init>()V
    .locals 1
    const-string v0, "HeapTaskDaemon"
    invoke-direct {p0, v0}, Ljava/lang/Thread;-><init>(Ljava/lang/String;)V
    const/4 v0, 0x1
    invoke-virtual {p0, v0}, Ljava/lang/Thread;->setDaemon(Z)V
    return-void
.end method

.method public run()V
    .locals 1
    new-instance v0, Ldalvik/system/VMRuntime;
    invoke-direct {v0}, Ldalvik/system/VMRuntime;-><init>()V
    invoke-virtual {v0}, Ldalvik/system/VMRuntime;->runHeapTasks()V
    return-void
.end method
