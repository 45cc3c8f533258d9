# No folder of libraries: each is loaded by its path.
.method public getLdLibraryPath()Ljava/lang/String;
    .locals 1
    const/4 v0, 0x0
    return-object v0
.end method
