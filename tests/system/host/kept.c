/* A program with known shares: `three`, `two` and `one` take three, two and one sixth of its time. Arguments: milliseconds of processor time;
   what it does before: `delete` itself, or move its text to `anonymous` memory or a `memfd`; a FIFO that it waits for then. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

#define WORK(name)                                                                                                     \
    __attribute__((noinline, noclone)) void name(long rounds) {                                                       \
        unsigned long value = sink;                                                                                    \
        for (long round = 0; round < rounds; round++)                                                                  \
            value = value * 6364136223846793005ul + 1442695040888963407ul;                                             \
        sink = value;                                                                                                  \
    }
WORK(three)
WORK(two)
WORK(one)

__attribute__((noinline, noclone)) static void outer(void) {
    three(30000);
    two(20000);
    one(10000);
    sink++;
}

static int replace_text(int with_file) {
    unsigned long start = 0, end = 0;
    char line[512], mode[8];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, mode) == 3 && start <= (unsigned long)three && (unsigned long)three < end)
            break;
    size_t size = end - start;
    void *text = (void *)start;
    if (with_file) {
        int file = memfd_create("text", 0);
        if (file < 0 || write(file, text, size) != (ssize_t)size)
            return 1;
        return mmap(text, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED;
    }
    void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return 1;
    memcpy(copy, text, size);
    if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, text) == MAP_FAILED)
        return 1;
    return mprotect(text, size, PROT_READ | PROT_EXEC);
}

int main(int count, char **arguments) {
    long budget = count > 1 ? atol(arguments[1]) : 0;
    const char *before = count > 2 ? arguments[2] : "";
    if (!strcmp(before, "delete") && unlink(arguments[0]))
        return 1;
    if ((!strcmp(before, "anonymous") && replace_text(0)) || (!strcmp(before, "memfd") && replace_text(1)))
        return 1;
    if (count > 3) {
        puts("ready");
        fflush(stdout);
        FILE *go = fopen(arguments[3], "r");
        if (!go || fgetc(go) == EOF)
            return 1;
    }
    struct timespec used;
    do {
        outer();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    } while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < budget);
    return 0;
}
