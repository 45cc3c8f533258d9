# Names that a symbol table, a shell or perf may stumble over. Each method returns a power of two.
.class public Lorg/example/odd/Names;
.super Ljava/lang/Object;
.source "Names.java"

.method public static all()I
    .registers 2
    .line 5
    invoke-static {}, Lorg/example/odd/Names;->größe()I
    move-result v0
    .line 6
    invoke-static {}, Lorg/example/odd/Names;->计算()I
    move-result v1
    add-int/2addr v0, v1
    .line 7
    invoke-static {}, Lorg/example/odd/Names;->()I
    move-result v1
    add-int/2addr v0, v1
    .line 8
    invoke-static {}, Lorg/example/odd/Names;->lambda$all$0()I
    move-result v1
    add-int/2addr v0, v1
    .line 9
    invoke-static {}, Lorg/example/odd/Names;->access$000()I
    move-result v1
    add-int/2addr v0, v1
    .line 10
    invoke-static {}, Lorg/example/odd/Names;->-$$Nest$sm()I
    move-result v1
    add-int/2addr v0, v1
    .line 11
    invoke-static {}, Lorg/example/odd/Names;->_ZN3odd3addEii()I
    move-result v1
    add-int/2addr v0, v1
    .line 12
    invoke-static {}, Lorg/example/odd/Names$Inner$1;->a()I
    move-result v1
    add-int/2addr v0, v1
    .line 13
    invoke-static {}, Lorg/example/odd/Größe;->größe()I
    move-result v1
    add-int/2addr v0, v1
    .line 14
    invoke-static {}, Lorg/example/odd/Names;->`with a space`()I
    move-result v1
    add-int/2addr v0, v1
    .line 15
    return v0
.end method

.method public static größe()I
    .registers 1
    .line 20
    const/16 v0, 0x1
    return v0
.end method

.method public static 计算()I
    .registers 1
    .line 21
    const/16 v0, 0x2
    return v0
.end method

# Becomes U+1F600, which is outside the basic plane: two surrogates in the dex file's encoding (finish.py).
.method public static ()I
    .registers 1
    .line 22
    const/16 v0, 0x4
    return v0
.end method

.method private static synthetic lambda$all$0()I
    .registers 1
    .line 23
    const/16 v0, 0x8
    return v0
.end method

.method static synthetic access$000()I
    .registers 1
    .line 24
    const/16 v0, 0x10
    return v0
.end method

.method static bridge synthetic -$$Nest$sm()I
    .registers 1
    .line 25
    const/16 v0, 0x20
    return v0
.end method

.method public static _ZN3odd3addEii()I
    .registers 1
    .line 26
    const/16 v0, 0x40
    return v0
.end method

# Allowed since version 040 of the format (finish.py).
.method public static `with a space`()I
    .registers 1
    .line 27
    const/16 v0, 0x200
    return v0
.end method
