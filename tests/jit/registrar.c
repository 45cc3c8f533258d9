// usage: registrar OBJECT ROUNDS
//
// A just-in-time compiler that tells GDB of its code: puts the .text of OBJECT into memory, registers the
// object with the addresses that it has there, and calls its first function. Prints where its code is; with
// 0 rounds it then waits until its standard input ends. Also asks for the time often: in the vdso.
#define _GNU_SOURCE
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

// GDB's documentation, "JIT Compilation Interface".
struct jit_code_entry {
    struct jit_code_entry *next_entry, *prev_entry;
    const char *symfile_addr;
    uint64_t symfile_size;
};
struct jit_descriptor {
    uint32_t version, action_flag;
    struct jit_code_entry *relevant_entry, *first_entry;
};
struct jit_descriptor __jit_debug_descriptor = {1, 0, 0, 0};
void __attribute__((noinline)) __jit_debug_register_code(void)
{
    __asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    FILE *file = fopen(argv[1], "rb");
    if (!file)
        return 1;
    static char object[1 << 20];
    size_t size = fread(object, 1, sizeof object, file);
    fclose(file);
    Elf64_Ehdr *header = (Elf64_Ehdr *)object;
    Elf64_Shdr *sections = (Elf64_Shdr *)(object + header->e_shoff);
    const char *names = object + sections[header->e_shstrndx].sh_offset;
    for (int i = 0; i < header->e_shnum; i++) {
        if (strcmp(names + sections[i].sh_name, ".text"))
            continue;
        size_t length = sections[i].sh_size;
        char *code = mmap(0, length, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (code == MAP_FAILED)
            return 1;
        memcpy(code, object + sections[i].sh_offset, length);
        __builtin___clear_cache(code, code + length);
        sections[i].sh_addr = (uintptr_t)code;

        static struct jit_code_entry entry;
        entry = (struct jit_code_entry){0, 0, object, size};
        __jit_debug_descriptor.first_entry = __jit_debug_descriptor.relevant_entry = &entry;
        __jit_debug_descriptor.action_flag = 1;
        __jit_debug_register_code();

        long rounds = atol(argv[2]);
        printf("%p %zu\n", (void *)code, length);
        fflush(stdout);
        long sum = 0;
        for (long round = 0; round < rounds; round++) {
            struct timespec now;
            for (int times = 0; times < 2000; times++)
                clock_gettime(CLOCK_MONOTONIC, &now);
            sum += ((long (*)(long))code)(100000);
        }
        if (!rounds)
            getchar();
        return sum == 1;
    }
    return 1;
}
