# The runtime rewrites `new String(...)` to these.
.method public static newEmptyString()Ljava/lang/String;
    .locals 1
    const-string v0, ""
    return-object v0
.end method

.method public static newStringFromBytes([B)Ljava/lang/String;
    .locals 3
    const/4 v0, 0x0
    array-length v1, p0
    invoke-static {p0, v0, v0, v1}, Ljava/lang/StringFactory;->newStringFromBytes([BIII)Ljava/lang/String;
    move-result-object v2
    return-object v2
.end method

.method public static newStringFromChars([C)Ljava/lang/String;
    .locals 3
    const/4 v0, 0x0
    array-length v1, p0
    invoke-static {v0, v1, p0}, Ljava/lang/StringFactory;->newStringFromChars(II[C)Ljava/lang/String;
    move-result-object v2
    return-object v2
.end method

.method public static newStringFromChars([CII)Ljava/lang/String;
    .locals 1
    if-ltz p1, :outside
    if-ltz p2, :outside
    array-length v0, p0
    sub-int/2addr v0, p1
    if-gt p2, v0, :outside
    invoke-static {p1, p2, p0}, Ljava/lang/StringFactory;->newStringFromChars(II[C)Ljava/lang/String;
    move-result-object v0
    return-object v0
    :outside
    new-instance v0, Ljava/lang/StringIndexOutOfBoundsException;
    invoke-direct {v0}, Ljava/lang/StringIndexOutOfBoundsException;-><init>()V
    throw v0
.end method
