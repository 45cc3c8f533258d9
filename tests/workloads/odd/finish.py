#!/usr/bin/env python3
"""What can smali 2.5.2 not write? This puts it into the assembled file.

usage: finish.py FILE.dex

* A name outside the basic plane. The stand-in, twice U+E000, is as long in bytes and in UTF-16 units as the surrogate
  pair of U+1F600 (in the format's "modified UTF-8", three bytes each), and nothing sorts between the two: strings stay
  in order.
* Two methods with one code item, as R8 leaves equal ones: otherTwin gets that of twin, and its own stays unused.
* Version 040 of the format, which names with a space need; it differs in nothing else that this file uses.
"""

import struct
import sys
from pathlib import Path

from dex_file import code_offsets, sign, uleb128

STAND_IN = "\ue000\ue000".encode()
GRINNING_FACE = b"\xed\xa0\xbd\xed\xb8\x80"


def string(data, index):
    """A string of the file, for ASCII ones."""
    (table,) = struct.unpack_from("<I", data, 0x3C)
    (at,) = struct.unpack_from("<I", data, table + 4 * index)
    _, at = uleb128(data, at)
    return bytes(data[at : data.index(0, at)])


def places_by_name(data):
    """Where each method's code offset is written: (start, end) by the method's name."""
    (method_ids,) = struct.unpack_from("<I", data, 0x5C)
    places = {}
    for method, start, end in code_offsets(data):
        (name,) = struct.unpack_from("<I", data, method_ids + 8 * method + 4)
        places[string(data, name)] = (start, end)
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

    places = places_by_name(data)
    (first, first_end), (second, second_end) = places[b"twin"], places[b"otherTwin"]
    if first_end - first != second_end - second:
        sys.exit(f"{path}: the twins' code offsets differ in length")
    data[second:second_end] = data[first:first_end]

    data[4:7] = b"040"
    sign(data)
    path.write_bytes(data)


if __name__ == "__main__":
    main()
