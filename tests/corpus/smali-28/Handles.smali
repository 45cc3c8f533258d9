# Constants that versions before 039 do not have.
.class public Lorg/example/corpus/Handles;
.super Ljava/lang/Object;

.field public static place:I

.method public static handles()V
    .registers 1
    .line 1
    const-method-handle v0, invoke-static@Lorg/example/corpus/Handles;->handles()V
    .line 2
    const-method-handle v0, static-get@Lorg/example/corpus/Handles;->place:I
    .line 3
    const-method-type v0, (I[Ljava/lang/String;J)V
    return-void
.end method
