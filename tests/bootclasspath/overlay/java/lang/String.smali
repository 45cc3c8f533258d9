# The lowest bit of count tells a compressed string (8 bits a character) from a wide one.
.method public length()I
    .locals 1
    iget v0, p0, Ljava/lang/String;->count:I
    ushr-int/lit8 v0, v0, 0x1
    return v0
.end method

.method public isEmpty()Z
    .locals 1
    iget v0, p0, Ljava/lang/String;->count:I
    ushr-int/lit8 v0, v0, 0x1
    if-eqz v0, :empty
    const/4 v0, 0x0
    return v0
    :empty
    const/4 v0, 0x1
    return v0
.end method

.method public toString()Ljava/lang/String;
    .locals 0
    return-object p0
.end method

.method public equals(Ljava/lang/Object;)Z
    .locals 1
    instance-of v0, p1, Ljava/lang/String;
    if-eqz v0, :other
    check-cast p1, Ljava/lang/String;
    invoke-virtual {p0, p1}, Ljava/lang/String;->compareTo(Ljava/lang/String;)I
    move-result v0
    if-nez v0, :other
    const/4 v0, 0x1
    return v0
    :other
    const/4 v0, 0x0
    return v0
.end method

.method public hashCode()I
    .locals 4
    iget v0, p0, Ljava/lang/String;->hash:I
    if-nez v0, :known
    invoke-virtual {p0}, Ljava/lang/String;->length()I
    move-result v1
    const/4 v2, 0x0
    :next
    if-ge v2, v1, :done
    mul-int/lit8 v0, v0, 0x1f
    invoke-virtual {p0, v2}, Ljava/lang/String;->charAt(I)C
    move-result v3
    add-int/2addr v0, v3
    add-int/lit8 v2, v2, 0x1
    goto :next
    :done
    iput v0, p0, Ljava/lang/String;->hash:I
    :known
    return v0
.end method

.method public indexOf(I)I
    .locals 1
    const/4 v0, 0x0
    invoke-virtual {p0, p1, v0}, Ljava/lang/String;->indexOf(II)I
    move-result v0
    return v0
.end method

.method public indexOf(II)I
    .locals 3
    invoke-virtual {p0}, Ljava/lang/String;->length()I
    move-result v0
    if-gez p2, :next
    const/4 p2, 0x0
    :next
    if-ge p2, v0, :absent
    invoke-virtual {p0, p2}, Ljava/lang/String;->charAt(I)C
    move-result v1
    if-eq v1, p1, :found
    add-int/lit8 p2, p2, 0x1
    goto :next
    :found
    return p2
    :absent
    const/4 v0, -0x1
    return v0
.end method

.method public substring(II)Ljava/lang/String;
    .locals 1
    if-ltz p1, :outside
    if-gt p1, p2, :outside
    invoke-virtual {p0}, Ljava/lang/String;->length()I
    move-result v0
    if-gt p2, v0, :outside
    sub-int v0, p2, p1
    invoke-virtual {p0, p1, v0}, Ljava/lang/String;->fastSubstring(II)Ljava/lang/String;
    move-result-object v0
    return-object v0
    :outside
    new-instance v0, Ljava/lang/StringIndexOutOfBoundsException;
    invoke-direct {v0}, Ljava/lang/StringIndexOutOfBoundsException;-><init>()V
    throw v0
.end method
