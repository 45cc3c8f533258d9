#!/usr/bin/env python3
"""Does an annotated method have the instructions that dexdump or objdump shows, each with the samples that perf finds there?

usage: annotate.py PERF_DATA ANNOTATION CODE_FILE
ANNOTATION is what `varid annotate --format json` printed. Prints what was compared as JSON; exit status 1 if anything differs.
"""

import bisect
import itertools
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import dexdump
import perf_script

DISASSEMBLED = re.compile(r"^ *([0-9a-f]+):\t(\S+)")
ANNOTATED = re.compile(r"^ *(\d+) +: +([0-9a-f]+):")
# What binutils writes before a no-op that is long; and what it calls a move of eight bytes.
OTHER_NAMES = {"cs": "nop", "data16": "nop", "movabs": "mov"}


def complain(text):
    """Says what is wrong."""
    print(text, file=sys.stderr)
    complain.count += 1


complain.count = 0


def is_kernel(frame):
    """Whether a frame is the kernel's."""
    named = frame.file.startswith("[") and frame.file not in ("[unknown]", "[vdso]")
    return frame.offset >= 0xFFFF_0000_0000_0000 or named or frame.file.startswith("bpf_prog")


def in_method(samples, is_file, start, end):
    """How many samples have their leaf at each offset of a method, and the offsets at which each sample is in it."""
    own, stacks = Counter(), []
    for _, sample in samples:
        stack = set()
        user = list(itertools.dropwhile(is_kernel, sample.chain))
        in_kernel = len(user) < len(sample.chain)
        for depth, frame in enumerate(user):
            # A caller is where its call returns to, of bytecode the call's address and one.
            offset = frame.offset - (depth > 0)
            if is_file(frame.file) and start <= offset < end:
                stack.add(offset)
                if depth == 0 and not in_kernel:
                    own[offset] += 1
        stacks.append(stack)
    return own, stacks


def by_dexdump(path, start):
    """The end of the method that starts there, and its instructions by offset."""
    dex = dexdump.Dex(path)
    method = next(method for method in dex.methods if method.start == start)
    found = {offset: text for offset, (text, owner) in dex.instructions.items() if owner is method}
    return dex, method.end, found


def by_objdump(path, start, end):
    """The mnemonics of a range of addresses."""
    command = ["objdump", "-d", "-w", "-M", "intel", "--no-show-raw-insn", f"--start-address={start}", f"--stop-address={end}", path]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = (DISASSEMBLED.match(line) for line in text.splitlines())
    return {int(line[1], 16): OTHER_NAMES.get(line[2], line[2]) for line in found if line}


def by_perf_annotate(perf_data, symbol):
    """Samples at each address of a function."""
    command = ["perf", "annotate", "--stdio", "--show-nr-samples", "-s", symbol, "-i", perf_data]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = (ANNOTATED.match(line) for line in text.splitlines())
    return {int(line[2], 16): int(line[1]) for line in found if line and line[1] != "0"}


def main():
    """Compares."""
    perf_data, annotation, code_file = sys.argv[1:]
    annotation = json.loads(Path(annotation).read_text())
    method = annotation["method"]
    start, end = int(method["start"], 16), int(method["end"], 16)
    rows = [row for file in annotation["files"] for line in file["lines"] for row in line.get("instructions", [])]
    rows = sorted(rows, key=lambda row: int(row["address"], 16))
    if method["code"] == "dex":
        dex, dex_end, expected = by_dexdump(code_file, start)
        if dex_end != end:
            complain(f"{method['name']} ends at {end:#x}, by dexdump at {dex_end:#x}")
        folder = f"/{dex.build_id}/"
        samples = perf_script.attributed(perf_data)
        own, stacks = in_method(samples, lambda file: folder in file, start, end)
        rows = [row for row in rows if not row["text"].startswith(dexdump.DATA)]
        shown = {int(row["address"], 16): row["text"] for row in rows}
        for row in rows:
            if int(row["address"], 16) != start + 2 * row["pc"]:
                complain(f"another pc: {row}")
    else:
        expected = by_objdump(code_file, start, end)
        own, stacks = in_method(perf_script.attributed(perf_data), lambda file: file == code_file, start, end)
        shown = {int(row["address"], 16): row["text"].split()[0] for row in rows}
        by_perf = by_perf_annotate(perf_data, method["name"])
        ours = {int(row["address"], 16): row["self"] for row in rows if row["self"]}
        if by_perf != ours:
            complain(f"perf annotate has {by_perf}\nvarid {ours}")
    if shown != expected:
        for address in sorted(shown.keys() | expected.keys()):
            if shown.get(address) != expected.get(address):
                complain(f"{address:#x}: {shown.get(address)!r}, not {expected.get(address)!r}")
    # Which instruction an offset within one belongs to.
    addresses = [int(row["address"], 16) for row in rows]
    total = Counter()
    for stack in stacks:
        total.update({bisect.bisect_right(addresses, offset) for offset in stack})
    leaves = Counter()
    for offset, count in own.items():
        leaves[bisect.bisect_right(addresses, offset)] += count
    for place, row in enumerate(rows, 1):
        counts = leaves[place], total[place]
        if counts != (row["self"], row["total"]):
            complain(f"{row['address']} {row['text']}: perf finds {counts}, varid {row['self'], row['total']}")
    if sum(own.values()) != method["self"] or sum(map(bool, stacks)) != method["total"]:
        complain(f"{method['name']}: {sum(own.values())} and {sum(map(bool, stacks))} samples, varid {method['self']} and {method['total']}")
    lines = sum(line.get("self", 0) for file in annotation["files"] for line in file["lines"])
    if lines != method["self"]:
        complain(f"the lines have {lines} samples together, the method {method['self']}")
    print(json.dumps({"instructions": len(rows), "sampled": len(leaves), "samples": sum(own.values())}))
    sys.exit(bool(complain.count))


if __name__ == "__main__":
    main()
