.field private static systemClassLoader:Ljava/lang/ClassLoader;

.method public static declared-synchronized getSystemClassLoader()Ljava/lang/ClassLoader;
    .locals 1
    sget-object v0, Ljava/lang/ClassLoader;->systemClassLoader:Ljava/lang/ClassLoader;
    if-nez v0, :known
    new-instance v0, Ldalvik/system/PathClassLoader;
    invoke-direct {v0}, Ldalvik/system/PathClassLoader;-><init>()V
    sput-object v0, Ljava/lang/ClassLoader;->systemClassLoader:Ljava/lang/ClassLoader;
    :known
    return-object v0
.end method

# Programs stand on the boot class path: what the runtime did not find there is nowhere.
.method public loadClass(Ljava/lang/String;)Ljava/lang/Class;
    .locals 1
    new-instance v0, Ljava/lang/ClassNotFoundException;
    invoke-direct {v0, p1}, Ljava/lang/ClassNotFoundException;-><init>(Ljava/lang/String;)V
    throw v0
.end method
