.method public static broadcast(I)V
    .locals 0
    return-void
.end method
