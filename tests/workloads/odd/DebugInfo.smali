# Line tables of every kind.
.class public Lorg/example/odd/DebugInfo;
.super Ljava/lang/Object;
.source "DebugInfo.java"

.method public static all()I
    .registers 2
    .line 5
    invoke-static {}, Lorg/example/odd/DebugInfo;->none()I
    move-result v0
    .line 6
    invoke-static {}, Lorg/example/odd/DebugInfo;->late()I
    move-result v1
    add-int/2addr v0, v1
    .line 7
    invoke-static {}, Lorg/example/odd/DebugInfo;->backwards()I
    move-result v1
    add-int/2addr v0, v1
    .line 8
    invoke-static {}, Lorg/example/odd/DebugInfo;->farApart()I
    move-result v1
    add-int/2addr v0, v1
    .line 9
    const/4 v1, 0x3
    invoke-static {v1}, Lorg/example/odd/DebugInfo;->locals(I)I
    move-result v1
    add-int/2addr v0, v1
    .line 10
    invoke-static {}, Lorg/example/odd/DebugInfo;->otherFile()I
    move-result v1
    add-int/2addr v0, v1
    .line 11
    return v0
.end method

# No debug information at all.
.method public static none()I
    .registers 1
    const/16 v0, 0x1
    return v0
.end method

# The first instructions have no line.
.method public static late()I
    .registers 1
    const/16 v0, 0x1
    add-int/lit8 v0, v0, 0x1
    .line 30
    return v0
.end method

# Lines that go back, and come again.
.method public static backwards()I
    .registers 1
    .line 50
    const/16 v0, 0x1
    .line 40
    add-int/lit8 v0, v0, 0x1
    .line 50
    add-int/lit8 v0, v0, 0x1
    .line 40
    return v0
.end method

# Lines too far apart for one special opcode, and beyond 16 bits.
.method public static farApart()I
    .registers 1
    .line 1
    const/16 v0, 0x2
    .line 70000
    add-int/lit8 v0, v0, 0x2
    .line 65535
    return v0
.end method

# Parameters and locals that begin, end and come back; prologue and epilogue.
.method public static locals(I)I
    .registers 4
    .param p0, "count"
    .prologue
    .line 60
    const/4 v0, 0x0
    .local v0, "total":I
    .line 61
    const/4 v1, 0x2
    .local v1, "step":I, "Ljava/lang/Integer;"
    add-int/2addr v0, v1
    .end local v1
    .line 62
    add-int/2addr v0, p0
    .restart local v1
    .line 63
    add-int/2addr v0, v1
    .epilogue
    return v0
.end method

# Inlined by a preprocessor: part of the method comes from another file.
.method public static otherFile()I
    .registers 1
    .line 80
    const/16 v0, 0x4
    .source "Included.java"
    .line 3
    add-int/lit8 v0, v0, 0x4
    .source "DebugInfo.java"
    .line 82
    return v0
.end method
