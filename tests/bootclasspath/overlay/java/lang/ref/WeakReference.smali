.method public constructor <init>(Ljava/lang/Object;)V
    .locals 0
    invoke-direct {p0, p1}, Ljava/lang/ref/Reference;-><init>(Ljava/lang/Object;)V
    return-void
.end method
