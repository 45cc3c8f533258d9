.method static constructor <clinit>()V
    .locals 3
    new-instance v0, Ljava/lang/ThreadGroup;
    const/4 v1, 0x0
    const-string v2, "system"
    invoke-direct {v0, v1, v2}, Ljava/lang/ThreadGroup;-><init>(Ljava/lang/ThreadGroup;Ljava/lang/String;)V
    sput-object v0, Ljava/lang/ThreadGroup;->systemThreadGroup:Ljava/lang/ThreadGroup;
    new-instance v1, Ljava/lang/ThreadGroup;
    const-string v2, "main"
    invoke-direct {v1, v0, v2}, Ljava/lang/ThreadGroup;-><init>(Ljava/lang/ThreadGroup;Ljava/lang/String;)V
    sput-object v1, Ljava/lang/ThreadGroup;->mainThreadGroup:Ljava/lang/ThreadGroup;
    return-void
.end method

.method private constructor <init>(Ljava/lang/ThreadGroup;Ljava/lang/String;)V
    .locals 0
    invoke-direct {p0}, Ljava/lang/Object;-><init>()V
    iput-object p1, p0, Ljava/lang/ThreadGroup;->parent:Ljava/lang/ThreadGroup;
    iput-object p2, p0, Ljava/lang/ThreadGroup;->name:Ljava/lang/String;
    return-void
.end method

# Groups keep no list of their threads: nothing here asks for one.
.method public add(Ljava/lang/Thread;)V
    .locals 0
    return-void
.end method

.method public threadTerminated(Ljava/lang/Thread;)V
    .locals 0
    return-void
.end method
