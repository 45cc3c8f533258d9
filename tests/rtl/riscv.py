"""What an ELF file of RISC-V has at an address: the instruction's kind and length, the function. Uses no crate of varid."""

import struct
from bisect import bisect_right

LOAD, STORE, BRANCH, OTHER = "load", "store", "branch", "other"
FUNCTION = 2  # STT_FUNC
EXECUTABLE = 1  # PF_X
STACK_POINTER = 2


class Program:
    """The code and the functions of an ELF file of 32 bits."""

    def __init__(self, path):
        self.bytes = path.read_bytes()
        if self.bytes[:5] != b"\x7fELF\x01":
            raise ValueError(f"{path}: no ELF file of 32 bits")
        entries, sections = struct.unpack_from("<II", self.bytes, 28)
        size, count, section_size, section_count = struct.unpack_from("<HHHH", self.bytes, 42)
        self.code = []
        for i in range(count):
            kind, offset, address, _, length, _, flags = struct.unpack_from("<7I", self.bytes, entries + i * size)
            if kind == 1 and flags & EXECUTABLE:
                self.code.append((address, self.bytes[offset : offset + length]))
        headers = [struct.unpack_from("<10I", self.bytes, sections + i * section_size) for i in range(section_count)]
        self.functions = alone(sorted(self._functions(headers)))
        self._starts = [start for start, _, _ in self.functions]

    def _functions(self, headers):
        """Start, end and name of each function that has a size."""
        for header in headers:
            if header[1] != 2:  # SHT_SYMTAB
                continue
            names = headers[header[6]][4]
            for at in range(header[4], header[4] + header[5], 16):
                name, start, size, info = struct.unpack_from("<IIIB", self.bytes, at)
                if info & 15 == FUNCTION and size > 0:
                    end = self.bytes.index(b"\0", names + name)
                    yield start, start + size, self.bytes[names + name : end].decode()

    def instruction(self, address):
        """The bits of the instruction at an address; 32 of them even if it is compressed."""
        for start, code in self.code:
            if start <= address < start + len(code):
                return int.from_bytes(code[address - start : address - start + 4], "little")
        raise ValueError(f"no code at {address:#x}")

    def kind(self, address):
        """Whether an instruction loads, stores or branches on a condition."""
        bits = self.instruction(address)
        if bits & 3 == 3:
            return {0x03: LOAD, 0x23: STORE, 0x63: BRANCH}.get(bits & 0x7F, OTHER)
        return {
            (0, 2): LOAD,  # c.lw
            (0, 6): STORE,  # c.sw
            (1, 6): BRANCH,  # c.beqz
            (1, 7): BRANCH,  # c.bnez
            (2, 2): LOAD,  # c.lwsp
            (2, 6): STORE,  # c.swsp
        }.get((bits & 3, bits >> 13 & 7), OTHER)

    def uses_stack(self, address):
        """Whether an instruction that loads or stores has the stack pointer as its base."""
        bits = self.instruction(address)
        if bits & 3 == 3:
            return bits >> 15 & 31 == STACK_POINTER
        return bits & 3 == 2

    def function(self, address):
        """The name of the function at an address. None: there is none, or it shares code with another, or has two names."""
        index = bisect_right(self._starts, address)
        _, end, name = self.functions[index - 1] if index else (0, 0, None)
        return name if address < end else None


def alone(functions):
    """Those of sorted ranges that have no address in common with another."""
    found = []
    behind = 0
    for this, following in zip(functions, [*functions[1:], None]):
        start, end, _ = this
        if start >= behind and (following is None or end <= following[0]):
            found.append(this)
        behind = max(behind, end)
    return found
