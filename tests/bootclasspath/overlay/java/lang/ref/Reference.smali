.method public constructor <init>(Ljava/lang/Object;)V
    .locals 0
    invoke-direct {p0}, Ljava/lang/Object;-><init>()V
    iput-object p1, p0, Ljava/lang/ref/Reference;->referent:Ljava/lang/Object;
    return-void
.end method

.method public get()Ljava/lang/Object;
    .locals 1
    invoke-direct {p0}, Ljava/lang/ref/Reference;->getReferent()Ljava/lang/Object;
    move-result-object v0
    return-object v0
.end method

.method public clear()V
    .locals 0
    invoke-direct {p0}, Ljava/lang/ref/Reference;->clearReferent()V
    return-void
.end method

.method public static reachabilityFence(Ljava/lang/Object;)V
    .locals 0
    return-void
.end method
