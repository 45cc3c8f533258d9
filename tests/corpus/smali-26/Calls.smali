# Calls that versions before 038 do not have.
.class public Lorg/example/corpus/Calls;
.super Ljava/lang/Object;
.source "Calls.java"

.method public static polymorphic(Ljava/lang/invoke/MethodHandle;)V
    .registers 8
    .line 1
    const/4 v0, 0x1
    invoke-polymorphic {p0, v0, v1, v2, v3}, Ljava/lang/invoke/MethodHandle;->invoke([Ljava/lang/Object;)Ljava/lang/Object;, (IIII)V
    .line 2
    invoke-polymorphic/range {v0 .. v6}, Ljava/lang/invoke/MethodHandle;->invokeExact([Ljava/lang/Object;)Ljava/lang/Object;, (IIIJF)Ljava/lang/String;
    return-void
.end method

.method public static custom()V
    .registers 4
    .line 1
    invoke-custom {v0, v1}, call_site_0("name", (II)V)@Lorg/example/corpus/Calls;->bootstrap(Ljava/lang/invoke/MethodHandles$Lookup;Ljava/lang/String;Ljava/lang/invoke/MethodType;)Ljava/lang/invoke/CallSite;
    .line 2
    invoke-custom/range {v0 .. v3}, call_site_1("other", (IIII)V)@Lorg/example/corpus/Calls;->bootstrap(Ljava/lang/invoke/MethodHandles$Lookup;Ljava/lang/String;Ljava/lang/invoke/MethodType;)Ljava/lang/invoke/CallSite;
    return-void
.end method

.method public static bootstrap(Ljava/lang/invoke/MethodHandles$Lookup;Ljava/lang/String;Ljava/lang/invoke/MethodType;)Ljava/lang/invoke/CallSite;
    .registers 4
    const/4 v0, 0x0
    return-object v0
.end method
