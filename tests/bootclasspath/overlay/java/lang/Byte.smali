.method public static valueOf(B)Ljava/lang/Byte;
    .locals 1
    new-instance v0, Ljava/lang/Byte;
    invoke-direct {v0}, Ljava/lang/Byte;-><init>()V
    iput-byte p0, v0, Ljava/lang/Byte;->value:B
    return-object v0
.end method

.method public byteValue()B
    .locals 1
    iget-byte v0, p0, Ljava/lang/Byte;->value:B
    return v0
.end method
