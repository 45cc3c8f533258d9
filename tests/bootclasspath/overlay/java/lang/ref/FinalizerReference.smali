# The runtime announces objects with finalizers. Finalizers are not run.
.method public static add(Ljava/lang/Object;)V
    .locals 0
    return-void
.end method
