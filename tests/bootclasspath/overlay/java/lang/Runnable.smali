.method public abstract run()V
.end method
