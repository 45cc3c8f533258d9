# A class outside any package, as an obfuscator leaves it: no source file, hardly a line, names of one letter.
.class public LNoPackage;
.super Ljava/lang/Object;

.method public static a()I
    .registers 2
    const/4 v0, 0x1
    invoke-static {v0}, LNoPackage;->a(I)I
    move-result v0
    int-to-long v0, v0
    invoke-static {v0, v1}, LNoPackage;->a(J)I
    move-result v0
    return v0
.end method

.method public static a(I)I
    .registers 1
    add-int/lit8 p0, p0, 0x1
    return p0
.end method

.method public static a(J)I
    .registers 3
    .line 41
    long-to-int v0, p0
    mul-int/lit8 v0, v0, 0x3
    return v0
.end method
