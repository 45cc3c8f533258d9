#!/usr/bin/env python3
"""Does varid unwind every stack as perf does, from the same registers and the same copy of it? And where not, who is right and why?

usage: unwinding.py SESSION MAPS       in the environment: ADB, if both are on a board

SESSION was recorded with --keep-raw and --stack full, of a process whose VM is not known at all: its callchains are the native
frames that varid found. raw.data has the kernel's copies of the same stacks, which perf unwinds here.

A chain is right if the bytes before each return address are a call, and it ends where its thread began. If both are, one is
the beginning of the other, and the whole one is right. Prints counts as JSON, and on standard error an example of every place
where the two part; exit status 1 if perf is right anywhere and varid neither is nor says so, or if more than a few samples are those
of which it says so though perf is right, or more than two of which no chain is right for no known reason.
"""

import json
import sys
import tempfile
from collections import Counter

import board
import machine_code
import perf_script
import stack_copies

KERNEL = 1 << 63
# Where the main thread begins, and all others.
MAIN, OTHERS = ("_start", "_dl_start_user"), ("clone3", "__clone3", "__clone")


def own(sample):
    """varid's user frames as perf gives them: callers one byte back, without what only stands for frames."""
    user = [frame for frame in sample.chain if frame.offset < KERNEL and not frame.file.endswith("/remap.elf")]
    return [
        perf_script.Frame(frame.offset - (depth > 0), frame.symbol, frame.file) for depth, frame in enumerate(user)
    ]


def reasons(sample):
    """Why varid says that frames are missing."""
    return {frame.symbol for frame in sample.chain if frame.file.endswith("/remap.elf")}


def parting(varid, perf):
    """How many frames are the same."""
    same = 0
    for one, other in zip(varid, perf):
        if (one.file, one.offset) != (other.file, other.offset):
            break
        same += 1
    return same


class Comparison:
    """What was found."""

    def __init__(self, pid):
        self.pid = pid
        self.files = {}
        self.counts = Counter()
        self.examples = {}

    def file(self, frame):
        """The file that a frame is in."""
        if frame.file not in self.files:
            self.files[frame.file] = machine_code.File(frame.file)
        return self.files[frame.file]

    def is_right(self, thread, frames):
        """Whether a chain can be this thread's: by what its code does."""
        beginning = MAIN if thread == self.pid else OTHERS
        known = [self.file(frame) for frame in frames]
        if not frames or any(file.content is None for file in known[1:]):
            return False
        last = frames[-1]
        # On arm64 glibc has no symbol for its second half of clone.
        if last.symbol not in beginning and (thread == self.pid or not known[-1].exits_behind(last.offset)):
            return False
        return all(file.is_call(frame.offset) for file, frame in list(zip(known, frames))[1:])

    def verdict(self, thread, varid, perf, same):
        """Who is right where the two differ."""
        right = [self.is_right(thread, frames) for frames in (varid, perf)]
        if all(right) and same == min(len(varid), len(perf)):
            right = [len(frames) > same for frames in (varid, perf)]
        return ("neither right", "perf right", "varid right", "both right")[2 * right[0] + right[1]]

    def cause(self, sample, leaf):
        """What is known to make perf, or both, go wrong."""
        said, file = reasons(sample), leaf and self.file(leaf)
        if "[truncated]" in said:
            return "the copy does not hold the frame"
        if leaf and leaf.file == "[unknown]":
            return "the leaf is in no mapping"  # while the program is replaced by the app's
        if not leaf or file.content is None:
            return "unexplained"
        if not file.has_unwind_information(leaf.offset):
            return "the leaf has no unwind information"
        if file.is_in_epilogue(leaf.offset):
            # Of what lies below it varid copies 128 bytes, and perf none.
            return "registers are below the stack pointer"
        if said & {"[stack-unreadable]", "[no-unwind-info]"}:
            return "the unwind information is wrong"  # ART's, in the last instructions of its invoke stubs
        return "unexplained"

    def sample(self, key, sample, perf):
        """Compares one sample's stacks."""
        varid = own(sample)
        self.counts["samples"] += 1
        self.counts["frames"] += len(varid)
        same = parting(varid, perf)
        if same == len(varid) == len(perf):
            self.counts["equal"] += 1
            if self.is_right(key[0], varid):
                self.counts["equal and right"] += 1
                return
            verdict = "equal and wrong"
        else:
            verdict = self.verdict(key[0], varid, perf, same)
        what = f"{verdict}: {self.cause(sample, varid[0] if varid else None)}"
        self.counts[what] += 1
        self.examples.setdefault(what, (key, varid, perf, same, reasons(sample)))

    def tell(self):
        """An example of each kind of difference."""
        for what, (key, varid, perf, same, said) in self.examples.items():
            print(f"{what}: thread {key[0]} at {key[1]}, frame {same} of {len(varid)} and {len(perf)}, {said or 'whole'}", file=sys.stderr)
            for name, frames in (("varid", varid), ("perf", perf)):
                for frame in frames[: same + 2]:
                    print(f"    {name}: {frame.offset:x} {frame.symbol} ({frame.file})", file=sys.stderr)

    def is_good(self):
        """Whether varid is right, or says what it lacks, wherever perf is right, and where neither is, the cause is known but of two at most."""
        # Two copies are made one after the other: a page may be there for one of them only.
        known = "perf right: the copy does not hold the frame"
        # There varid says that it could not go on. Of some 4,000 samples on arm64 one was so, in a handler that throws.
        said = "perf right: the unwind information is wrong"
        wrong = [what for what in self.counts if what.startswith(("perf", "both")) and what not in (known, said)]
        few = 2 + self.counts["samples"] // 250
        return not wrong and self.counts[said] <= few and self.counts["neither right: unexplained"] <= 2


def main():
    """Compares, prints."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    session, maps = sys.argv[1:]
    pid = int(next(perf_script.lines(f"{session}/perf.data", "pid", "-G")))
    readable = f"{session}/stacks.data"
    with tempfile.NamedTemporaryFile() as written:
        stack_copies.with_mappings(board.fetched(f"{session}/raw.data"), board.fetched(maps), pid, written.name)
        board.sent(written.name, readable)
    samples = dict(perf_script.attributed(f"{session}/perf.data"))
    comparison = Comparison(pid)
    for key, perf in stack_copies.unwound(readable):
        if sample := samples.pop(key, None):
            comparison.sample(key, sample, perf)
        else:
            comparison.counts["unpaired"] += 1
    comparison.tell()
    print(json.dumps(comparison.counts))
    sys.exit(not comparison.is_good())


if __name__ == "__main__":
    main()
