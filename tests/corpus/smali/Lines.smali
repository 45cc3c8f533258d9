.class public Lorg/example/corpus/Lines;
.super Ljava/lang/Object;
.source "Lines.java"

# Forwards, backwards, by more than a special opcode can say, to the ends of what a class file has.
.method static jumps()V
    .registers 1
    .line 10
    const/4 v0, 0x0
    .line 11
    const/4 v0, 0x1
    .line 3
    const/4 v0, 0x2
    .line 20
    const/4 v0, 0x3
    .line 65535
    const/4 v0, 0x4
    .line 1
    const/4 v0, 0x5
    .line 0
    const/4 v0, 0x6
    .line 2147483647
    const/4 v0, 0x7
    .line 7
    return-void
.end method

# Every step of the address and of the line that a special opcode can make, and those just beyond.
.method static steps()V
    .registers 2
    .line 100
    const/4 v0, 0x0
    .line 96
    nop
    .line 95
    nop
    .line 105
    nop
    .line 116
    const-wide v0, 0x1122334455667788L
    const-wide v0, 0x1122334455667788L
    const-wide v0, 0x1122334455667788L
    .line 117
    const-wide v0, 0x1122334455667788L
    const-wide v0, 0x1122334455667788L
    const-wide v0, 0x1122334455667788L
    nop
    .line 118
    const-wide v0, 0x1122334455667788L
    const-wide v0, 0x1122334455667788L
    const-wide v0, 0x1122334455667788L
    nop
    nop
    .line 119
    return-void
.end method

# Several lines for one instruction.
.method static crowded()V
    .registers 0
    .line 1
    .line 2
    .line 3
    nop
    .line 4
    .line 4
    return-void
.end method

.method static prologueAndEpilogue(I)I
    .registers 2
    .param p0, "step"    # I
    .prologue
    .line 5
    const/4 v0, 0x1
    .line 6
    add-int/2addr v0, p0
    .prologue
    .line 7
    add-int/2addr v0, p0
    .epilogue
    .line 8
    return v0
.end method

# Inlined by hand from other files, one of which has no name.
.method static otherFiles()V
    .registers 0
    .line 1
    nop
    .source "Other.java"
    .line 2
    nop
    .source "Third.kt"
    nop
    .line 3
    nop
    .source
    .line 4
    nop
    .source "Lines.java"
    .line 5
    return-void
.end method

# The file changes and no line does.
.method static fileOnly()V
    .registers 0
    .source "Elsewhere.java"
    return-void
.end method

.method static noDebugInfo()V
    .registers 0
    nop
    return-void
.end method

# Parameters' names make debug information without a line.
.method static namesOnly(IJLjava/lang/String;D)V
    .registers 6
    .param p0, "count"    # I
    .param p1, "time"    # J
    .param p4, "ratio"    # D
    return-void
.end method

# The first line comes late.
.method static lateStart()V
    .registers 0
    nop
    nop
    nop
    .line 9
    return-void
.end method

.method public locals(ILjava/util/List;)V
    .registers 8
    .param p1, "first"    # I
    .param p2, "list"    # Ljava/util/List;
    .annotation system Ldalvik/annotation/Signature;
        value = { "(I", "Ljava/util/List<Ljava/lang/String;>;)V" }
    .end annotation
    .line 1
    const/4 v0, 0x0
    .local v0, "a":I
    .line 2
    const/4 v1, 0x0
    .local v1, "generic":Ljava/util/List;, "Ljava/util/List<Ljava/lang/String;>;"
    .line 3
    .end local v0    # "a":I
    const-wide v2, 0x0L
    .local v2, "wide":J
    .restart local v0    # "a":I
    .line 4
    .local v0, "shadow":F
    .local v4, null:D
    .line 5
    .end local p1    # "first":I
    return-void
.end method
