"""What do changes of an assembled dex file need? Its methods' code offsets, and a checksum that is right again."""

import hashlib
import struct
import zlib


def uleb128(data, at):
    """The number at an offset, and the offset behind it."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def code_offsets(data):
    """Where the code offset of each method is written: (index of the method, start, end)."""
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
        for size in sizes[2:]:
            method = 0
            for _ in range(size):
                step, at = uleb128(data, at)
                method += step
                _, start = uleb128(data, at)
                _, at = uleb128(data, start)
                yield method, start, at


def sign(data):
    """Renews signature and checksum."""
    data[12:32] = hashlib.sha1(data[32:]).digest()
    struct.pack_into("<I", data, 8, zlib.adler32(data[12:]))
