#!/usr/bin/env python3
"""Does perf show the source lines of a recording's methods as dexdump has them?

usage: substitute_lines.py PERF.DATA DEX...

Every frame of `perf script -F +srcline` in a dex file's substitute must have the line of its instruction; the samples of
each line in `perf report --sort srcline` must be those of these leaves. Prints what was compared as JSON; exit status 1 and
the differences on standard error if there are any.
"""

import json
import re
import subprocess
import sys
from collections import Counter

from substitute import Lines

FRAME = re.compile(r"^\s+[0-9a-f]+ (.*?)\+0x([0-9a-f]+) \((\S*)\)$")
KNOWN = re.compile(r"^(.+):(\d+)$")
REPORTED = re.compile(r"^\s*[\d.]+%\s+(\d+)\s+(.+:\d+)\s*$")


def perf(*arguments):
    """What perf prints; it must have no complaint."""
    command = ["perf", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode or done.stderr.strip():
        sys.exit(f"{' '.join(command)}: {done.returncode} {done.stderr}")
    return done.stdout


def line_at(method, offset):
    """The line of the instruction at an offset in a method: FILE:LINE as perf writes it."""
    before = [(pc, line) for pc, line in method.positions if 2 * pc <= offset]
    if not before:
        return None
    last = max(pc for pc, _ in before)
    # Of several lines for an instruction the first is the one, what follows it has the last.
    lines = [line for pc, line in before if pc == last]
    return f"{method.source}:{lines[0] if offset < 2 * last + 2 else lines[-1]}"


def main(data, *dex_files):
    """Compares."""
    files = {dex.build_id: {method.symbol: method for method in dex.methods} for dex in map(Lines, dex_files)}
    differences, leaves, methods, lines, frames, samples, leaf = [], Counter(), set(), set(), 0, 0, True
    frame = None
    for text in perf("script", "-i", data, "--no-inline", "-F", "ip,sym,symoff,dso,srcline").splitlines():
        if not text.strip():
            leaf, frame = True, None
            continue
        if found := FRAME.match(text):
            build_id = found[3].rpartition("/")[0].rpartition("/")[2]
            frame = (files.get(build_id, {}).get(found[1]), int(found[2], 16), leaf, found[1])
            samples += leaf
            leaf = False
            continue
        if re.match(r"^\s+[0-9a-f]+ ", text):
            samples += leaf
            frame, leaf = None, False
            continue
        if not frame or not frame[0]:
            continue
        method, offset, was_leaf, name = frame
        expected = line_at(method, offset)
        said = KNOWN.match(text.strip())
        frames += 1
        if expected and (not said or said[0] != expected):
            differences.append(f"{name}+{offset:#x}: dexdump {expected}, perf script {text.strip()}")
        if expected:
            methods.add(name)
            lines.add(expected)
            if was_leaf:
                leaves[expected] += 1
    reported = Counter()
    for text in perf(
        "report", "-i", data, "--stdio", "--no-children", "-g", "none", "--no-inline", "-n", "--sort", "srcline"
    ).splitlines():
        if (found := REPORTED.match(text)) and found[2] in leaves:
            reported[found[2]] += int(found[1])
    for line in leaves | reported:
        if leaves[line] != reported[line]:
            differences.append(f"{line}: {leaves[line]} leaves, perf report {reported[line]}")
    print(json.dumps({"samples": samples, "frames": frames, "methods": len(methods), "lines": len(lines)}))
    print("\n".join(differences[:20]), file=sys.stderr)
    return bool(differences)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
