// Maps the file of a tree into a Java program, where the agent would: cc -shared -fPIC -o map.so map.c
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

__attribute__((constructor)) static void map_tree(void) {
    const char *path = getenv("VARID_TEST_TREE");
    const char *address = getenv("VARID_TEST_ADDRESS");
    const char *length = getenv("VARID_TEST_LENGTH");
    if (!path || !address || !length)
        return;
    void *wanted = (void *)strtoull(address, NULL, 16);
    int file = open(path, O_RDWR);
    if (file < 0)
        abort();
    void *mapped = mmap(wanted, strtoull(length, NULL, 10), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
    if (mapped != wanted)
        abort();
}
