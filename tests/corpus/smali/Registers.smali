# More registers than the short forms reach.
.class public Lorg/example/corpus/Registers;
.super Ljava/lang/Object;

.method static many()V
    .registers 256
    .line 1
    move v15, v0
    move/from16 v255, v15
    move-wide/from16 v254, v0
    move-object/16 v16, v255
    .line 2
    invoke-static/range {v0 .. v254}, Lorg/example/corpus/Registers;->take()V
    filled-new-array/range {v250 .. v255}, [I
    aget-object v255, v254, v253
    return-void
.end method

.method static most()V
    .registers 65535
    .line 1
    move/16 v65534, v65533
    move-wide/16 v65533, v1
    invoke-static/range {v65533 .. v65534}, Lorg/example/corpus/Registers;->take()V
    return-void
.end method

.method static take()V
    .registers 0
    return-void
.end method

.method static arguments(JDJDJDJDJDIIIIIZ)V
    .registers 30
    .param p0, "a"    # J
    .param p2, "b"    # D
    .param p25, "z"    # Z
    .line 1
    return-void
.end method
