"""Who called whom, by the VM's own account? ART's method trace (-Xmethod-trace), version 3.

Text with threads and methods up to `*end`, then a header and records of thread, method and action, and the thread's CPU
time and the wall clock in microseconds since the start; all little-endian.
"""

import struct
from collections import Counter
from pathlib import Path

ENTER = 0


def records(path):
    """(thread, method's name, action, CPU time), in the file's order."""
    data = Path(path).read_bytes()
    end = data.index(b"*end\n") + 5
    methods, section = {}, ""
    # Names are dex strings: characters beyond 16 bits are two surrogates.
    text = data[:end].decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16")
    for line in text.split("\n"):
        if line.startswith("*"):
            section = line[1:]
        elif section == "methods":
            number, cls, name = line.split("\t")[:3]
            methods[int(number, 16)] = f"{cls}.{name}"
    magic, version, offset = struct.unpack_from("<4sHH", data, end)
    if magic != b"SLOW" or version != 3:
        raise SystemExit(f"{path}: at offset {end}: not a trace of version 3 with both clocks: {magic} {version:#x}")
    (size,) = struct.unpack_from("<H", data, end + 16)
    for at in range(end + offset, len(data) - size + 1, size):
        thread, value, cpu = struct.unpack_from("<HII", data, at)
        yield thread, methods[value & ~3], value & 3, cpu


def edges(path):
    """Of each edge (caller, callee): microseconds that it was on its thread's stack, however often it was there at once; and its calls."""
    stacks, time, calls = {}, Counter(), Counter()
    for thread, method, action, cpu in records(path):
        stack = stacks.setdefault(thread, [])
        if action == ENTER:
            edge = (stack[-1][0], method) if stack else None
            outer = edge is None or all(entry[1] != edge for entry in stack)
            stack.append((method, edge, cpu, outer))
        elif stack and stack[-1][0] == method:
            _, edge, since, outer = stack.pop()
            if edge:
                calls[edge] += 1
                time[edge] += cpu - since if outer else 0
    return time, calls
