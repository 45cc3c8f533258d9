#!/usr/bin/env python3
"""What can smali 2.5.2 not write? This puts it into the assembled file.

usage: finish.py FILE.dex

* A name outside the basic plane. The stand-in, twice U+E000, is as long in bytes and in UTF-16 units as the surrogate
  pair of U+1F600 (in the format's "modified UTF-8", three bytes each), and nothing sorts between the two: strings stay
  in order.
* Two methods with one code item, as R8 leaves equal ones: otherTwin gets that of twin, and its own stays unused.
* Version 040 of the format, which names with a space need; it differs in nothing else that this file uses.
"""

import hashlib
import struct
import sys
import zlib
from pathlib import Path

STAND_IN = "\ue000\ue000".encode()
GRINNING_FACE = b"\xed\xa0\xbd\xed\xb8\x80"


def uleb128(data, at):
    """The number at an offset, and the offset behind it."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def string(data, index):
    """A string of the file, for ASCII ones."""
    (table,) = struct.unpack_from("<I", data, 0x3C)
    (at,) = struct.unpack_from("<I", data, table + 4 * index)
    _, at = uleb128(data, at)
    return bytes(data[at : data.index(0, at)])


def code_offsets(data):
    """Where each method's code offset is written: (start, end) by the method's name."""
    method_ids, class_count, classes = struct.unpack_from("<I", data, 0x5C) + struct.unpack_from("<II", data, 0x60)
    places = {}
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
        for size in sizes[2:]:
            method = 0
            for _ in range(size):
                step, at = uleb128(data, at)
                method += step
                _, start = uleb128(data, at)
                _, at = uleb128(data, start)
                (name,) = struct.unpack_from("<I", data, method_ids + 8 * method + 4)
                places[string(data, name)] = (start, at)
    return places


def main():
    """Makes the changes, then renews signature and checksum."""
    if len(sys.argv) != 2:
        sys.exit("usage: finish.py FILE.dex")
    path = Path(sys.argv[1])
    data = bytearray(path.read_bytes())
    if data.count(STAND_IN) != 1:
        sys.exit(f"{path}: the stand-in occurs {data.count(STAND_IN)} times, not once")
    at = data.index(STAND_IN)
    data[at : at + len(STAND_IN)] = GRINNING_FACE

    places = code_offsets(data)
    (first, first_end), (second, second_end) = places[b"twin"], places[b"otherTwin"]
    if first_end - first != second_end - second:
        sys.exit(f"{path}: the twins' code offsets differ in length")
    data[second:second_end] = data[first:first_end]

    data[4:7] = b"040"
    data[12:32] = hashlib.sha1(data[32:]).digest()
    struct.pack_into("<I", data, 8, zlib.adler32(data[12:]))
    path.write_bytes(data)


if __name__ == "__main__":
    main()
