#!/usr/bin/env python3
"""Is every sample of stackvm, a VM that varid itself does not know, attributed to the methods that ran, at their instructions?

usage: stackvm.py SESSION MAPS LOG PROGRAM

stackvm's own log says which native code is which method's loop, and where that executes which opcode: so the interrupted ip tells the method and the
opcode that ran, and the kernel's own callchain, by frame pointers, its callers. The program's bytes tell which method each caller's instruction invokes.
Prints what it counted as JSON, and what is wrong on standard error; exit status 1 if anything is.
"""

import bisect
import json
import sys
from collections import Counter

import perf_script
from maps import Maps

INVOKE = 8
DEEPEST = 100  # addresses, the kernel's own included: a longer chain may have been cut by it
MANY = 20
NATIVE = "native"


class Truth:
    """The VM's own log."""

    def __init__(self, log, program):
        self.bytes = open(program, "rb").read()
        self.names, self.codes, self.loops = [], [], []
        for line in open(log, encoding="ascii"):
            kind, *words = line.split()
            if kind == "code":
                self.code = range(int(words[0], 16), int(words[1], 16))
            elif kind == "program":
                self.start = int(words[0], 16)
            elif kind == "method":
                self.names.append(words[1])
                start, end = int(words[3], 16), int(words[4], 16)
                self.codes.append(range(start - self.start, end - self.start) if start else range(0))
            elif kind == "loop":
                start, end, moves = (int(word, 16) for word in words[1:])
                self.loops.append((range(start, end), moves, []))
            elif kind == "handler":
                self.loops[-1][2].append(int(words[2], 16))
        if kind != "done":
            raise SystemExit(f"{log} is not whole")

    def loop(self, address):
        """The index of the method whose loop an address is in, or None."""
        found = [index for index, (code, _, _) in enumerate(self.loops) if address in code]
        return found[0] if found else None

    def opcode(self, ip):
        """The opcode that is executed at an address of a loop; None: it is on its way to the next."""
        _, moves, handlers = self.loops[self.loop(ip)]
        at = bisect.bisect(handlers, ip) - 1
        return at if at >= 0 and ip < moves else None

    def ran(self, address):
        """What the code at an address runs: the name of a method, NATIVE for a native one, or None."""
        index = self.loop(address)
        if index is not None:
            return self.names[index]
        return NATIVE if address in self.code else None

    def instruction(self, frame, is_leaf):
        """The method's name and the bytes at a frame of the program."""
        at = frame.offset - (not is_leaf)
        found = [name for name, code in zip(self.names, self.codes) if at in code]
        return (found[0] if found else None), self.bytes[at - at % 4 : at - at % 4 + 4]


def is_native(name):
    return name.startswith("stack.Native.")


def wrong(raw, sample, truth, maps, counts):
    """What is wrong with a sample, or None."""
    if sample.ip != raw.ip:
        return f"the ip was {raw.ip:#x}, not {sample.ip:#x}"
    user = [address for address in raw.chain if address < maps.kernel]
    if not user or len(raw.chain) >= DEEPEST:
        counts["no user part, or cut"] += 1
        return None
    reasons = [frame.symbol for frame in sample.chain if frame.symbol.startswith("[") and frame.file.endswith("/remap.elf")]
    reasons = [reason for reason in reasons if reason not in ("[native]", "[no-unwind-info]")]
    if reasons:
        counts["vm not ready" if reasons == ["[vm-not-ready]"] else "unresolved"] += 1
        counts[" ".join(reasons)] += 1
        # Before varid has seen the process, and where a frame is being made or left.
        is_between = user[0] in truth.code and truth.loop(user[0]) is None
        if reasons == ["[vm-not-ready]"] or (is_between and set(reasons) == {"[torn-frames]"}):
            return None
        return f"unresolved where every frame was whole: {reasons}"
    leaf = truth.loop(user[0])
    is_between = leaf is None and user[0] in truth.code
    ran = [name for name in (truth.ran(address) for address in user[1:]) if name]
    if leaf is not None:
        ran.insert(0, truth.names[leaf])
        counts["in a loop"] += 1
    elif is_between:
        counts["between methods"] += 1
    frames = [frame for frame in sample.chain if frame.symbol.startswith("stack.")]
    if not ran and not frames:
        counts["no method"] += 1
        return None
    counts["method known"] += 1
    counts["frames"] += len(frames)
    names = [frame.symbol for frame in frames]
    more = len(names) - len(ran)
    if more == -1 and is_between:
        ran, more = ran[1:], 0
    # A function without a frame of its own hides its caller from the frame pointers.
    if more not in (0, 1) or (more and not (is_between or (leaf is None and is_native(names[0])))):
        return f"{ran} ran, not {names}"
    for name, truly in zip(names[more:], ran):
        if name != truly and not (truly == NATIVE and is_native(name)):
            return f"{ran} ran, not {names}"
    # Each caller is at an invoke of what it called.
    for inner, outer in zip(frames, frames[1:]):
        if is_native(outer.symbol):
            continue
        method, instruction = truth.instruction(outer, False)
        if method != outer.symbol or instruction[0] != INVOKE or truth.names[instruction[2]] != inner.symbol:
            return f"{inner.symbol} was called by {method} at {instruction.hex()}"
    counts["callers known"] += 1
    if leaf is not None and raw.ip < maps.kernel and (opcode := truth.opcode(user[0])) is not None:
        method, instruction = truth.instruction(frames[0], True)
        counts["instruction known"] += 1
        if method != truth.names[leaf] or instruction[0] != opcode:
            return f"opcode {opcode} of {truth.names[leaf]} was running, not {instruction.hex()} of {method}"
    return None


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    session, maps, truth = sys.argv[1], Maps(sys.argv[2]), Truth(sys.argv[3], sys.argv[4])
    samples = dict(perf_script.attributed(f"{session}/perf.data"))
    start = min((float(time) for _, time in samples), default=0.0)
    counts = Counter()
    for key, raw in perf_script.raw(f"{session}/raw.data", samples):
        counts["samples"] += 1
        if key not in samples:
            unpaired = perf_script.outside_session(raw, key[1], start, maps.kernel) or "not paired"
            counts[unpaired] += 1
        elif reason := wrong(raw, samples[key], truth, maps, counts):
            counts["wrong"] += 1
            if counts["wrong"] <= MANY:
                print(f"{key}: {reason}", file=sys.stderr)
                for frame in samples[key].chain[:12]:
                    print(f"    {frame.offset:x} {frame.symbol} ({frame.file})", file=sys.stderr)
    print(json.dumps({"wrong": 0, **counts}))
    sys.exit(counts["wrong"] > 0)


if __name__ == "__main__":
    main()
