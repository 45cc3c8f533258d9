#!/usr/bin/env python3
"""Which methods of a dex file have equal instructions? This lets them share one code item, as R8 does and dex2oat in compact dex files.

usage: share.py FILE.dex

The first one's code item becomes the others', its lines as well; theirs stay unused. Code items with tries are left alone.
"""

import struct
import sys
from pathlib import Path

from dex_file import code_offsets, sign, uleb128

CODE_ITEM = 16  # bytes of a code item before its instructions


def put_uleb128(data, start, end, value):
    """Writes a number that takes the bytes from start to end, whatever its size."""
    for at in range(start, end):
        data[at] = value & 0x7F | (0x80 if at < end - 1 else 0)
        value >>= 7
    if value:
        sys.exit("share.py: a code offset needs more bytes than it has")


def main():
    """Makes the changes, then renews signature and checksum."""
    if len(sys.argv) != 2:
        sys.exit("usage: share.py FILE.dex")
    path = Path(sys.argv[1])
    data = bytearray(path.read_bytes())
    first, shared = {}, 0
    offsets = [(uleb128(data, start)[0], start, end) for _, start, end in code_offsets(data)]
    # A method without code has none.
    for code, start, end in sorted(offset for offset in offsets if offset[0]):
        registers, ins, outs, tries, _, units = struct.unpack_from("<HHHHII", data, code)
        if tries:
            continue
        body = bytes(data[code + CODE_ITEM : code + CODE_ITEM + 2 * units])
        own = first.setdefault((registers, ins, outs, body), code)
        if own != code:
            put_uleb128(data, start, end, own)
            shared += 1
    if not shared:
        sys.exit(f"{path}: no two methods have equal instructions")
    sign(data)
    path.write_bytes(data)


if __name__ == "__main__":
    main()
