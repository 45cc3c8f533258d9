#!/usr/bin/env python3
"""Are the Java frames of each sample those that the VM itself finds at the same instant, by AsyncGetCallTrace?

usage: java_traces.py SESSION TRACES CLASSES PACKAGE
SESSION has a sample of each call of traces_sampled() by the handler of a signal. TRACES has the trace that the VM has made in the same handler
(tests/system/jvm/traces.c). CLASSES: the folder of the workload's class files, of which PACKAGE is the package. The frames of the sample beyond the signal's frame are compared with it: methods, and the instruction of each.
Prints as JSON how many samples are equal, and how many of each kind of difference; and the first ones of each kind. Exit status 1 if a sample
has another method.
"""

import bisect
import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

import perf_script
from beginnings import is_signal_return
from java import LAMBDA, Oracle, Symbols
from java_churn import nanoseconds, of_jvmti, plain

SHOWN = 3
PAGE = 4096
WRONG = "WRONG: other methods"
# The VM has another rule.
ENTERED = "a method that is being entered"
LEFT = "a method that is being left, as by an exception"
SHORTER = "callers that the VM does not find"
DESCRIBED = "the leaf is at an address with debug information"
ENTRY = "the leaf is in front of all debug information"
# The VM guesses where a frame ends that is being made or left, and may take a word of an earlier call for a frame. Such a stack does not reach
# the method in which the thread began.
NO_CALL = "calls that the program does not make, found by the VM"
OTHER_RULE = (ENTERED, LEFT, SHORTER, DESCRIBED, ENTRY, NO_CALL)
# Others.
INLINED = "other methods that are inlined at the leaf"
MISSING = "inner frames are missing"
LACKING = "inner frames that the VM does not find"
CALLING = "another instruction where the VM is called"
LEAF = "another instruction of the leaf in compiled code"
REMAP = re.compile(r"/remap(?:-framework)?\.elf$")
REASON = re.compile(r"/remap\.elf$")


class Session:
    """The samples of a session, by thread and time."""

    def __init__(self, session):
        self.symbols = {path.name: Symbols(path) for path in (Path(session) / "symbols").glob("remap*.elf")}
        self.samples = defaultdict(list)
        for (thread, time), sample in perf_script.attributed(f"{session}/perf.data"):
            self.samples[thread].append((nanoseconds(time), sample))
        for samples in self.samples.values():
            samples.sort(key=lambda sample: sample[0])

    def between(self, thread, before, after):
        """The sample of a thread between two times, or None."""
        samples = self.samples[thread]
        at = bisect.bisect_left(samples, before, key=lambda sample: sample[0])
        return samples[at][1] if at < len(samples) and samples[at][0] <= after else None

    def frames(self, chain):
        """(method, bytecode index) of the frames that a signal has interrupted, and the reason why there are no more, or None."""
        interrupted = next(at for at, frame in enumerate(chain) if is_signal_return(frame)) + 1
        frames = []
        for frame in chain[interrupted:]:
            if not REMAP.search(frame.file):
                continue
            if frame.symbol.startswith("[") and REASON.search(frame.file):
                if frame.symbol != "[native]":
                    return frames, frame.symbol
                continue
            start, _ = self.symbols[frame.file.rsplit("/", 1)[-1]].place(frame.offset)
            frames.append((plain(frame.symbol), frame.offset - start - 1))
        return frames, None


def difference(found, reason, known, is_compiled):
    """What differs, as a kind of difference; None: nothing. Those of WRONG have a method that does not run.

    The innermost frame's instruction is not compared in the interpreter, where the VM knows the one at which it called something last."""
    methods = names(found), names(known)
    if all(same(*both) for both in zip(found[1:], known[1:])) and all(map(str.__eq__, *methods)):
        if len(found) > len(known):
            return SHORTER
        if reason:
            return f"ends in {reason}"
        if len(found) == len(known):
            return LEAF if is_compiled and not same(found[0], known[0]) else None
    if reason:
        return WRONG
    outer = 0
    while outer < min(len(found), len(known)) and same(found[-1 - outer], known[-1 - outer]):
        outer += 1
    if outer == len(known):
        return LACKING
    if outer == len(found):
        return MISSING
    if is_compiled and 0 < outer < len(known):
        return INLINED
    # Where compiled code has called the VM, that takes the instruction behind the call.
    return CALLING if 0 < outer < len(known) and found[-1 - outer][0] == known[-1 - outer][0] else WRONG


def is_part(known, found):
    """Whether the VM finds only some frames of a stack that follow each other, as where it resolves a call of compiled code."""
    all_names, some = names(found), names(known)
    return any(all_names[at:at + len(some)] == some for at in range(len(all_names)))


def judge(found, reason, known, address, described):
    """The same, with the differences in which the VM has another rule.

    It does not count a method that is being entered, or that an exception leaves. Behind exceptions that it throws itself it finds no callers. It takes the instruction behind
    an address with debug information, such as that of a null check, also for this address, and the first such instruction for a method's entry."""
    kind = difference(found, reason, known, described is not None)
    if kind and found and found[0][1] == 0:
        without = difference(found[1:], reason, known, is_compiled=False)
        if without is None or without == SHORTER or without.startswith("ends in"):
            return without or ENTERED
    if kind == LACKING and difference(found[1:], reason, known, is_compiled=False) is None:
        return LEFT
    if kind in (LEAF, INLINED, MISSING) and described:
        if address in described:
            return DESCRIBED
        if address < min(described):
            return ENTRY
    return kind


class Program:
    """The calls that the workload makes."""

    def __init__(self, session, classes, package):
        self.oracle = Oracle(session, classes, package)
        self.methods = defaultdict(list)
        for method in self.oracle.calls.own:
            self.methods[method.symbol].append(method)

    def makes(self, frames):
        """Whether the workload can have made these calls: those of one of its methods to another one, from where its threads begin."""
        outermost = frames[-1][0]
        is_whole = outermost in self.oracle.entries or not self.oracle.is_own(outermost)
        return is_whole and all(self.may_call(*outer, inner) for (inner, _), outer in zip(frames, frames[1:]))

    def may_call(self, caller, bci, callee):
        """Whether the instruction of a method can call another one. Of calls to or by the JDK, and of lambdas, that is not known."""
        if not (self.oracle.is_own(caller) and self.oracle.is_own(callee)) or LAMBDA in caller + callee or callee.endswith(".<clinit>"):
            return True
        at = [method.code[bci] for method in self.methods[caller] if bci in method.code]
        called = (method for each in at if each.invoked for method in self.oracle.calls.callees(each))
        return not at or any(method.symbol == callee for method in called)


def names(frames):
    """The methods of frames."""
    return [method for method, _ in frames]


def same(found, known):
    """Whether two frames are of the same method at the same instruction. A native method has none, and one that is being entered."""
    return found[0] == known[0] and (found[1] == known[1] or known[1] < 0)


class Traces:
    """What the VM has found, and where compiled code has been."""

    def __init__(self, path):
        self.traces, self.pages = [], defaultdict(list)
        with open(path, encoding="utf-8") as file:
            for line in file:
                kind, *fields = line.rstrip("\n").split("\t")
                getattr(self, kind)(*fields)

    def code(self, start, size, *described):
        """A compiled method, and its addresses with debug information."""
        code = range(int(start, 16), int(start, 16) + int(size)), {int(address, 16) for address in described}
        for page in range(code[0].start // PAGE, (code[0].stop - 1) // PAGE + 1):
            self.pages[page].append(code)

    def trace(self, thread, before, after, pc, count, *frames):
        """A trace."""
        split = (frame.rpartition(":") for frame in frames)
        frames = [(of_jvmti(name), int(bci)) for name, _, bci in split]
        self.traces.append((int(thread), int(before), int(after), int(pc, 16), int(count), frames))

    def described(self, address):
        """The addresses with debug information in the compiled method that has an address, or None."""
        return next((described for code, described in self.pages[address // PAGE] if address in code), None)


def main():
    """Compares, prints."""
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    path, of_vm, classes, package = sys.argv[1:]
    session, traces, program = Session(path), Traces(of_vm), Program(path, classes, package)
    counts, shown = Counter(wrong=0), Counter()
    for thread, before, after, pc, count, known in traces.traces:
        counts["traces"] += 1
        sample = session.between(thread, before, after)
        if sample is None:
            counts["no sample"] += 1
            continue
        found, reason = session.frames(sample.chain)
        if count <= 0:
            counts[f"the VM has none: {count}"] += 1
            counts["the VM has none, the session has frames"] += bool(found)
            continue
        counts["in Java"] += 1
        kind = judge(found, reason, known, pc, traces.described(pc))
        if kind == WRONG and program.makes(found):
            if is_part(known, found):
                kind = LACKING
            elif names(known)[-1] != names(found)[-1] or not program.makes(known):
                kind = NO_CALL
        counts["wrong"] += kind == WRONG
        counts["equal"] += kind is None
        if kind:
            counts[f"{'other rule' if kind in OTHER_RULE else 'differs'}: {kind}"] += 1
            shown[kind] += 1
        if kind and shown[kind] <= SHOWN:
            print(f"{thread} {before}: {kind}; pc {pc:#x}", file=sys.stderr)
            for frame in sample.chain:
                print(f"    {frame.offset:x} {frame.symbol} ({frame.file.rsplit('/', 1)[-1]})", file=sys.stderr)
            print(f"  found {found} {reason}\n  known {known}", file=sys.stderr)
    print(json.dumps(counts))
    sys.exit(counts["wrong"] > 0)


if __name__ == "__main__":
    main()
