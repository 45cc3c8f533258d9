// Generated code without frame pointers calls a function of the program: an adapter, of which nobody says anything, and a function that
// the jitdump file describes.
// usage: frames ROUNDS      writes jit-PID.dump here; on x86-64
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int dump;
static char dump_name[64];

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void put(const void *bytes, size_t size)
{
    if (write(dump, bytes, size) != (ssize_t)size)
        exit(1);
}

static void put_record(uint32_t kind, size_t size)
{
    struct {
        uint32_t kind, size;
        uint64_t time;
    } head = {kind, (uint32_t)(sizeof head + size), now()};
    put(&head, sizeof head);
}

// Says that there is code, and how its frames are left if that is not empty.
static void load(const char *name, const uint8_t *code, uint64_t size, const uint8_t *eh_frame, uint64_t described)
{
    static uint64_t index;
    if (described) {
        uint64_t sizes[3] = {described, 0, described};
        put_record(4, sizeof sizes + described);
        put(sizes, sizeof sizes);
        put(eh_frame, described);
    }
    struct {
        uint32_t pid, tid;
        uint64_t address, runs_at, size, index;
    } load = {(uint32_t)getpid(), (uint32_t)getpid(), (uint64_t)code, (uint64_t)code, size, index++};
    put_record(0, sizeof load + strlen(name) + 1 + size);
    put(&load, sizeof load);
    put(name, strlen(name) + 1);
    put(code, size);
}

static void begin(void)
{
    snprintf(dump_name, sizeof dump_name, "jit-%d.dump", getpid());
    dump = open(dump_name, O_CREAT | O_TRUNC | O_RDWR, 0600);
    struct {
        uint32_t magic, version, size, machine, padding, pid;
        uint64_t time, flags;
    } head = {0x4A695444, 1, sizeof head, 62, 0, (uint32_t)getpid(), now(), 0};
    put(&head, sizeof head);
    // Profilers learn of the file by this.
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0);
}

__attribute__((noinline)) long hot(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++) {
        sum += i * i;
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    begin();
    uint8_t *memory = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // sub rsp, 24; mov rax, hot; call rax; nop; add rsp, 24; ret
    uint8_t described[] = {0x48, 0x83, 0xec, 24, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x90, 0x48, 0x83, 0xc4, 24, 0xc3};
    long (*callee)(long) = hot;
    memcpy(described + 6, &callee, sizeof callee);
    // sub rsp, 8; call rsi; add rsp, 8; ret
    uint8_t adapter[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd6, 0x48, 0x83, 0xc4, 8, 0xc3};
    memcpy(memory, described, sizeof described);
    memcpy(memory + 64, adapter, sizeof adapter);
    mprotect(memory, 4096, PROT_READ | PROT_EXEC);

    // It lies 24 bytes behind the function's beginning. A CIE: rsp + 8, the return address below; an FDE: rsp + 32 behind the first instruction.
    uint8_t eh_frame[] = {
        20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 12, 7, 8, 0x90, 1, 0, 0,
        20, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, sizeof described, 0, 0, 0, 0, 0x44, 14, 32, 0, 0, 0, 0,
        0, 0, 0, 0,
    };
    int32_t back = -(24 + 32);
    memcpy(eh_frame + 32, &back, sizeof back);
    load("described", memory, sizeof described, eh_frame, sizeof eh_frame);
    load("adapter", memory + 64, sizeof adapter, 0, 0);

    long (*call)(long, void *) = (long (*)(long, void *))(void *)(memory + 64);
    long sum = 0;
    for (long i = 0; i < rounds; i++)
        sum += call(200000, memory);
    printf("%ld\n", sum);
    unlink(dump_name);
    return 0;
}
