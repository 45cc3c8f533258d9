"""What is at an offset of a file of machine code: a call, an epilogue, unwind information? Of x86-64 and arm64."""

import re
import struct
import subprocess
from pathlib import Path

import board

# Bytes of an indirect call, `ff /2` and its operand, behind a prefix or none.
INDIRECT = (2, 3, 4, 6, 7)
# Pops of registers and the return.
EPILOGUE = re.compile(rb"(?:\x41?[\x58-\x5f])*\xc3")
FDE = re.compile(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)")
SEGMENT = re.compile(r"^ +LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) \S+ 0x([0-9a-f]+) ")
MACHINE, ARM64 = 18, 183  # where an ELF file says whose code it is; EM_AARCH64
# Of an instruction of arm64 the bits that say what it is, and what they are: bl; blr; blraa and its like.
ARM64_CALLS = ((0xFC000000, 0x94000000), (0xFFFFFC1F, 0xD63F0000), (0xFEFFF800, 0xD63F0800))
ARM64_EXIT = struct.pack("<II", 0xD2800BA8, 0xD4000001)  # mov x8, #93; svc #0


class File:
    """A file that frames are in."""

    def __init__(self, path):
        self.path = board.fetched(path)
        self.content = Path(self.path).read_bytes() if Path(self.path).is_file() else None
        self.functions = self.segments = None
        self.arm64 = self.content is not None and struct.unpack_from("<H", self.content, MACHINE)[0] == ARM64

    def output(self, option):
        """What readelf says; that it cannot follow a debug link makes it fail, and does not matter."""
        return subprocess.run(["readelf", option, self.path], capture_output=True, text=True, check=False).stdout

    def has_unwind_information(self, offset):
        """Whether an FDE has the byte at an offset."""
        if self.functions is None:
            self.functions = [(int(start, 16), int(end, 16)) for start, end in FDE.findall(self.output("-wF"))]
            found = map(SEGMENT.match, self.output("-lW").splitlines())
            self.segments = [tuple(int(each[i], 16) for i in (1, 2, 3)) for each in found if each]
        address = next((at + offset - start for start, at, size in self.segments if start <= offset < start + size), None)
        return any(start <= address < end for start, end in self.functions)

    def is_call(self, offset):
        """Whether a call's last byte is at an offset."""
        if self.arm64:
            (instruction,) = struct.unpack_from("<I", self.content, offset & ~3)
            return any(instruction & mask == call for mask, call in ARM64_CALLS)
        before = self.content[max(offset - 6, 0) : offset + 1]
        return before[-5] == 0xE8 or any(is_indirect_call(before[-length:]) for length in INDIRECT)

    def exits_behind(self, offset):
        """Whether the thread ends as soon as the call at an offset returns."""
        return self.arm64 and self.content.startswith(ARM64_EXIT, (offset & ~3) + 4)

    def is_in_epilogue(self, offset):
        """Whether nothing but registers on the stack and the return are left; arm64 has them all in one place."""
        return not self.arm64 and EPILOGUE.match(self.content, offset) is not None


def is_indirect_call(instruction):
    """Whether these bytes are one."""
    if instruction[0] & 0xF0 == 0x40:  # REX
        instruction = instruction[1:]
    return len(instruction) > 1 and instruction[0] == 0xFF and instruction[1] >> 3 & 7 == 2
