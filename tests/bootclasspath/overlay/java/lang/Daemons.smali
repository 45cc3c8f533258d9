.method public static start()V
    .locals 0
    return-void
.end method

.method public static stop()V
    .locals 0
    return-void
.end method

.method public static waitForDaemonStart()V
    .locals 0
    return-void
.end method
