# The collector hands over the references it has cleared. No queues are kept.
.method public static add(Ljava/lang/ref/Reference;)V
    .locals 0
    return-void
.end method
