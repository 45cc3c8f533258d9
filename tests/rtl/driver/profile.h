// Counts of each instruction: executions, cycles, transfers taken.
//
// A core reports, in each cycle, which instruction occupies the stage in which its cycles are counted, and whether it
// leaves this stage for good. A cycle belongs to the instruction that occupies the stage; if the stage is empty, or
// holds an instruction that is later discarded, to the last one that has left it: a taken branch pays for its bubble.
#pragma once

#include "memory.h"

#include <cstdio>
#include <vector>

struct Stage {
    bool occupied;  // There is an instruction in the stage.
    uint32_t pc;    // Its address.
    bool leaves;    // This is its last cycle there, and it will retire.
};

class Profile {
public:
    explicit Profile(const Memory &memory) : memory(memory), counts((memory.code_end - memory.code_begin) / 2 + 1) {}

    // Counts a cycle. Returns true in the cycle after which nothing is executed any more.
    bool cycle(const Stage &stage)
    {
        if (!began) {
            if (!stage.occupied || stage.pc != memory.entry)
                return false;
            began = true;
        }
        now++;
        idle++;
        if (stage.occupied && memory.instruction(stage.pc) == ECALL && exit_pc != stage.pc) {
            exit_pc = stage.pc;
            exit_time = now - 1;
        }
        if (stage.occupied && stage.pc == candidate)
            held++;
        else {
            candidate = stage.occupied ? stage.pc : NONE;
            empty += held;
            held = stage.occupied;
            empty += !stage.occupied;
        }
        // The exit's ecall traps, and the trap's handler, at address 0, is no code.
        const bool is_code = stage.pc >= memory.code_begin && stage.pc < memory.code_end;
        if (stage.leaves && is_code && memory.instruction(stage.pc) != ECALL)
            commit(stage.pc);
        return idle > PATIENCE;
    }

    // Total cycles, from the first of the entry's instruction to the first of the exit's ecall.
    uint64_t cycles() const { return exit_pc == NONE ? last_time : exit_time; }

    // One line for each instruction: address, executions, cycles, transfers taken.
    void print(std::FILE *out) const
    {
        for (uint32_t i = 0; i < counts.size(); i++)
            if (counts[i].executions != 0)
                std::fprintf(out, "%x\t%llu\t%llu\t%llu\n", memory.code_begin + i * 2, counts[i].executions,
                             counts[i].cycles, counts[i].taken);
        // A core that finds the exit early never has it in the stage.
        const uint32_t end = exit_pc == NONE ? following(previous) : exit_pc;
        if (memory.instruction(end) != ECALL)
            throw std::runtime_error("the program ends without a system call");
        std::fprintf(out, "%x\t1\t0\t0\n", end);
    }

private:
    struct Count {
        unsigned long long executions, cycles, taken;
    };

    static constexpr uint32_t NONE = 1;
    static constexpr uint32_t ECALL = 0x73;
    // Longer than any instruction takes, in cycles.
    static constexpr unsigned PATIENCE = 400;

    Count &count(uint32_t pc) { return counts.at((pc - memory.code_begin) / 2); }

    // The address behind the instruction at `pc`.
    uint32_t following(uint32_t pc) const { return pc + ((memory.instruction(pc) & 3) == 3 ? 4 : 2); }

    void commit(uint32_t pc)
    {
        // What is held by others than the one that leaves was discarded.
        if (previous != NONE) {
            count(previous).cycles += empty;
            count(previous).taken += pc != following(previous);
        } else {
            held += empty;
        }
        count(pc).executions++;
        count(pc).cycles += held;
        empty = held = 0;
        candidate = NONE;
        previous = pc;
        idle = 0;
        last_time = now;
        exit_pc = NONE;
    }

    const Memory &memory;
    std::vector<Count> counts;
    bool began = false;
    uint32_t previous = NONE, candidate = NONE, exit_pc = NONE;
    uint64_t now = 0, exit_time = 0, last_time = 0;
    unsigned long long held = 0, empty = 0;
    unsigned idle = 0;
};
