#!/usr/bin/env python3
"""Is each row of `varid report --by dim` what perf, dexdump, the kernel's registers and /proc/PID/maps say of its samples?

usage: dim.py SESSION MAPS REPORT UID DEX...

SESSION was recorded with --keep-raw, of artvm. MAPS is a copy of the process's /proc/PID/maps, REPORT the report as JSON, UID the process's user. Each
sample's row is made anew: its frames as an unmodified perf reads them, names and lines as dexdump prints them, the frame pointer from the
register that the kernel recorded. Prints what it counted as JSON; exit status 1 and the differences on standard error if there are any.
"""

import json
import re
import sys
from collections import Counter

import perf_script
from art import Libart
from managed import Code
from maps import Maps
from substitute import Lines

MANY = 20  # differences that are printed
NATIVE, UNKNOWN = -2, -1
REMAP = 0x6000_0000_0000
FRAME_REGISTER, FRAME_BIAS = "R13", 64  # of ART's interpreter loop on x86-64
MODE = re.compile(r"^([0-9a-f]+)-[0-9a-f]+ (\S{4}) ")


class Rows:
    """What the samples make of the report's rows."""

    def __init__(self, maps, dexes):
        self.maps = maps
        self.dexes = [Lines(path) for path in dexes]
        for dex in self.dexes:
            with open(dex.path, "rb") as file:
                dex.content = file.read()
        self.code = Code(self.dexes)
        self.starts = {}
        for mapping in maps.mappings:
            self.starts.setdefault(base(mapping.path), mapping.start - mapping.offset)
        self.lines = {id(dex): self.by_instruction(dex) for dex in self.dexes}

    @staticmethod
    def by_instruction(dex):
        """The line of each instruction, from the one at which it begins."""
        starts = {at: line for at, _, line in dex.rows()}
        lines, of, line = {}, None, UNKNOWN
        for at in sorted(dex.instructions):
            if of is not dex.instructions[at][1]:
                of, line = dex.instructions[at][1], UNKNOWN
            lines[at] = line = starts.get(at, line)
        return lines

    def row(self, sample):
        """(vma, pc, class, method, file, line, depth) of a sample, and whether the instruction itself ran."""
        kernel = sample.ip >= self.maps.kernel
        user = [frame for frame in sample.chain if frame.offset < self.maps.kernel and frame.file != "[kernel.kallsyms]"]
        managed = [number for number, frame in enumerate(user) if self.code.is_managed(frame) or is_framework(frame)]
        if not managed:
            return None
        inner = user[managed[0]]
        called = kernel or managed[0] > 0
        dex = self.code.dex(inner)
        if dex is None:
            cls, name = inner.symbol.split("(")[0].rsplit(".", 1)
            return (None, cls, name, NATIVE, len(managed)), False
        offset = inner.offset - called
        method = dex.instructions[offset][1]
        row = (
            self.starts[base(dex.path)] + offset,
            (offset - method.start) // 2,
            f"L{method.cls.replace('.', '/')};",
            method.symbol[len(method.cls) + 1 :],
            method.source,
            self.lines[id(dex)][offset],
            len(managed),
        )
        return row, not called


def is_framework(frame):
    """A native method of the boot class path."""
    return frame.file.endswith("/remap-framework.elf")


def base(path):
    """A path's last part."""
    return path.rsplit("/", 1)[-1]


def reported(row):
    """The same of a row of the report."""
    if row["line"] == NATIVE:
        return None, row["class"][1:-1].replace("/", "."), row["method"].split("(")[0], NATIVE, row["depth"]
    vma = int(row["vma"], 16)
    return vma, row["pc"], row["class"], row["method"], base(row.get("file", "")), row["line"], row["depth"]


def wrong_map(row, modes, maps):
    """What is wrong with the mapping of a row, or None."""
    vma = int(row["vma"], 16)
    if row["line"] == NATIVE and REMAP <= vma < REMAP + (1 << 24):
        return None if row["map"].get("mode") is None else "the remap range has a mode"
    place = maps.at(vma)
    if place is None:
        return None if "map" not in row or row["map"]["file"][0] != "/" else f"{row['map']} is not mapped"
    start, end = int(row["map"]["start"], 16), int(row["map"]["end"], 16)
    mapping = next(each for each in maps.mappings if each.start <= vma < each.end)
    if (start, row["map"]["file"], row["map"]["mode"]) != (mapping.start, place[0], modes[mapping.start]):
        return f"{row['map']}, not {mapping} {modes[mapping.start]}"
    return None if vma < end <= mapping.end else f"{row['map']} ends at {mapping.end:#x}"


def main():
    """Compares, prints."""
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    session, maps_path, report, uid, *dexes = sys.argv[1:]
    with open(report) as file:
        report = json.load(file)
    maps = Maps(maps_path)
    with open(maps_path) as file:
        modes = {int(found[1], 16): found[2] for found in map(MODE.match, file) if found}
    rows = Rows(maps, dexes)
    libart = next(mapping.path for mapping in maps.mappings if base(mapping.path).startswith("libart.so"))
    loops = Libart(libart)
    counts, problems = Counter(), []

    total, own, native, frames = Counter(), Counter(), 0, Counter()
    registers = dict(perf_script.raw(f"{session}/raw.data"))
    for key, sample in perf_script.attributed(f"{session}/perf.data"):
        counts["samples"] += 1
        found = rows.row(sample)
        if found is None:
            native += 1
            continue
        row, ran = found
        total[key[0], row] += 1
        own[key[0], row] += ran
        raw, place = registers.get(key), maps.at(sample.ip)
        if raw and place and place[0] == libart and loops.part(place[1]) == "body":
            counts["frame pointer known"] += 1
            frames[key[0], row, raw.registers[FRAME_REGISTER] - FRAME_BIAS] += 1
    all_rows = report["rows"]
    managed = [row for row in all_rows if row["depth"] > 0]
    counts["rows"], counts["managed rows"] = len(all_rows), len(managed)
    for row in all_rows:
        if row["uid"] != int(uid):
            problems.append(f"another user's: {row}")
        if wrong := wrong_map(row, modes, maps) if "map" in row else None:
            problems.append(f"{wrong}: {row}")
    theirs, their_own, their_frames = Counter(), Counter(), Counter()
    for row in managed:
        key = row["tid"], reported(row)
        theirs[key] += row["total"]
        their_own[key] += row["self"]
        their_frames[*key, int(row["frame"], 16)] += row["total"]
    for key in total.keys() | theirs.keys():
        if (total[key], own[key]) != (theirs[key], their_own[key]):
            problems.append(f"{key}: {theirs[key]} samples, {their_own[key]} of its own; there were {total[key]} and {own[key]}")
    for key, count in frames.items():
        if their_frames[key] < count:
            problems.append(f"{key}: {their_frames[key]} samples have this frame pointer, {count} had it in its register")
    if native != sum(row["total"] for row in all_rows if row["depth"] == 0):
        problems.append(f"{native} samples have no frame of the VM")
    counts["native methods"] = sum(count for (_, row), count in total.items() if row[0] is None)
    counts["wrong"] = len(problems)
    for problem in problems[:MANY]:
        print(problem, file=sys.stderr)
    print(json.dumps(counts))
    sys.exit(counts["wrong"] > 0)


if __name__ == "__main__":
    main()
