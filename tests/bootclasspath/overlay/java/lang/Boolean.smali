.method public static valueOf(Z)Ljava/lang/Boolean;
    .locals 1
    new-instance v0, Ljava/lang/Boolean;
    invoke-direct {v0}, Ljava/lang/Boolean;-><init>()V
    iput-boolean p0, v0, Ljava/lang/Boolean;->value:Z
    return-object v0
.end method

.method public booleanValue()Z
    .locals 1
    iget-boolean v0, p0, Ljava/lang/Boolean;->value:Z
    return v0
.end method
