# A class and a method of one name, not in ASCII; only the name of this file is.
.class public Lorg/example/odd/Größe;
.super Ljava/lang/Object;
.source "Größe.java"

.method public static größe()I
    .registers 1
    .line 3
    const/16 v0, 0x100
    return v0
.end method
