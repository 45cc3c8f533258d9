.method static constructor <clinit>()V
    .locals 1
    new-instance v0, Ljava/util/ArrayList;
    invoke-direct {v0}, Ljava/util/ArrayList;-><init>()V
    sput-object v0, Ljava/util/Collections;->EMPTY_LIST:Ljava/util/List;
    return-void
.end method
