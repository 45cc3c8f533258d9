#!/usr/bin/env python3
"""Is every compiled Java frame named by the method that was at its address at that time, while code is freed and replaced all the time?

usage: java_churn.py SESSION LOG
SESSION has raw.data (--keep-raw) without copies of stacks. LOG is what the agent has written (tests/system/jvm/churn.c), of a program whose
compiled code keeps frame pointers. Where a sample's instruction is in compiled or interpreted code, the kernel's own callchain, by these frame
pointers, has the address of each frame of such code. A small method that C2 has compiled sets its frame pointer in two instructions, and between
them the frame pointer leads to words that earlier calls have left: of such a sample the callchain has the leaf only. Two rules:

* By address. Of each address in compiled code, the callchain has a method that was there at the time, with nothing but methods that are
  inlined there before it, and in the same order. A callchain that says that it ends early need not have all.
* By thread. A method of a copy is executed only by a thread that executes this copy at the time, whether it is compiled, inlined or interpreted.
  Not so methods that are inlined at the leaf into one that all copies call: the debug information nearest to it may be of another call.

A method is at an address from some time before the agent is told that it is loaded until the agent is told that it is unloaded, for
the VM tells both later. So two methods may have been at an address: such frames are counted as `ambiguous`. Frames that the session does not name
are counted as `unnamed`.

Code that the session keeps (compiled-code.data) is that of a method that was there when it was first sampled, with its instructions: the VM changes
some of them, such as the targets of calls, while they are executed.

Prints counts as JSON, and the first wrong samples; exit status 1 if there are any.
"""

import bisect
import json
import os
import re
import struct
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache

import perf_script

SHOWN = 10
KERNEL = 1 << 63
REMAP = re.compile(r"/remap(?:-framework)?\.elf$")
COPY = re.compile(r"^Hot(\d{5})\b")
# The VM tells of a compiled method so many nanoseconds later at most that it is there.
TOLD_LATER = 1_000_000_000
# Of code that the VM has changed, such a part of the bytes is the same.
SAME_BYTES = 0.8
# Of a wrong sample the codes are printed that were at its addresses so many nanoseconds before it or afterwards.
NEAR = 2_000_000_000
# The VM frees and allocates code in segments, so no two methods are in one at a time.
SEGMENT = 64
# `mov %rsp,%rbp`, and behind it `add $N,%rbp` with N of one byte or four: how MacroAssembler::verified_entry sets the frame pointer of a method
# that needs no check of the stack's end.
SET_FRAME_POINTER = re.compile(b"\x48\x8b\xec\x48[\x83\x81]\xc5")
HIDDEN = re.compile(r"^(.*?\$\$Lambda)\b.*(\.[^.]*)$|^(.*?)[+/.]0x[0-9a-f]+(\.[^.]*)$")
LINKS = re.compile(r"java\.lang\.invoke\.MethodHandle\.(?:linkTo|invokeBasic)")

# What stands for a method that is not known; the VM may have ended before it was read.
UNKNOWN = ("[unknown-method]", "[vm-gone]")


@dataclass
class Code:
    """A compiled method: itself, then what is inlined into it. It is at its addresses between two times; `until` None: to the end."""

    start: int
    end: int
    since: int
    methods: list
    bytes: bytes = b""
    until: int | None = None

    def sets_frame_pointer(self, address):
        """Whether the frame pointer leads to no frame where this instruction is interrupted."""
        behind = address - self.start
        return bool(SET_FRAME_POINTER.fullmatch(self.bytes, max(behind - 3, 0), behind + 3))

    def end_at(self, time):
        """It is there no more at a time, if that was not told before."""
        if self.until is None:
            self.until = time


@cache
def plain(name):
    """A method's name without the number that a hidden class has, which the VM and its tools write in different ways. What links method
    handles is one method: the VM does not tell of all such code, so which was at an address is not known."""
    if LINKS.match(name):
        return "java.lang.invoke.MethodHandle"
    found = HIDDEN.match(name)
    return "".join(filter(None, found.groups())) if found else name


def of_jvmti(name):
    """The name of a method in the log as a profile has it."""
    cls, _, method = name.rpartition(".")
    return plain(f"{cls[1:-1].replace('/', '.')}.{method}")


class Log:
    """Which code was at an address at a time, and which copy a thread has executed."""

    def __init__(self, path):
        self.segments, self.threads, self.interpreter = defaultdict(list), defaultdict(list), range(0)
        self.starts = {}  # the newest code that starts at an address
        self.counts = Counter()
        kinds = {"load": self.load, "unload": self.unload, "bytes": self.instructions, "executes": self.executes, "interpreter": self.interpret}
        kind = ""
        with open(path, encoding="utf-8") as file:
            for line in file:
                kind, *fields = line.rstrip("\n").split("\t")
                if kind in kinds:
                    kinds[kind](*fields)
        if kind != "end":
            raise SystemExit(f"{path} is not whole")

    def interpret(self, start, size):
        """Where the interpreter is."""
        self.interpreter = range(int(start, 16), int(start, 16) + int(size))

    def load(self, time, start, size, *methods):
        """A compiled method is there, of which the VM may tell twice."""
        time, start, size, methods = int(time), int(start, 16), int(size), [of_jvmti(method) for method in methods]
        known = self.starts.get(start)
        if known and known.until is None and known.methods == methods:
            return
        code = self.starts[start] = Code(start, start + size, time - TOLD_LATER, methods)
        segments = [self.segments[at] for at in range(start // SEGMENT, (start + size - 1) // SEGMENT + 1)]
        self.counts["loaded"] += 1
        self.counts["loaded where other code was"] += any(segments)
        for codes in segments:
            if codes:
                codes[-1].end_at(time)
            codes.append(code)

    def instructions(self, start, code):
        """The instructions of a compiled method that is there."""
        self.starts[int(start, 16)].bytes = bytes.fromhex(code)

    def unload(self, time, start):
        """A compiled method is there no more."""
        if code := self.starts.get(int(start, 16)):
            code.end_at(int(time))
            self.counts["unloaded"] += 1

    def executes(self, time, thread, copy):
        """A thread executes a copy from a time on."""
        self.threads[int(thread)].append((int(time), int(copy)))

    def at(self, address, time):
        """The codes that may have been at an address at a time."""
        codes = self.segments.get(address // SEGMENT, ())
        found = []
        for index in range(bisect.bisect_right(codes, time, key=lambda code: code.since), 0, -1):
            code = codes[index - 1]
            if code.until is not None and code.until < time:
                break
            if code.start <= address < code.end:
                found.append(code)
        return found

    def near(self, address, time):
        """What was at an address around a time, for people."""
        for code in self.segments.get(address // SEGMENT, ()):
            told, until = code.since + TOLD_LATER - time, None if code.until is None else code.until - time
            if code.start <= address < code.end and told < NEAR and (until is None or until > -NEAR):
                behind = address - code.start
                around = f"{code.bytes[max(behind - 16, 0):behind].hex(' ')} | {code.bytes[behind:behind + 16].hex(' ')}"
                times = f"told of at {told / 1e6:+.3f} ms, " + ("there to the end" if until is None else f"gone at {until / 1e6:+.3f} ms")
                yield f"{code.methods[0]} + {behind:#x}: {times}; {around}"

    def copy(self, thread, time):
        """The copy that a thread executes at a time; 0: none."""
        changes = self.threads.get(thread, ())
        at = bisect.bisect_right(changes, time, key=lambda change: change[0])
        return changes[at - 1][1] if at else 0


class Oracle:
    """The rules, and what is counted."""

    def __init__(self, log):
        self.log, self.counts = log, Counter(log.counts)

    def wrong_copy(self, frames, thread, leaf, time):
        """Why a frame cannot be of this thread, or None."""
        copy = self.log.copy(thread, time)
        # The debug information nearest to the leaf may be of a call that is not executed: methods that others share have those of several copies.
        codes = [code for address in leaf for code in self.log.at(address, time)]
        near = {method for code in codes if not COPY.match(code.methods[0]) for method in code.methods}
        for frame in frames:
            if not (found := COPY.match(frame)):
                near = near if frame in near else ()
                continue
            self.counts["frames of copies"] += 1
            if int(found[1]) != copy:
                if frame not in near:
                    return f"{frame}, and the thread executes copy {copy}"
                self.counts["of other copies, inlined at the leaf"] += 1
        return None

    def codes(self, addresses, time):
        """(address, codes there) of each frame of generated code: of the interpreter there are none. Callers have return addresses."""
        for index, address in enumerate(addresses):
            address -= index > 0
            found = self.log.at(address, time)
            if not found and address not in self.log.interpreter:
                return
            yield address, found
            if index == 0 and any(code.sets_frame_pointer(address) for code in found):
                self.counts["frame pointer is being set"] += 1
                return

    def wrong_address(self, frames, addresses, time):
        """Why the frames are not those that were at the addresses, or None."""
        ends = {0}  # how many frames may be known: those up to the last address
        between = 0  # of those behind them so many may be of the interpreter
        for index, (address, codes) in enumerate(self.codes(addresses, time)):
            # An instruction that makes or leaves a frame has its caller where no frame pointer leads.
            between += len(frames) if index == 1 else not codes
            if not codes:
                continue
            roots, inlined = {code.methods[0] for code in codes}, {method for code in codes for method in code.methods}
            self.counts["addresses"] += 1
            self.counts["ambiguous"] += len(roots) > 1
            reached = set()
            for end in ends:
                others = 0
                for at in range(end, len(frames)):
                    if frames[at] in roots or frames[at] in UNKNOWN:
                        reached.add(at + 1)
                    others += frames[at] in UNKNOWN or (frames[at] not in inlined and not frames[at].startswith("["))
                    if others > between:
                        break
            self.counts["unnamed"] += all(frames[at - 1] in UNKNOWN for at in reached) and bool(reached)
            if not reached and frames[-1:] and frames[-1].startswith("["):
                # The session says that it does not know the callers, or the code that they have called.
                self.counts["end early"] += 1
                return None
            if not reached:
                return f"{' or '.join(sorted(roots))} is at {address:#x}, and the frames have another method"
            ends, between = reached, 0
        return None

    def judge(self, key, sample, raw):
        """What is wrong with a sample, or None."""
        time = nanoseconds(key[1])
        frames = [plain(frame.symbol) for frame in sample.chain if REMAP.search(frame.file)]
        self.counts["samples"] += 1
        self.counts["in Java"] += bool(frames)
        addresses = [address for address in raw.chain if address < KERNEL] if raw else []
        wrong = self.wrong_copy(frames, key[0], addresses[:1], time)
        return wrong or self.wrong_address(frames, addresses, time)

    def wrong_code(self, time, address, method, code):
        """What is wrong with code that the session keeps, or None."""
        codes = [known for known in self.log.at(address, time) if known.start == address]
        self.counts["codes"] += bool(codes)
        if not codes:
            return None
        codes = [known for known in codes if known.methods[0] == method]
        if not codes:
            return f"the code at {address:#x} is not that of {method}"
        if code and not any(are_similar(known.bytes, code) for known in codes):
            return f"the code of {method} at {address:#x} has other instructions"
        return None


class Fields:
    """The fields of a chunk of compiled-code.data."""

    def __init__(self, payload):
        self.payload, self.at = payload, 0

    def number(self):
        number = shift = 0
        while True:
            byte = self.payload[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def take(self, length):
        self.at += length
        return self.payload[self.at - length : self.at]


def kept_code(path):
    """(time, address, method, instructions) of the code that a session keeps."""
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        data = file.read()
    assert data[:12] == b"VARIDCOD\1\0\0\0"
    at = 12
    while at < len(data):
        kind, length, _ = struct.unpack_from("<BII", data, at)
        fields = Fields(data[at + 9 : at + 9 + length])
        at += 9 + length
        if kind != 1:
            continue
        _, time, address, _ = (fields.number() for _ in range(4))
        name = fields.take(fields.number()).decode()
        yield time, address, plain(name.partition(" of ")[2]), fields.payload[fields.at :]


def are_similar(one, other):
    """Whether the instructions are the same, but for what the VM changes."""
    pairs = list(zip(one, other))
    return sum(a == b for a, b in pairs) >= SAME_BYTES * len(pairs)


def nanoseconds(time):
    """A time as perf prints it."""
    seconds, _, fraction = time.partition(".")
    return int(seconds) * 10**9 + int(fraction)


def main():
    """Judges, prints."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    session, log = sys.argv[1:]
    oracle = Oracle(Log(log))
    samples = dict(perf_script.attributed(f"{session}/perf.data"))
    raws = dict(perf_script.raw(f"{session}/raw.data", samples))
    kinds = Counter()
    for key, sample in samples.items():
        if what := oracle.judge(key, sample, raws.get(key)):
            kinds[what] += 1
            if len(kinds) <= SHOWN and kinds[what] == 1:
                print(f"{key[0]} {key[1]}: {what}; ip {sample.ip:#x}", file=sys.stderr)
                for frame in sample.chain:
                    print(f"    {frame.offset:x} {frame.symbol} ({frame.file.rsplit('/', 1)[-1]})", file=sys.stderr)
                for address in raws[key].chain if key in raws else ():
                    near = oracle.log.near(address, nanoseconds(key[1]))
                    print(f"  {address:#x}", *near, sep="\n    ", file=sys.stderr)
    for code in kept_code(f"{session}/compiled-code.data"):
        if what := oracle.wrong_code(*code):
            kinds[what] += 1
            print(what, file=sys.stderr)
    print(json.dumps({**oracle.counts, "wrong": kinds.total()}))
    sys.exit(kinds.total() > 0)


if __name__ == "__main__":
    main()
