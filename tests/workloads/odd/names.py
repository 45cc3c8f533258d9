#!/usr/bin/env python3
"""How do names that smali 2.5.2 cannot write get into a dex file? They are put in afterwards.

usage: names.py FILE.dex

The stand-in, twice U+E000, is as long in bytes and in UTF-16 units as the surrogate pair of U+1F600 (in the format's
"modified UTF-8", three bytes each), and nothing sorts between the two: strings stay in order. Names with a space
need version 040 of the format, which smali does not know either: it differs in nothing else that this file uses.
"""

import hashlib
import struct
import sys
import zlib
from pathlib import Path

STAND_IN = "\ue000\ue000".encode()
GRINNING_FACE = b"\xed\xa0\xbd\xed\xb8\x80"


def main():
    """Replaces the name, sets the version, and renews signature and checksum."""
    if len(sys.argv) != 2:
        sys.exit("usage: names.py FILE.dex")
    path = Path(sys.argv[1])
    data = bytearray(path.read_bytes())
    if data.count(STAND_IN) != 1:
        sys.exit(f"{path}: the stand-in occurs {data.count(STAND_IN)} times, not once")
    at = data.index(STAND_IN)
    data[at : at + len(STAND_IN)] = GRINNING_FACE
    data[4:7] = b"040"
    data[12:32] = hashlib.sha1(data[32:]).digest()
    struct.pack_into("<I", data, 8, zlib.adler32(data[12:]))
    path.write_bytes(data)


if __name__ == "__main__":
    main()
