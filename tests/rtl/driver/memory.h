// The memory of a simulated processor: 16 MiB from address 0, filled from an ELF file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

class Memory {
public:
    static constexpr uint32_t SIZE = 16u << 20;
    // Where every core begins after reset. Two instructions there jump to the program's entry.
    static constexpr uint32_t RESET = 0x80;

    explicit Memory(const std::string &path) : words(SIZE / 4)
    {
        std::ifstream file(path, std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
        Elf32_Ehdr head;
        copy(bytes, 0, &head, sizeof head);
        if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_machine != EM_RISCV)
            throw std::runtime_error(path + ": no RISC-V ELF file");
        for (unsigned i = 0; i < head.e_phnum; i++) {
            Elf32_Phdr segment;
            copy(bytes, head.e_phoff + i * head.e_phentsize, &segment, sizeof segment);
            if (segment.p_type != PT_LOAD)
                continue;
            if (segment.p_vaddr > SIZE || segment.p_memsz > SIZE - segment.p_vaddr)
                throw std::runtime_error(path + ": a segment outside memory");
            copy(bytes, segment.p_offset, reinterpret_cast<char *>(words.data()) + segment.p_vaddr,
                 segment.p_filesz);
            if (segment.p_flags & PF_X) {
                code_begin = std::min(code_begin, segment.p_vaddr);
                code_end = std::max(code_end, segment.p_vaddr + segment.p_memsz);
            }
        }
        entry = head.e_entry;
        write(RESET, 0x000002b7u | ((entry + 0x800) & 0xfffff000u), 0xf);   // lui t0, %hi(entry)
        write(RESET + 4, 0x00028067u | (entry & 0xfffu) << 20, 0xf);        // jr %lo(entry)(t0)
    }

    // Returns the aligned word that contains `address`.
    uint32_t read(uint32_t address) const { return words[address / 4 % words.size()]; }

    // Stores the bytes of `value` that have a bit in `strobe`.
    void write(uint32_t address, uint32_t value, unsigned strobe)
    {
        uint32_t mask = 0;
        for (unsigned byte = 0; byte < 4; byte++)
            if (strobe >> byte & 1)
                mask |= 0xffu << 8 * byte;
        uint32_t &word = words[address / 4 % words.size()];
        word = (word & ~mask) | (value & mask);
    }

    // Returns the 32 bits at `pc`, a multiple of two.
    uint32_t instruction(uint32_t pc) const
    {
        if (pc % 4 == 0)
            return read(pc);
        return read(pc) >> 16 | read(pc + 4) << 16;
    }

    uint32_t entry = 0;
    // Where code is.
    uint32_t code_begin = SIZE, code_end = 0;

private:
    static void copy(const std::vector<char> &from, size_t offset, void *to, size_t size)
    {
        if (offset > from.size() || size > from.size() - offset)
            throw std::runtime_error("a truncated ELF file");
        std::memcpy(to, from.data() + offset, size);
    }

    std::vector<uint32_t> words;
};
