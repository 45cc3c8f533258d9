// Runs an ELF file on a core in Verilator until its first system call, and writes what each instruction took.
// usage: CORE PROGRAM.elf PROFILE.tsv
// The profile's first lines are `# NAME VALUE`: cycles, and cache refills of cores that have caches.

#include BUS
#include "memory.h"
#include "profile.h"

#include "Vtb.h"
#include "verilated.h"

#include <cstdio>
#include <exception>

static void run(const char *program, const char *output)
{
    Memory memory(program);
    Profile profile(memory);
    Vtb tb;
    Bus bus;
    unsigned reset = 200;
    uint64_t instruction_refills = 0, data_refills = 0;
    bool done = false;
    for (uint64_t cycle = 0; !done; cycle++) {
        if (cycle > 1'000'000'000)
            throw std::runtime_error("the program does not end");
        tb.resetn = reset == 0;
        tb.clk = 0;
        tb.eval();
        bus.sample(tb, memory);
        if (reset == 0) {
            done = profile.cycle({tb.occupied != 0, tb.pc, tb.leaves != 0});
            instruction_refills += tb.instruction_refill;
            data_refills += tb.data_refill;
        } else {
            reset--;
        }
        tb.clk = 1;
        tb.eval();
        bus.drive(tb);
    }
    std::FILE *out = std::fopen(output, "w");
    if (out == nullptr)
        throw std::runtime_error(std::string("cannot write ") + output);
    std::fprintf(out, "# cycles %llu\n", static_cast<unsigned long long>(profile.cycles()));
    if (tb.has_caches) {
        std::fprintf(out, "# icache_misses %llu\n", static_cast<unsigned long long>(instruction_refills));
        std::fprintf(out, "# dcache_misses %llu\n", static_cast<unsigned long long>(data_refills));
    }
    profile.print(out);
    std::fclose(out);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s PROGRAM.elf PROFILE.tsv\n", argv[0]);
        return 2;
    }
    try {
        run(argv[1], argv[2]);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s: %s\n", argv[1], error.what());
        return 1;
    }
    return 0;
}
