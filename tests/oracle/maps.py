"""What was mapped where in a process? From a copy of its /proc/PID/maps."""

import re
from dataclasses import dataclass

# The kernel's addresses begin with its modules where processes end (ARMv7, as Debian builds it), else with the upper half.
KERNEL_32, KERNEL_64 = 0xBF000000, 1 << 63
LINE = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) \S+ \d+ +(/.*)$")


@dataclass
class Mapping:
    """A file's bytes from `offset` on, at start to end."""

    start: int
    end: int
    offset: int
    path: str


class Maps:
    """A process's mapped files."""

    def __init__(self, path):
        with open(path) as file:
            found = filter(None, map(LINE.match, file))
            self.mappings = [Mapping(int(m[1], 16), int(m[2], 16), int(m[4], 16), m[5]) for m in found]
        # A 32-bit process of a 64-bit kernel has mappings up to where its addresses end.
        self.kernel = KERNEL_32 if all(each.end <= KERNEL_32 for each in self.mappings) else KERNEL_64

    def at(self, address):
        """(path, offset in the file) of an address, or None."""
        for each in self.mappings:
            if each.start <= address < each.end:
                return each.path, address - each.start + each.offset
        return None
