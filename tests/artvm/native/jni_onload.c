/* What must libart find in libicu_jni.so and libjavacore.so? Only that they load: their natives are those of
 * classes that the tests' boot class path does not have. */
int JNI_OnLoad(void *vm, void *reserved)
{
    (void)vm;
    (void)reserved;
    return 0x00010006; /* JNI_VERSION_1_6 */
}
