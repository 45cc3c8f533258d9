# Names and strings that are more than letters.
.class public Lorg/example/corpus/Größe$1-世界;
.super Ljava/lang/Object;
.source "Größe 世界.kt"

.field public static 名:Ljava/lang/String;
.field private final synthetic this$0:[[Lorg/example/corpus/Größe$1-世界;

.method public static synthetic bridge lambda$größe$0(Lorg/example/corpus/Größe$1-世界;[[I)Lorg/example/corpus/Größe$1-世界;
    .registers 4
    .param p0, "größe"    # Lorg/example/corpus/Größe$1-世界;
    .param p1, "表"    # [[I
    .line 1
    sget-object v0, Lorg/example/corpus/Größe$1-世界;->名:Ljava/lang/String;
    .line 2
    iget-object v1, p0, Lorg/example/corpus/Größe$1-世界;->this$0:[[Lorg/example/corpus/Größe$1-世界;
    .line 3
    invoke-static {p0, p1}, Lorg/example/corpus/Größe$1-世界;->lambda$größe$0(Lorg/example/corpus/Größe$1-世界;[[I)Lorg/example/corpus/Größe$1-世界;
    move-result-object p0
    return-object p0
.end method

.method public strings()V
    .registers 1
    const-string v0, ""
    const-string v0, "two\nlines, a\ttab, a \"quote\", a back\\slash, a \r"
    const-string v0, "\u0000 nul, \u0001, \u007f, \u0085, \u2028"
    const-string v0, "grün 世界 \ud83d\ude00"
    const-string v0, "half \ud83d of a pair \ude00"
    const-string v0, "%s %d %n // string@0000"
    const-string/jumbo v0, "locals        : "
    return-void
.end method

.method protected final declared-synchronized varargs flags([Ljava/lang/Object;)V
    .registers 2
    return-void
.end method

.method public native strictfp native0()V
.end method
