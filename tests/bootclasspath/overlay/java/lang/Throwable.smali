.method public constructor <init>()V
    .locals 0
    invoke-direct {p0}, Ljava/lang/Object;-><init>()V
    invoke-virtual {p0}, Ljava/lang/Throwable;->fillInStackTrace()Ljava/lang/Throwable;
    return-void
.end method

.method public constructor <init>(Ljava/lang/String;)V
    .locals 0
    invoke-direct {p0}, Ljava/lang/Object;-><init>()V
    invoke-virtual {p0}, Ljava/lang/Throwable;->fillInStackTrace()Ljava/lang/Throwable;
    iput-object p1, p0, Ljava/lang/Throwable;->detailMessage:Ljava/lang/String;
    return-void
.end method

.method public constructor <init>(Ljava/lang/String;Ljava/lang/Throwable;)V
    .locals 0
    invoke-direct {p0}, Ljava/lang/Object;-><init>()V
    invoke-virtual {p0}, Ljava/lang/Throwable;->fillInStackTrace()Ljava/lang/Throwable;
    iput-object p1, p0, Ljava/lang/Throwable;->detailMessage:Ljava/lang/String;
    iput-object p2, p0, Ljava/lang/Throwable;->cause:Ljava/lang/Throwable;
    return-void
.end method

.method public constructor <init>(Ljava/lang/Throwable;)V
    .locals 0
    invoke-direct {p0}, Ljava/lang/Object;-><init>()V
    invoke-virtual {p0}, Ljava/lang/Throwable;->fillInStackTrace()Ljava/lang/Throwable;
    iput-object p1, p0, Ljava/lang/Throwable;->cause:Ljava/lang/Throwable;
    return-void
.end method

# As on Android, a method that ART's compiler does not inline, because it catches: the compiler of ART 11 does not take throwing an object
# for letting it escape, and would leave out writes to the fields of a new exception that no call has seen.
.method public declared-synchronized fillInStackTrace()Ljava/lang/Throwable;
    .locals 1
    monitor-enter p0
    :try
    invoke-static {}, Ljava/lang/Throwable;->nativeFillInStackTrace()Ljava/lang/Object;
    move-result-object v0
    iput-object v0, p0, Ljava/lang/Throwable;->backtrace:Ljava/lang/Object;
    :try_end
    .catchall {:try .. :try_end} :failed
    monitor-exit p0
    return-object p0
    :failed
    move-exception v0
    monitor-exit p0
    throw v0
.end method

.method public getMessage()Ljava/lang/String;
    .locals 1
    iget-object v0, p0, Ljava/lang/Throwable;->detailMessage:Ljava/lang/String;
    return-object v0
.end method

.method public getCause()Ljava/lang/Throwable;
    .locals 1
    iget-object v0, p0, Ljava/lang/Throwable;->cause:Ljava/lang/Throwable;
    return-object v0
.end method

.method public getStackTrace()[Ljava/lang/StackTraceElement;
    .locals 1
    iget-object v0, p0, Ljava/lang/Throwable;->backtrace:Ljava/lang/Object;
    invoke-static {v0}, Ljava/lang/Throwable;->nativeGetStackTrace(Ljava/lang/Object;)[Ljava/lang/StackTraceElement;
    move-result-object v0
    return-object v0
.end method

# Registered by the launcher: class, message and stack on standard error.
.method public native printStackTrace()V
.end method
