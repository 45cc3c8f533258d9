.method public static valueOf(C)Ljava/lang/Character;
    .locals 1
    new-instance v0, Ljava/lang/Character;
    invoke-direct {v0}, Ljava/lang/Character;-><init>()V
    iput-char p0, v0, Ljava/lang/Character;->value:C
    return-object v0
.end method

.method public charValue()C
    .locals 1
    iget-char v0, p0, Ljava/lang/Character;->value:C
    return v0
.end method
