#!/usr/bin/env python3
"""Which methods of a dex file have equal instructions? This lets them share one code item, as R8 does and dex2oat in compact dex files.

usage: share.py FILE.dex

The first one's code item becomes the others', its lines as well; theirs stay unused. Code items with tries are left alone.
"""

import hashlib
import struct
import sys
import zlib
from pathlib import Path

CODE_ITEM = 16  # bytes of a code item before its instructions


def uleb128(data, at):
    """The number at an offset, and the offset behind it."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def put_uleb128(data, start, end, value):
    """Writes a number that takes the bytes from start to end, whatever its size."""
    for at in range(start, end):
        data[at] = value & 0x7F | (0x80 if at < end - 1 else 0)
        value >>= 7
    if value:
        sys.exit("share.py: a code offset needs more bytes than it has")


def code_offsets(data):
    """Where the code offset of each method with code is written (start, end), and the offset."""
    class_count, classes = struct.unpack_from("<II", data, 0x60)
    for number in range(class_count):
        (at,) = struct.unpack_from("<I", data, classes + 32 * number + 24)
        if not at:
            continue
        sizes = []
        for _ in range(4):
            size, at = uleb128(data, at)
            sizes.append(size)
        for _ in range(2 * (sizes[0] + sizes[1])):
            _, at = uleb128(data, at)
        for _ in range(sizes[2] + sizes[3]):
            _, at = uleb128(data, at)
            _, start = uleb128(data, at)
            code, at = uleb128(data, start)
            if code:
                yield start, at, code


def main():
    """Makes the changes, then renews signature and checksum."""
    if len(sys.argv) != 2:
        sys.exit("usage: share.py FILE.dex")
    path = Path(sys.argv[1])
    data = bytearray(path.read_bytes())
    first, shared = {}, 0
    for start, end, code in sorted(code_offsets(data), key=lambda each: each[2]):
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
    data[12:32] = hashlib.sha1(data[32:]).digest()
    struct.pack_into("<I", data, 8, zlib.adler32(data[12:]))
    path.write_bytes(data)


if __name__ == "__main__":
    main()
