#!/usr/bin/env python3
"""What does a dex file look like as a compact one (cdex001)? Writes it.

usage: compact.py FILE.dex OUT.cdex [--section GAP] [--share]

With --section the data section begins GAP bytes behind the file's own part, as where several files of a vdex share one. With --share equal
code items are one, as dex2oat has it; which lines a method has is in no code item.

No tool that Debian has writes compact dex files, so this is made after the layout's description in ART's sources: the
header, the data section that all offsets count from, the packed code items with what does not fit before
them, and the table of debug information offsets. Annotations and the map, which nothing here reads, are left out.
"""

import struct
import sys
from pathlib import Path

HEADER = 0x88
GROWN = HEADER - 0x70


def uleb128(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def put_uleb128(out, value):
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def align(out, size):
    out.extend(bytes(-len(out) % size))


def code_item(data, at):
    """The compact form, its place within that, and the debug information's offset."""
    registers, ins, outs, tries, debug_info, units = struct.unpack_from("<HHHHII", data, at)
    end = at + 16 + 2 * units
    before = []
    flags = 0
    if units >> 11:
        high = units & ~0x7FF
        before += [high & 0xFFFF, high >> 16]
        flags |= 0x10
    fields = 0
    for bit, shift, size in ((0, 12, registers - ins), (1, 8, ins), (2, 4, outs), (3, 0, tries)):
        fields |= (size & 0xF) << shift
        if size & ~0xF:
            before.append(size & ~0xF)
            flags |= 1 << bit
    item = bytearray()
    for word in reversed(before):
        item += struct.pack("<H", word)
    place = len(item)
    item += struct.pack("<HH", fields, (units & 0x7FF) << 5 | flags) + data[at + 16 : end]
    behind = b""
    if tries:
        start = (end + 3) & ~3
        lists, cursor = uleb128(data, start + 8 * tries)
        for _ in range(lists):
            size, cursor = uleb128(data, cursor)
            size = (size & 0x3F) - (size & 0x40) if size < 0x80 else size  # one byte, in all that is seen
            for _ in range(2 * abs(size) + (size <= 0)):
                _, cursor = uleb128(data, cursor)
        behind = data[start:cursor]
    return item, place, behind, debug_info


def class_data(data, at, place_of, debug_infos):
    """The class_data_item with its code items elsewhere."""
    out = bytearray()
    sizes = []
    for _ in range(4):
        size, at = uleb128(data, at)
        put_uleb128(out, size)
        sizes.append(size)
    for _ in range(2 * (sizes[0] + sizes[1])):
        number, at = uleb128(data, at)
        put_uleb128(out, number)
    for size in sizes[2:]:
        index = 0
        for _ in range(size):
            step, at = uleb128(data, at)
            flags, at = uleb128(data, at)
            code, at = uleb128(data, at)
            index += step
            put_uleb128(out, step)
            put_uleb128(out, flags)
            if code:
                code, debug_infos[index] = place_of(code)
            put_uleb128(out, code)
    return out


def offset_table(offsets):
    """Blocks of sixteen, the table of where they are, and what all offsets are above."""
    base = min((offset for offset in offsets if offset), default=0)
    blocks = bytearray()
    table = []
    for start in range(0, len(offsets), 16):
        table.append(len(blocks))
        block = offsets[start : start + 16]
        mask = sum(1 << place for place, offset in enumerate(block) if offset)
        blocks += struct.pack(">H", mask)
        last = base
        for offset in filter(None, block):
            put_uleb128(blocks, (offset - last) & 0xFFFFFFFF)
            last = offset
    align(blocks, 4)
    return blocks, len(blocks), b"".join(struct.pack("<I", entry) for entry in table), base


def main():
    data = Path(sys.argv[1]).read_bytes()
    options = sys.argv[3:]
    gap = int(options[options.index("--section") + 1]) if "--section" in options else 0
    (data_size, data_off) = struct.unpack_from("<II", data, 0x68)
    main_part = bytearray(data[:0x70].ljust(HEADER, b"\0") + data[0x70:data_off])
    align(main_part, 4)
    own = len(main_part)
    main_part.extend(b"\xa5" * (gap & ~3))

    # What keeps its form stays as it is; nothing may be at offset zero, that stands for none.
    front = 16
    section = bytearray(front) + data[data_off:]

    def moved(offset):
        return offset - data_off + front if offset else 0

    tables = {at: struct.unpack_from("<II", data, at) for at in range(0x38, 0x68, 8)}
    for at, (count, offset) in tables.items():
        struct.pack_into("<II", main_part, at, count, offset + GROWN if count else 0)

    def patch(at, change):
        (old,) = struct.unpack_from("<I", main_part, at)
        struct.pack_into("<I", main_part, at, change(old))

    places, items = {}, {}

    def place_of(code):
        if code not in places:
            item, place, behind, debug_info = code_item(data, code)
            key = (bytes(item), bytes(behind)) if "--share" in options else code
            if key not in items:
                align(section, 2)
                items[key] = len(section) + place
                section.extend(item)
                if behind:
                    align(section, 4)
                    section.extend(behind)
            places[code] = items[key], moved(debug_info)
        return places[code]

    count, offset = tables[0x38]
    for index in range(count):
        patch(offset + GROWN + 4 * index, moved)
    count, offset = tables[0x48]
    for index in range(count):
        patch(offset + GROWN + 12 * index + 8, moved)
    debug_infos = [0] * tables[0x58][0]
    count, offset = tables[0x60]
    for index in range(count):
        at = offset + GROWN + 32 * index
        patch(at + 12, moved)  # interfaces
        patch(at + 20, lambda _: 0)  # annotations
        patch(at + 28, moved)  # static values
        (old,) = struct.unpack_from("<I", data, offset + 32 * index + 24)
        if old:
            item = class_data(data, old, place_of, debug_infos)
            patch(at + 24, lambda _: len(section))
            section.extend(item)
    align(section, 4)
    blocks, table_offset, table, base = offset_table(debug_infos)
    blocks_at = len(section)
    section += blocks + table

    main_part[:8] = b"cdex001\0"
    struct.pack_into("<II", main_part, 0x20, own, HEADER)
    struct.pack_into("<I", main_part, 0x34, 0)
    struct.pack_into("<II", main_part, 0x68, len(section), len(main_part))
    struct.pack_into("<IIIIII", main_part, 0x70, 1, blocks_at, table_offset, base, 0, len(section))
    Path(sys.argv[2]).write_bytes(main_part + section)


main()
