.method public constructor <init>()V
    .locals 1
    invoke-direct {p0}, Ljava/lang/Object;-><init>()V
    invoke-static {}, Ljava/lang/Throwable;->nativeFillInStackTrace()Ljava/lang/Object;
    move-result-object v0
    iput-object v0, p0, Ljava/lang/Throwable;->backtrace:Ljava/lang/Object;
    return-void
.end method

.method public constructor <init>(Ljava/lang/String;)V
    .locals 1
    invoke-direct {p0}, Ljava/lang/Object;-><init>()V
    invoke-static {}, Ljava/lang/Throwable;->nativeFillInStackTrace()Ljava/lang/Object;
    move-result-object v0
    iput-object v0, p0, Ljava/lang/Throwable;->backtrace:Ljava/lang/Object;
    iput-object p1, p0, Ljava/lang/Throwable;->detailMessage:Ljava/lang/String;
    return-void
.end method

.method public constructor <init>(Ljava/lang/String;Ljava/lang/Throwable;)V
    .locals 1
    invoke-direct {p0}, Ljava/lang/Object;-><init>()V
    invoke-static {}, Ljava/lang/Throwable;->nativeFillInStackTrace()Ljava/lang/Object;
    move-result-object v0
    iput-object v0, p0, Ljava/lang/Throwable;->backtrace:Ljava/lang/Object;
    iput-object p1, p0, Ljava/lang/Throwable;->detailMessage:Ljava/lang/String;
    iput-object p2, p0, Ljava/lang/Throwable;->cause:Ljava/lang/Throwable;
    return-void
.end method

.method public constructor <init>(Ljava/lang/Throwable;)V
    .locals 1
    invoke-direct {p0}, Ljava/lang/Object;-><init>()V
    invoke-static {}, Ljava/lang/Throwable;->nativeFillInStackTrace()Ljava/lang/Object;
    move-result-object v0
    iput-object v0, p0, Ljava/lang/Throwable;->backtrace:Ljava/lang/Object;
    iput-object p1, p0, Ljava/lang/Throwable;->cause:Ljava/lang/Throwable;
    return-void
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
