#!/usr/bin/env python3
"""Writes the program that stackvm runs: program.py FILE

The format, little endian, is stackvm's own. A header {magic "STACKVM1", size of the file, number of methods, offset of the
methods, 0}; a method {offset of its name, offset of its code, bytes of code, offset of its lines, number of lines, number of
registers, 0, 0}, code 0 if it is native; a line {offset in the code, number}; names end with a zero. An instruction has four
bytes {opcode, A, B, C}; CONST has eight. Each instruction is on a line of its own: 100 for each method, and its place in that.
"""

import struct
import sys

CONST, ADD, MUL, XOR, SHR, ADDI, JNZ, INVOKE, RET, JMP, JZ = range(1, 12)
LOOPS = 20
COPY, VISIT, LENGTH = LOOPS, LOOPS + 1, LOOPS + 2
NATIVES = ["copy", "visit", "length"]


class Code:
    """A method's instructions."""

    def __init__(self):
        self.bytes = bytearray()
        self.lines = []
        self.labels, self.jumps = {}, []

    def put(self, opcode, a=0, b=0, c=0):
        self.lines.append(len(self.bytes))
        self.bytes += struct.pack("<BBBB", opcode, a, b & 0xFF, c & 0xFF)

    def const(self, a, value):
        self.put(CONST, a)
        self.bytes += struct.pack("<i", value)

    def label(self, name):
        self.labels[name] = len(self.bytes)

    def jump(self, opcode, a, name):
        self.jumps.append((len(self.bytes), name))
        self.put(opcode, a)

    def invoke(self, register, method):
        self.put(INVOKE, register, method)

    def finished(self):
        for at, name in self.jumps:
            struct.pack_into("<h", self.bytes, at + 2, self.labels[name] - at)
        return bytes(self.bytes)


def method(n):
    """Method n gets a seed in r0 and how many calls may follow in r1; r4 and r5 are the arguments of its calls."""
    code = Code()
    code.const(2, 150 + 17 * n)
    code.const(3, 0x9E37 + n)
    code.label("work")
    code.put(MUL, 0, 0, 3)
    code.put(SHR, 4, 0, 7)
    code.put(XOR, 0, 0, 4)
    code.put(ADDI, 0, 0, n + 1)
    code.put(ADDI, 2, 2, -1)
    code.jump(JNZ, 2, "work")
    if n % 4 == 1:
        code.put(ADDI, 4, 0, 0)
        code.const(5, 40 + n)
        code.invoke(4, COPY)
        code.put(XOR, 0, 0, 4)
    if n % 5 == 2:
        code.put(ADDI, 4, 0, 1)
        code.const(5, 8 + n)
        code.invoke(4, LENGTH)
        code.put(ADD, 0, 0, 4)
    code.jump(JZ, 1, "done")
    calls = [(7 * n + 2) % LOOPS]
    if n % 3 == 0:
        calls.append((3 * n + 1) % LOOPS)
    if n % 5 == 0:
        calls = [n, (n + 7) % LOOPS]  # calls itself
    for callee in calls:
        code.put(ADDI, 4, 0, 3)
        code.put(ADDI, 5, 1, -1)
        code.invoke(4, VISIT if n % 6 == 5 else callee)
        code.put(XOR, 0, 0, 4)
    code.label("done")
    code.put(RET, 0)
    return code


def main():
    codes = [method(n) for n in range(LOOPS)]
    names = [f"stack.Program.m{n:02}" for n in range(LOOPS)] + [f"stack.Native.{name}" for name in NATIVES]
    methods_at = 32
    tail_at = methods_at + 32 * len(names)
    tail, table = bytearray(), bytearray()

    def add(data):
        while len(tail) % 4:
            tail.append(0)
        at = tail_at + len(tail)
        tail.extend(data)
        return at

    for index, name in enumerate(names):
        name_at = add(name.encode() + b"\0")
        if index < LOOPS:
            code = codes[index]
            lines = b"".join(struct.pack("<II", at, 100 * (index + 1) + k) for k, at in enumerate(code.lines))
            lines_at = add(lines)
            data = code.finished()
            fields = (name_at, add(data), len(data), lines_at, len(code.lines), 6 + index % 5, 0, 0)
        else:
            fields = (name_at, 0, 0, 0, 0, 0, 0, 0)
        table += struct.pack("<8I", *fields)
    header = struct.pack("<8s6I", b"STACKVM1", tail_at + len(tail), len(names), methods_at, 0, 0, 0)
    with open(sys.argv[1], "wb") as file:
        file.write(header + table + tail)


if __name__ == "__main__":
    main()
