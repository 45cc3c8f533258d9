# One name for many methods: told apart by parameters, and, as only bytecode can, by the return type alone.
.class public Lorg/example/odd/Overloads;
.super Ljava/lang/Object;
.source "Overloads.java"

.field static initialised:I

.field final value:I

.method static constructor <clinit>()V
    .registers 1
    .line 6
    const/16 v0, 0x64
    sput v0, Lorg/example/odd/Overloads;->initialised:I
    .line 7
    return-void
.end method

.method public constructor <init>()V
    .registers 2
    .line 9
    const/4 v0, 0x5
    invoke-direct {p0, v0}, Lorg/example/odd/Overloads;-><init>(I)V
    .line 10
    return-void
.end method

.method public constructor <init>(I)V
    .registers 2
    .line 12
    invoke-direct {p0}, Ljava/lang/Object;-><init>()V
    .line 13
    iput p1, p0, Lorg/example/odd/Overloads;->value:I
    .line 14
    return-void
.end method

.method public static all()I
    .registers 8
    .line 17
    sget v0, Lorg/example/odd/Overloads;->initialised:I
    .line 18
    new-instance v1, Lorg/example/odd/Overloads;
    invoke-direct {v1}, Lorg/example/odd/Overloads;-><init>()V
    iget v2, v1, Lorg/example/odd/Overloads;->value:I
    add-int/2addr v0, v2
    .line 19
    const/4 v2, 0x1
    invoke-virtual {v1, v2}, Lorg/example/odd/Overloads;->f(I)I
    move-result v2
    add-int/2addr v0, v2
    .line 20
    const-wide/16 v2, 0x2
    invoke-virtual {v1, v2, v3}, Lorg/example/odd/Overloads;->f(J)I
    move-result v2
    add-int/2addr v0, v2
    .line 21
    const/4 v2, 0x3
    new-array v2, v2, [I
    invoke-virtual {v1, v2}, Lorg/example/odd/Overloads;->f([I)I
    move-result v3
    add-int/2addr v0, v3
    .line 22
    const/4 v2, 0x0
    invoke-virtual {v1, v2}, Lorg/example/odd/Overloads;->f(Ljava/lang/String;)I
    move-result v3
    add-int/2addr v0, v3
    .line 23
    const-wide/high16 v4, 0x4000000000000000L
    const/4 v6, 0x1
    invoke-virtual {v1, v4, v5, v2, v6}, Lorg/example/odd/Overloads;->f(D[[Ljava/lang/Object;Z)I
    move-result v3
    add-int/2addr v0, v3
    .line 24
    invoke-virtual {v1}, Lorg/example/odd/Overloads;->g()I
    move-result v3
    add-int/2addr v0, v3
    .line 25
    invoke-virtual {v1}, Lorg/example/odd/Overloads;->g()J
    move-result-wide v4
    long-to-int v3, v4
    add-int/2addr v0, v3
    .line 26
    invoke-virtual {v1}, Lorg/example/odd/Overloads;->nothing()V
    .line 27
    return v0
.end method

.method public f(I)I
    .registers 3
    .line 30
    add-int/lit16 v0, p1, 0x3e8
    return v0
.end method

.method public f(J)I
    .registers 4
    .line 31
    long-to-int v0, p1
    add-int/lit16 v0, v0, 0x7d0
    return v0
.end method

.method public f([I)I
    .registers 3
    .line 32
    array-length v0, p1
    add-int/lit16 v0, v0, 0xbb8
    return v0
.end method

.method public f(Ljava/lang/String;)I
    .registers 3
    .line 33
    const/16 v0, 0xfa0
    return v0
.end method

.method public f(D[[Ljava/lang/Object;Z)I
    .registers 6
    .line 34
    double-to-int v0, p1
    add-int/2addr v0, p4
    add-int/lit16 v0, v0, 0x1388
    return v0
.end method

.method public g()I
    .registers 2
    .line 35
    const/16 v0, 0x1770
    return v0
.end method

.method public g()J
    .registers 3
    .line 36
    const-wide/16 v0, 0x1b58
    return-wide v0
.end method

# The shortest method there is: one code unit.
.method public nothing()V
    .registers 1
    return-void
.end method

# Without code: never called.
.method public native nowhere()V
.end method
