.method static constructor <clinit>()V
    .locals 1
    const/4 v0, 0x0
    new-array v0, v0, [Ljava/lang/StackTraceElement;
    sput-object v0, Llibcore/util/EmptyArray;->STACK_TRACE_ELEMENT:[Ljava/lang/StackTraceElement;
    return-void
.end method
