.method public constructor <init>()V
    .locals 0
    return-void
.end method

.method protected clone()Ljava/lang/Object;
    .locals 2
    instance-of v0, p0, Ljava/lang/Cloneable;
    if-eqz v0, :refuse
    invoke-direct {p0}, Ljava/lang/Object;->internalClone()Ljava/lang/Object;
    move-result-object v0
    return-object v0
    :refuse
    new-instance v0, Ljava/lang/CloneNotSupportedException;
    invoke-direct {v0}, Ljava/lang/CloneNotSupportedException;-><init>()V
    throw v0
.end method

.method public equals(Ljava/lang/Object;)Z
    .locals 1
    if-ne p0, p1, :other
    const/4 v0, 0x1
    return v0
    :other
    const/4 v0, 0x0
    return v0
.end method

.method protected finalize()V
    .locals 0
    return-void
.end method

.method public final getClass()Ljava/lang/Class;
    .locals 1
    iget-object v0, p0, Ljava/lang/Object;->shadow$_klass_:Ljava/lang/Class;
    return-object v0
.end method

.method public hashCode()I
    .locals 1
    invoke-static {p0}, Ljava/lang/Object;->identityHashCodeNative(Ljava/lang/Object;)I
    move-result v0
    return v0
.end method

.method public toString()Ljava/lang/String;
    .locals 1
    invoke-virtual {p0}, Ljava/lang/Object;->getClass()Ljava/lang/Class;
    move-result-object v0
    invoke-virtual {v0}, Ljava/lang/Class;->getName()Ljava/lang/String;
    move-result-object v0
    return-object v0
.end method

.method public final wait()V
    .locals 3
    const-wide/16 v0, 0x0
    const/4 v2, 0x0
    invoke-virtual {p0, v0, v1, v2}, Ljava/lang/Object;->wait(JI)V
    return-void
.end method

.method public final wait(J)V
    .locals 1
    const/4 v0, 0x0
    invoke-virtual {p0, p1, p2, v0}, Ljava/lang/Object;->wait(JI)V
    return-void
.end method
