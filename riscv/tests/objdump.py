#!/usr/bin/env python3
"""Writes what binutils' disassembler says of instructions: lines of xlen, code in hexadecimal digits, address, text.

usage: objdump.py EACH COMPRESSED >objdump.tsv
EACH: how many instructions of each format, with random fields, the same each time.
COMPRESSED: one of so many of all compressed codes; 1 stands for all.
objdump.tsv is made with 4 and 131.
"""

import random
import re
import subprocess
import sys
import tempfile

# Codes of four bytes: the bits that are fixed, and their values.
FORMATS = {
    # lui, auipc, jal, jalr, loads and stores, branches
    "rv32": [(0x7F, opcode) for opcode in (0x37, 0x17, 0x6F)]
    + [(0x707F, 0x67)]
    + [(0x707F, function << 12 | 0x03) for function in (0, 1, 2, 4, 5)]
    + [(0x707F, function << 12 | 0x23) for function in (0, 1, 2)]
    + [(0x707F, function << 12 | 0x63) for function in (0, 1, 4, 5, 6, 7)]
    # operations with a constant; shifts
    + [(0x707F, function << 12 | 0x13) for function in (0, 2, 3, 4, 6, 7)]
    + [(0xFE00707F, kind << 25 | function << 12 | 0x13) for kind, function in ((0, 1), (0, 5), (0x20, 5))]
    # operations of registers; multiplications and divisions
    + [(0xFE00707F, function << 12 | 0x33) for function in range(8)]
    + [(0xFE00707F, 0x20 << 25 | function << 12 | 0x33) for function in (0, 5)]
    + [(0xFE00707F, 1 << 25 | function << 12 | 0x33) for function in range(8)]
    # control and status registers: mstatus
    + [(0xFFF0707F, 0x300 << 20 | function << 12 | 0x73) for function in (1, 2, 3, 5, 6, 7)]
    # lr, sc, atomic operations
    + [(0xFFF0707F, 2 << 27 | 2 << 12 | 0x2F)]
    + [(0xFE00707F, kind << 27 | 2 << 12 | 0x2F) for kind in (3, 1, 0, 4, 12, 8, 16, 20, 24, 28)]
    # floating point: loads, stores, fused, dynamically rounded, exact
    + [(0x707F, function << 12 | opcode) for opcode in (0x07, 0x27) for function in (2, 3)]
    + [(0x600707F, precision << 25 | 7 << 12 | opcode) for opcode in (0x43, 0x47, 0x4B, 0x4F) for precision in (0, 1)]
    + [(0xFE00707F, kind << 27 | precision << 25 | 7 << 12 | 0x53) for kind in (0, 1, 2, 3) for precision in (0, 1)]
    + [(0xFFF0707F, kind << 27 | precision << 25 | code << 20 | 7 << 12 | 0x53)
       for kind, code in ((11, 0), (24, 0), (24, 1)) for precision in (0, 1)]
    # an exact conversion is only known without a rounding mode
    + [(0xFFF0707F, 26 << 27 | code << 20 | 7 << 12 | 0x53) for code in (0, 1)]
    + [(0xFFF0707F, 26 << 27 | 1 << 25 | code << 20 | 0x53) for code in (0, 1)]
    + [(0xFFF0707F, 8 << 27 | 1 << 20 | 7 << 12 | 0x53), (0xFFF0707F, 8 << 27 | 1 << 25 | 0x53)]
    + [(0xFE00707F, kind << 27 | precision << 25 | function << 12 | 0x53)
       for kind, functions in ((4, 3), (5, 2), (20, 3)) for function in range(functions) for precision in (0, 1)]
    + [(0xFFF0707F, kind << 27 | function << 12 | 0x53) for kind, function in ((28, 0), (28, 1), (30, 0))],
    # doubles, words and their atomic operations
    "rv64": [(0x707F, function << 12 | opcode) for opcode, function in ((0x03, 3), (0x03, 6), (0x23, 3), (0x1B, 0))]
    + [(0xFC00707F, kind << 26 | function << 12 | 0x13) for kind, function in ((0, 1), (0, 5), (0x10, 5))]
    + [(0xFE00707F, kind << 25 | function << 12 | 0x1B) for kind, function in ((0, 1), (0, 5), (0x20, 5))]
    + [(0xFE00707F, kind << 25 | function << 12 | 0x3B)
       for kind, function in ((0, 0), (0, 1), (0, 5), (0x20, 0), (0x20, 5), (1, 0), (1, 4), (1, 5), (1, 6), (1, 7))]
    + [(0xFE00707F, kind << 27 | 3 << 12 | 0x2F) for kind in (3, 1, 0)]
    + [(0xFFF0707F, kind << 27 | 1 << 25 | code << 20 | 7 << 12 | 0x53) for kind, code in ((24, 2), (24, 3), (26, 2), (26, 3))]
    + [(0xFFF0707F, kind << 27 | 1 << 25 | 0x53) for kind in (28, 30)],
}
WHOLE = [0x00000073, 0x00100073, 0x0FF0000F, 0x0000100F, 0x30200073, 0x10500073, 0x00008067, 0x00000013]


def is_custom(xlen, code):
    """Shifts by 32 and more, which RV32 leaves to extensions of one's own, and the disassembler prints all the same."""
    shifts = code & 0xE003 == 0x0002 or code & 0xE803 == 0x8001
    return xlen == "rv32" and shifts and code & 0x1000


def disassemble(xlen, codes, options):
    """Returns (address, code, text) of each instruction, with its code as it is in memory."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(codes))
        file.flush()
        output = subprocess.run(
            ["riscv64-unknown-elf-objdump", "-D", "-b", "binary", "-m", f"riscv:{xlen}", *options, file.name],
            check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        found = re.fullmatch(r" *([0-9a-f]+):\t([0-9a-f]+) *\t(\S+)\t?(.*)", line)
        if found:
            address, code, name, operands = found.groups()
            # A comment follows an address that was put together.
            operands = operands.split(" #")[0].strip()
            operands = operands.replace("mstatus", "0x300")
            yield int(address, 16), code, f"{name} {operands}".strip()


def main():
    each, step = int(sys.argv[1]), int(sys.argv[2])
    generator = random.Random(1)
    for xlen in ("rv32", "rv64"):
        aliased, plain = [], []
        for mask, value in FORMATS[xlen]:
            for _ in range(each):
                code = generator.getrandbits(32) & ~mask & 0xFFFFFFFF | value
                # The disassembler has no names for numbers of registers, and an alias for each access.
                (plain if value & 0x7F == 0x73 else aliased).append(code.to_bytes(4, "little"))
        aliased += [code.to_bytes(4, "little") for code in WHOLE]
        compressed = [code for code in range(0, 1 << 16, step) if code & 3 != 3 and not is_custom(xlen, code)]
        aliased += [code.to_bytes(2, "little") for code in compressed]
        for codes, options in filter(lambda pair: pair[0], ((aliased, []), (plain, ["-M", "no-aliases"]))):
            for address, code, text in disassemble(xlen, codes, options):
                print(xlen, code, f"{address:x}", text, sep="\t")


main()
