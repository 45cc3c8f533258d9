"""What did a program execute, and who called whom, by the VM's own account? ART's method trace (-Xmethod-trace), version 3.

Text with threads and methods up to `*end`, then a header and records of thread, method and action, and the thread's CPU
time and the wall clock in microseconds since the start; all little-endian. The VM interprets all methods while it traces, so that
inlined ones are in the trace, too. It begins when the VM has started, before the app's first method.
"""

import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ENTER = 0
RECORD = struct.Struct("<HIII")


@dataclass(frozen=True)
class Method:
    """A method that was executed."""

    cls: str
    name: str
    descriptor: str

    def __str__(self):
        return f"{self.cls}.{self.name}"


class Trace:
    """A trace in a file."""

    def __init__(self, path):
        data = Path(path).read_bytes()
        end = data.index(b"*end\n") + 5
        self.methods, self.threads, section = {}, {}, ""
        # Names are dex strings: characters beyond 16 bits are two surrogates.
        text = data[:end].decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16")
        for line in text.split("\n"):
            if line.startswith("*"):
                section = line[1:]
            elif section == "threads":
                number, name = line.split("\t")
                self.threads[int(number) & 0xFFFF] = name
            elif section == "methods":
                number, cls, name, descriptor = line.split("\t")[:4]
                self.methods[int(number, 16)] = Method(cls, name, descriptor)
            elif line == "data-file-overflow=true":
                raise SystemExit(f"{path}: the trace is not whole: -Xmethod-trace-file-size is too small")
        magic, version, offset = struct.unpack_from("<4sHH", data, end)
        (size,) = struct.unpack_from("<H", data, end + 16)
        if magic != b"SLOW" or version != 3 or size != RECORD.size:
            raise SystemExit(f"{path}: at offset {end}: not a trace of version 3 with both clocks: {magic} {version:#x}")
        start = end + offset
        self.content = memoryview(data)[start : len(data) - (len(data) - start) % size]

    def records(self):
        """(thread, method, action, CPU time), in the file's order."""
        for thread, value, cpu, _ in RECORD.iter_unpack(self.content):
            yield thread, self.methods[value & ~3], value & 3, cpu

    def entries(self):
        """(name of the thread, method) of each method that native code called where no other method ran."""
        stacks, begun = {}, {}
        for thread, method, action, _ in self.records():
            stack = stacks.setdefault(thread, [])
            if action == ENTER:
                if not stack:
                    yield self.threads.get(thread), method
                stack.append(method)
            elif stack and stack[-1] == method:
                stack.pop()
            elif method in stack:
                while stack.pop() != method:
                    pass
            elif not stack:
                # The trace began inside it; its own caller may follow.
                begun[thread] = method
        yield from ((self.threads.get(thread), method) for thread, method in begun.items())


def records(path):
    """(thread, method's name, action, CPU time), in the file's order."""
    for thread, method, action, cpu in Trace(path).records():
        yield thread, str(method), action, cpu


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
