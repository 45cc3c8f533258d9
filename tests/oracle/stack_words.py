"""What was on the stack at a sample? The kernel's copies in a perf.data file, read without perf, which prints none."""

import mmap
import struct

ATTRIBUTES, DATA = 24, 40  # in the header: offset and size each
SAMPLE = 9
# perf_event_attr: sample_type; sample_regs_user. Bits of the first in the order of what they put into a sample.
SAMPLE_TYPE, REGISTERS = 24, 80
IDENTIFIER, IP, TID, TIME, ADDRESS, ID, STREAM, CPU, PERIOD = 1 << 16, 1, 2, 4, 8, 64, 512, 128, 256
CALLCHAIN, USER_REGISTERS, STACK = 32, 1 << 12, 1 << 13
UNKNOWN = ~(IDENTIFIER | IP | TID | TIME | ADDRESS | ID | STREAM | CPU | PERIOD | CALLCHAIN | USER_REGISTERS | STACK)


class Stacks:
    """The copies of a recording with one event, by (thread, time) as perf prints them."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        (attributes,) = struct.unpack_from("<Q", self.content, ATTRIBUTES)
        (self.kind,) = struct.unpack_from("<Q", self.content, attributes + SAMPLE_TYPE)
        (mask,) = struct.unpack_from("<Q", self.content, attributes + REGISTERS)
        if self.kind & UNKNOWN:
            raise SystemExit(f"{path}: samples of type {self.kind:#x}")
        self.registers = mask.bit_count()
        # With --stack vertical the kernel copies none.
        self.copies = dict(self.read()) if self.kind & STACK else {}

    def read(self):
        """(thread, time), (offset, size) of each."""
        at, size = struct.unpack_from("<QQ", self.content, DATA)
        end = at + size
        while at < end:
            kind, _, length = struct.unpack_from("<IHH", self.content, at)
            if kind == SAMPLE:
                yield self.sample(at + 8)
            at += length

    def sample(self, at):
        """That of one sample."""
        thread = time = None
        for bit in (IDENTIFIER, IP, TID, TIME, ADDRESS, ID, STREAM, CPU, PERIOD):
            if self.kind & bit:
                if bit == TID:
                    (thread,) = struct.unpack_from("<i", self.content, at + 4)
                elif bit == TIME:
                    (time,) = struct.unpack_from("<Q", self.content, at)
                at += 8
        if self.kind & CALLCHAIN:
            at += 8 + 8 * struct.unpack_from("<Q", self.content, at)[0]
        if self.kind & USER_REGISTERS:
            (abi,) = struct.unpack_from("<Q", self.content, at)
            at += 8 + 8 * (self.registers if abi else 0)
        (size,) = struct.unpack_from("<Q", self.content, at)
        # The bytes that were there are counted behind those that there is room for.
        filled = struct.unpack_from("<Q", self.content, at + 8 + size)[0] if size else 0
        return (thread, f"{time // 10**9}.{time % 10**9:09}"), (at + 8, filled)

    def word(self, key, offset):
        """The word at a distance from the stack pointer, or None: it was not copied."""
        start, size = self.copies.get(key, (0, 0))
        if not 0 <= offset <= size - 8:
            return None
        return struct.unpack_from("<Q", self.content, start + offset)[0]
