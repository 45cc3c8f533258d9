"""Of which samples does a session say that the innermost method's instruction is approximate? Read from perf.data without perf, which
prints no raw data."""

import mmap
import struct

from stack_words import ADDRESS, CALLCHAIN, CPU, DATA, IDENTIFIER, IP, PERIOD, SAMPLE, TID, TIME

RAW = 1 << 10
SAMPLE_TYPE = IDENTIFIER | IP | TID | TIME | ADDRESS | CPU | PERIOD | CALLCHAIN | RAW
ATTRIBUTES, KIND = 24, 24  # where the header has the attributes' offset; where they have sample_type
# In a record: the thread, the time, the callchain's length; in raw data the flags, behind a user id and a frame pointer.
THREAD, WHEN, CHAIN, FLAGS = 28, 32, 64, 12
APPROXIMATE = 1


def approximate(path):
    """(thread, time) of each, as perf prints them."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        (attributes,) = struct.unpack_from("<Q", content, ATTRIBUTES)
        (sample_type,) = struct.unpack_from("<Q", content, attributes + KIND)
        if sample_type != SAMPLE_TYPE:
            raise SystemExit(f"{path}: samples of type {sample_type:#x}")
        at, size = struct.unpack_from("<QQ", content, DATA)
        end = at + size
        while at < end:
            kind, _, length = struct.unpack_from("<IHH", content, at)
            if kind == SAMPLE:
                raw = at + CHAIN + 8 + 8 * struct.unpack_from("<Q", content, at + CHAIN)[0]
                (size,) = struct.unpack_from("<I", content, raw)
                if size >= FLAGS + 8 and struct.unpack_from("<Q", content, raw + 4 + FLAGS)[0] & APPROXIMATE:
                    (thread,) = struct.unpack_from("<i", content, at + THREAD)
                    (time,) = struct.unpack_from("<Q", content, at + WHEN)
                    yield thread, f"{time // 10**9}.{time % 10**9:09}"
            at += length
