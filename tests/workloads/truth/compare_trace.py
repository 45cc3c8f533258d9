#!/usr/bin/env python3
"""Is truth.json what the VM's own method trace says of a scenario? Exit status 0 if edges and depth are the same.

usage: compare_trace.py TRUTH.json SCENARIO TRACE

TRACE is ART's, of one round (-Xmethod-trace -Xmethod-trace-file:TRACE): text up to `*end`, then a header and records
of thread, method and action, and two clocks, all little-endian ("traceview" format, version 3).
"""

import json
import struct
import sys
from pathlib import Path

ENTER = 0
PACKAGE = "org.example.truth."


def read(path):
    """Thread names by id, method names by id, and the records (thread, method, action)."""
    data = Path(path).read_bytes()
    end = data.index(b"*end\n") + 5
    threads, methods, section = {}, {}, ""
    for line in data[:end].decode().splitlines():
        if line.startswith("*"):
            section = line[1:]
        elif section == "threads":
            number, name = line.split("\t", 1)
            threads[int(number)] = name
        elif section == "methods":
            number, cls, name = line.split("\t")[:3]
            methods[int(number, 16)] = f"{cls}.{name}"
    magic, version, offset = struct.unpack_from("<4sHH", data, end)
    if magic != b"SLOW" or version & 0xFF != 3:
        sys.exit(f"{path}: at offset {end}: not a trace of version 3")
    (size,) = struct.unpack_from("<H", data, end + 16)
    records = []
    for at in range(end + offset, len(data) - size + 1, size):
        thread, value = struct.unpack_from("<HI", data, at)
        records.append((thread, methods[value & ~3], value & 3))
    return threads, methods, records


def calls(records):
    """Edges from a method of the package to the next one above it, and the deepest stack in its frames."""
    stacks, edges, deepest = {}, set(), 0
    for thread, method, action in records:
        stack = stacks.setdefault(thread, [])
        if action != ENTER:
            if stack and stack[-1] == method:
                stack.pop()
            continue
        if stack and stack[-1].startswith(PACKAGE) and method.startswith(PACKAGE):
            edges.add((stack[-1], method))
        stack.append(method)
        deepest = max(deepest, sum(each.startswith(PACKAGE) for each in stack))
    return edges, deepest


def main():
    """Compares, and says what differs."""
    if len(sys.argv) != 4:
        sys.exit("usage: compare_trace.py TRUTH.json SCENARIO TRACE")
    truth = json.loads(Path(sys.argv[1]).read_text())
    name = sys.argv[2]
    if name == "shares":
        wanted, depth = {(e["caller"], e["callee"]) for e in truth["shares"]["edges"]}, 4
    else:
        scenario = truth["scenarios"][name]
        wanted, depth = set(map(tuple, scenario["edges"])), scenario["depth"]
    found, deepest = calls(read(sys.argv[3])[2])
    for caller, callee in sorted(wanted - found):
        print(f"{name}: not in the trace: {caller} -> {callee}", file=sys.stderr)
    for caller, callee in sorted(found - wanted):
        print(f"{name}: only in the trace: {caller} -> {callee}", file=sys.stderr)
    if deepest != depth:
        print(f"{name}: the deepest stack has {deepest} frames, not {depth}", file=sys.stderr)
    sys.exit(found != wanted or deepest != depth)


if __name__ == "__main__":
    main()
