/* What does the test app's native library do? Counts its JNI_OnLoad, doubles, shows the process's names, and where a method's code is. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../../../workloads/jni/jni_subset.h"

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

/* The file that holds the code of Compiled.sum: its jmethodID points to its ArtMethod. On 64 bits the entry point is at 32 in ART 11, and at 24
 * in ART 14; what is at the other place is no address of code. The line is as /proc/self/maps has it, from the name on. */
static void find_code(jni_env env, jni_class cls, char *file, size_t size)
{
    static const size_t entry_points[] = { 32, 24 };
    const char *method = (const char *)jni_static_method(env, cls, "sum", "(I)J");
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1024];
    uint64_t entry, start, end;
    snprintf(file, size, "none\n");
    while (maps && fgets(line, sizeof line, maps)) {
        int name = 0;
        if (sscanf(line, "%lx-%lx r-x%*c %*s %*s %*s %n", &start, &end, &name) < 2 || name == 0)
            continue;
        for (size_t i = 0; i < sizeof entry_points / sizeof *entry_points; i++) {
            memcpy(&entry, method + entry_points[i], sizeof entry);
            if (start <= entry && entry < end)
                snprintf(file, size, "%s", line + name);
        }
    }
    if (maps)
        fclose(maps);
}

/* Whether it is no entry of the interpreter, which is in libart. */
uint8_t Java_org_example_vm_Compiled_isCompiled(void *env, void *cls)
{
    char file[1024];
    find_code(env, cls, file, sizeof file);
    return strstr(file, "libart.so") == NULL;
}

void Java_org_example_vm_Compiled_showCode(void *env, void *cls)
{
    char file[1024];
    find_code(env, cls, file, sizeof file);
    fputs(file, stdout);
    fflush(stdout);
}
