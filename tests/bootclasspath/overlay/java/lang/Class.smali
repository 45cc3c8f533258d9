.method public getName()Ljava/lang/String;
    .locals 1
    iget-object v0, p0, Ljava/lang/Class;->name:Ljava/lang/String;
    if-nez v0, :known
    invoke-direct {p0}, Ljava/lang/Class;->getNameNative()Ljava/lang/String;
    move-result-object v0
    iput-object v0, p0, Ljava/lang/Class;->name:Ljava/lang/String;
    :known
    return-object v0
.end method

.method public getSuperclass()Ljava/lang/Class;
    .locals 1
    iget-object v0, p0, Ljava/lang/Class;->superClass:Ljava/lang/Class;
    return-object v0
.end method

.method public static forName(Ljava/lang/String;)Ljava/lang/Class;
    .locals 2
    const/4 v0, 0x1
    const/4 v1, 0x0
    invoke-static {p0, v0, v1}, Ljava/lang/Class;->classForName(Ljava/lang/String;ZLjava/lang/ClassLoader;)Ljava/lang/Class;
    move-result-object v0
    return-object v0
.end method
