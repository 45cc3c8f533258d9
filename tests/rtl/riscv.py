"""What an ELF file of RISC-V has at an address: the instruction's kind and length, the function. Uses no crate of varid."""

import struct
from bisect import bisect_right

LOAD, STORE, BRANCH, OTHER = "load", "store", "branch", "other"
FUNCTION = 2  # STT_FUNC
EXECUTABLE = 1  # PF_X


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
        self.functions = sorted(self._functions(headers))
        self._starts = [start for start, _ in self.functions]

    def _functions(self, headers):
        """Start and name of each function, the first name of several."""
        found = {}
        for header in headers:
            if header[1] != 2:  # SHT_SYMTAB
                continue
            names = headers[header[6]][4]
            for at in range(header[4], header[4] + header[5], 16):
                name, value, _, info = struct.unpack_from("<IIIB", self.bytes, at)
                if info & 15 == FUNCTION:
                    end = self.bytes.index(b"\0", names + name)
                    found.setdefault(value, self.bytes[names + name : end].decode())
        return found.items()

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

    def function(self, address):
        """The name of the last function that begins at an address or before it."""
        index = bisect_right(self._starts, address)
        return self.functions[index - 1][1] if index else f"{address:#x}"
