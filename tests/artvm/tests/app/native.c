/* What does the test app's native library do? Counts its JNI_OnLoad, doubles, and shows the process's names. */
#include <stdint.h>
#include <stdio.h>

static int loads;

int JNI_OnLoad(void *vm, void *reserved)
{
    (void)vm;
    (void)reserved;
    loads++;
    return 0x00010006;
}

int64_t Java_org_example_vm_Main_twice(void *env, void *cls, int32_t n)
{
    (void)env;
    (void)cls;
    return 2 * (int64_t)n + loads;
}

/* The file's bytes up to `size`, NUL shown as a tilde. */
static void show(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t count = file ? fread(text, 1, size - 1, file) : 0;
    if (file)
        fclose(file);
    for (size_t i = 0; i < count; i++)
        if (text[i] == '\0')
            text[i] = '~';
    text[count] = '\0';
}

int64_t Java_org_example_vm_Main_printName(void *env, void *cls, int32_t n)
{
    char cmdline[512], comm[32];
    (void)env;
    (void)cls;
    show("/proc/self/cmdline", cmdline, sizeof cmdline);
    show("/proc/self/comm", comm, sizeof comm);
    printf("cmdline=%s comm=%s", cmdline, comm);
    fflush(stdout);
    return n;
}
