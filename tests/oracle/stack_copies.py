"""What does perf make of the stacks that were copied with samples? Its own unwinder, on the very same registers and bytes."""

import re
import struct

import perf_script

MMAP2, COMM = 10, 3
MISC_USER = 2  # PERF_RECORD_MISC_USER
PROTECTIONS = {"r": 1, "w": 2, "x": 4}
LINE = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) +(\S+)$")
DATA_OFFSET, DATA_SIZE = 40, 48  # in a perf.data file's header
HEAD = re.compile(r"^ *(-?\d+) +(\d+\.\d+): *$")
KERNEL = 1 << 63


def record(kind, body, pid):
    """A record of before the first sample, with the trailer that all events here have: pid, tid, time, cpu, identifier."""
    body += b"\0" * (-len(body) % 8) + struct.pack("<IIQIIQ", pid, pid, 0, 0, 0, 0)
    return struct.pack("<IHH", kind, MISC_USER, 8 + len(body)) + body


def mappings(maps, pid):
    """MMAP2 records of the files in a copy of /proc/PID/maps."""
    with open(maps) as file:
        for found in filter(None, map(LINE.match, file)):
            start, end, offset, major, minor = (int(found[i], 16) for i in (1, 2, 4, 5, 6))
            if not found[8].startswith(("/", "[vdso]")):
                continue
            protection = sum(bit for letter, bit in PROTECTIONS.items() if letter in found[3])
            body = struct.pack("<IIQQQ", pid, pid, start, end - start, offset)
            body += struct.pack("<IIQQII", major, minor, int(found[7]), 0, protection, 2)
            yield record(MMAP2, body + found[8].encode() + b"\0", pid)


def with_mappings(raw, maps, pid, to):
    """Writes raw.data again, with what perf needs to know of the process before its samples."""
    with open(raw, "rb") as file:
        content = file.read()
    start, size = struct.unpack_from("<QQ", content, DATA_OFFSET)
    told = record(COMM, struct.pack("<II", pid, pid) + b"app\0", pid) + b"".join(mappings(maps, pid))
    with open(to, "wb") as file:
        head = bytearray(content[:start])
        struct.pack_into("<Q", head, DATA_SIZE, size + len(told))
        file.write(bytes(head) + told + content[start : start + size])


def unwound(path):
    """Samples as (thread, time), the user's frames: leaf first, callers by the byte before their return address."""
    key, frames = None, []
    for line in perf_script.lines(path, "tid,time,ip,sym,dso"):
        if head := HEAD.match(line):
            if key:
                yield key, frames
            key, frames = (int(head[1]), head[2]), []
        elif found := perf_script.FRAME.match(line):
            offset = int(found[1], 16)
            if offset < KERNEL:
                frames.append(perf_script.Frame(offset, found[2], found[3]))
        elif line.strip():
            raise SystemExit(f"{path}: perf script printed {line!r}")
    if key:
        yield key, frames
