"""What dex files are in a .vdex file of ART 11? As dexdump reads them, compact ones, too."""

import re
import struct
import tempfile
from pathlib import Path

import board
import dexdump

MAGIC = re.compile(rb"dex\n03\d\0|cdex001\0")
FILE_SIZE, DATA_OFFSET = 32, 108  # in a dex file's header
# What dexdump takes for the size of a code item's header, and what it is in a compact dex file.
PLAIN_HEADER, COMPACT_HEADER = 16, 4
LINE = re.compile(r"^([0-9a-f]{6,}): ((?:[0-9a-f]{4} ?)+)(?:\.\.\.)? *\|[0-9a-f]{4,}: ")


class Dex(dexdump.Dex):
    """A dex file in a .vdex file. Offsets are from its own start, which is at `start` of the .vdex file."""

    def __init__(self, vdex, start, content, build_id):
        self.start = start
        self.is_compact = content.startswith(b"cdex")
        self.data = struct.unpack_from("<I", content, DATA_OFFSET)[0]
        with tempfile.NamedTemporaryFile(suffix=".dex") as file:
            file.write(content)
            file.flush()
            super().__init__(file.name)
        self.path = str(vdex)
        self.build_id = build_id or self.build_id

    def parse(self, text):
        """Puts dexdump's offsets right, which are those of plain dex files, and holds them against the bytes."""
        super().parse(text)
        if not self.is_compact:
            return
        distance = self.data - PLAIN_HEADER + COMPACT_HEADER
        self.instructions = {offset + distance: known for offset, known in self.instructions.items()}
        for method in self.methods:
            if method.start:
                method.start += distance
                method.end += distance
        for found in filter(None, map(LINE.match, text.splitlines())):
            offset, units = int(found[1], 16) + distance, bytes.fromhex(found[2].replace(" ", ""))
            if self.content[offset : offset + len(units)] != units:
                raise SystemExit(f"{self.path}: dexdump's {found[0]} is not at {offset:#x}")


def dexes(path, build_id=None):
    """The dex files of a .vdex file, which a profile knows by a build-id if there is but one."""
    content = Path(board.fetched(path)).read_bytes()
    starts = [found.start() for found in MAGIC.finditer(content)]
    for start in starts:
        # The data of compact ones is behind them all.
        end = None if content.startswith(b"cdex", start) else start + struct.unpack_from("<I", content, start + FILE_SIZE)[0]
        yield Dex(path, start, content[start:end], build_id if len(starts) == 1 else None)
