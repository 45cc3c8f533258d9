#!/usr/bin/env python3
"""Does an annotated Java method have javap's bytecode and objdump's instructions, each with the samples that perf finds there?

usage: java_annotate.py SESSION CLASSES ANNOTATION
ANNOTATION is what `varid annotate --format json` printed, CLASSES the folder with the method's class file. Prints what was compared as
JSON; exit status 1 if anything differs.
"""

import bisect
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import annotate
import javap
import java_churn
import perf_script

# What objdump prints of an instruction with its bytes.
DISASSEMBLED = re.compile(r"^ *([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t(\S+)")


class Code:
    """A compilation that was sampled: its instructions by their offset, and from when on it was there."""

    def __init__(self, time, start, content):
        self.time, self.start, self.size = time, start, len(content)
        self.content = content

    def instructions(self):
        """Size and mnemonic of each instruction by its offset, as objdump has them."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.content)
            file.flush()
            command = ["objdump", "-D", "-w", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", f"--adjust-vma={self.start:#x}", file.name]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = filter(None, map(DISASSEMBLED.match, text.splitlines()))
        return {int(line[1], 16) - self.start: (len(line[2].split()), named(line[2].split(), line[3])) for line in found}


def named(code, mnemonic):
    """The mnemonic of an instruction, by its bytes where disassemblers differ: `66 90` is `nop` as well as `xchg ax, ax`."""
    is_nop = code[-1] == "90" and set(code[:-1]) <= {"66"}
    return "nop" if is_nop else annotate.OTHER_NAMES.get(mnemonic, mnemonic)


def executed(codes, address, time):
    """The code that was at an address at a time."""
    there = [code for code in codes if code.time <= time and code.start <= address < code.start + code.size]
    return max(there, key=lambda code: code.time, default=None)


def bytecode(classes, method):
    """The method of javap's with this name and size."""
    owner, _, name = method["name"].rpartition(".")
    # One address more is for where a call at the end returns to.
    size = int(method["end"], 16) - int(method["start"], 16) - 1
    [found] = [each for each in classes.get(owner).methods if each.name == name and each.size in (None, size)]
    return found


def compare_bytecode(rows, lines, known, start):
    """Are instructions and lines those of javap?"""
    shown = {row["pc"]: row["text"].split()[0] for row in rows}
    expected = {pc: instruction.mnemonic for pc, instruction in known.code.items()}
    if shown != expected:
        annotate.complain(f"{known.symbol} has {shown}, not {expected}")
    starts = sorted(known.lines)
    for number, row in lines:
        place = bisect.bisect_right(starts, (row["pc"], 1 << 32))
        if starts[place - 1][1] != number or int(row["address"], 16) != start + row["pc"]:
            annotate.complain(f"{known.symbol}: another line or address than {starts[place - 1]}: {row['pc']} in {number}")


def compare_samples(rows, samples, method):
    """Has each bytecode the samples that perf finds at its address?"""
    start, end = int(method["start"], 16), int(method["end"], 16)
    own, stacks = annotate.in_method(samples, lambda file: file.rpartition("/")[2] == method["image"], start, end)
    addresses = [int(row["address"], 16) for row in rows]
    leaves, total = Counter(), Counter()
    for offset, count in own.items():
        leaves[bisect.bisect_right(addresses, offset)] += count
    for stack in stacks:
        total.update({bisect.bisect_right(addresses, offset) for offset in stack})
    for place, row in enumerate(rows, 1):
        if (leaves[place], total[place]) != (row["self"], row["total"]):
            annotate.complain(f"{row['pc']}: perf finds {leaves[place], total[place]}, varid {row['self'], row['total']}")
    counts = sum(own.values()), sum(map(bool, stacks))
    if counts != (method["self"], method["total"]):
        annotate.complain(f"{method['name']}: perf finds {counts}, varid {method['self'], method['total']}")
    return counts[0]


def in_compiled(samples, codes, method):
    """How many samples of each bytecode were at an address of compiled code: (offset of the bytecode, code, address)."""
    start, end = int(method["start"], 16), int(method["end"], 16)
    found = Counter()
    for (_, time), sample in samples:
        leaf = next(iter(sample.chain), None)
        if leaf and leaf.file.rpartition("/")[2] == method["image"] and start <= leaf.offset < end:
            if code := executed(codes, sample.ip, java_churn.nanoseconds(time)):
                found[leaf.offset - start, code, sample.ip] += 1
    return found


def compare_compiled(rows, samples, codes, method):
    """Are the shown instructions those of objdump, each with its samples? Returns their number, and the samples that they have."""
    counted = in_compiled(samples, codes, method)
    letters = {}
    for piece in method.get("compiled", []):
        start, size = int(piece["address"], 16), piece["size"]
        of_letter = [code for code in codes if (code.start, code.size) == (start, size)]
        letters[piece["code"]] = [(code, code.instructions()) for code in of_letter]
        here = sum(count for (_, code, _), count in counted.items() if code in of_letter)
        if here != piece["self"]:
            annotate.complain(f"code {piece['code']}: {here} samples, varid {piece['self']}")
    shown, sampled = 0, 0
    for row, each in ((row, each) for row in rows for each in row.get("compiled", [])):
        matching = [(code, found) for code, found in letters[each["code"]] if each["offset"] in found]
        expected = each["size"], mnemonic(each["text"])
        if not any(found[each["offset"]] == expected for _, found in matching):
            annotate.complain(f"{each['code']}+{each['offset']:x}: {expected}, by objdump {[found[each['offset']] for _, found in matching]}")
        ips = range(int(each["address"], 16), int(each["address"], 16) + each["size"])
        codes_of = [code for code, _ in letters[each["code"]]]
        next_pc = min((other["pc"] for other in rows if other["pc"] > row["pc"]), default=1 << 32)
        here = sum(count for (pc, code, ip), count in counted.items() if code in codes_of and ip in ips and row["pc"] <= pc < next_pc)
        if here != each["self"]:
            annotate.complain(f"{row['pc']}, {each['code']}+{each['offset']:x}: {here} samples, varid {each['self']}")
        shown, sampled = shown + 1, sampled + here
    return shown, sampled


def mnemonic(text):
    """An instruction's name, as objdump has it. A prefix is a word of its own."""
    return "nop" if text == "xchg ax, ax" else text.split()[0]


def main():
    """Compares, prints."""
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    session, classes, annotation = sys.argv[1:]
    annotation = json.loads(Path(annotation).read_text())
    method = annotation["method"]
    lines = [(line["line"], row) for file in annotation["files"] for line in file["lines"] for row in line.get("instructions", [])]
    lines.sort(key=lambda line: line[1]["pc"])
    rows = [row for _, row in lines]
    samples = list(perf_script.attributed(f"{session}/perf.data"))
    codes = [Code(time, address, content) for time, address, _, content in java_churn.kept_code(f"{session}/compiled-code.data")]
    compare_bytecode(rows, lines, bytecode(javap.Classes(classes), method), int(method["start"], 16))
    counted = compare_samples(rows, samples, method)
    shown, sampled = compare_compiled(rows, samples, codes, method)
    print(json.dumps({"bytecodes": len(rows), "samples": counted, "instructions": shown, "compiled": sampled}))
    sys.exit(bool(annotate.complain.count))


if __name__ == "__main__":
    main()
