.method public static runFinalization(J)V
    .locals 0
    return-void
.end method

.method public static hiddenApiUsed(ILjava/lang/String;Ljava/lang/String;IZ)V
    .locals 0
    return-void
.end method
