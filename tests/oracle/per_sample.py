#!/usr/bin/env python3
"""Is every sample of an ART process attributed to the method and bytecode that ran?

usage: per_sample.py SESSION MAPS TRACE DEX... in the environment: ADB, if the session and MAPS are on a board

SESSION has raw.data: the kernel's record of each overflow, with the registers. Without it, of samples that are copies of the kernel's, only
callers, names and where stacks end are judged. MAPS is a copy of the process's /proc/PID/maps.
TRACE is ART's method trace of a run of the same program. DEX files are here, and known by their names. Prints what it counted as JSON, and every wrong sample on standard error; exit status 1 if there is one.
"""

import json
import os
import sys
from bisect import bisect_left, bisect_right
from collections import Counter

import board
import perf_script
from art import Libart
from dexdump import Dex
from managed import MORE, Code, is_reason
from maps import Maps
from program import Program

MANY = 20  # wrong samples that are printed


class Oracle:
    """Judges samples of one process."""

    def __init__(self, maps, trace, code):
        self.maps, self.code = maps, code
        paths = {mapping.path for mapping in maps.mappings}
        libart = next((path for path in paths if path.rsplit("/", 1)[-1].startswith("libart.so")), None)
        if libart is None:
            raise SystemExit("the process has not mapped libart")
        self.libart_path = libart
        self.libart = Libart(board.fetched(libart))
        self.pc, self.ip = self.libart.build.pc, self.libart.build.ip
        self.has_link = self.ip == "pc"
        self.dex_at = {base(dex.path): dex for dex in self.code.dexes.values()}
        self.has_mterp = bool(self.libart.build.loop[1])
        self.key = None  # (thread, time) of the sample that is judged
        self.link = None  # its link register
        self.found = 0.0  # when the last sample was taken that says that its VM is not known yet
        self.is_walked = False  # whether the program that walks the frames of an interpreter in C++ has been there
        self.counts = Counter()
        self.program = Program(trace, code, self.has_link, self.counts)

    def in_libart(self, address):
        """An address as an offset in the library, if it is one there."""
        place = self.maps.at(address)
        return place[1] if place and place[0] == self.libart_path else None

    def part(self, address):
        """Which part of the interpreter an address is in, or None."""
        offset = self.in_libart(address)
        return None if offset is None else self.libart.part(offset)

    def bytecode(self, address):
        """(dex, offset) of an address in a dex file's instructions, or None."""
        place = self.maps.at(address)
        dex = place and self.dex_at.get(base(place[0]))
        return (dex, place[1]) if dex and place[1] in dex.instructions else None

    def executes_next(self, raw):
        """Whether the kernel executes the program: its registers are still those of the one before."""
        return raw.ip >= self.maps.kernel and bool(raw.registers) and self.maps.at(raw.registers[self.ip]) is None

    def wrong(self, raw, sample):
        """What is wrong with an attributed sample, or None."""
        return self.judge(raw, sample) or self.wrong_program(self.key, sample)

    def wrong_chain(self, key, sample):
        """What its callers' instructions and the program say against a sample, or None."""
        user = self.user(sample)
        return self.executes(user) or self.calls(user) or self.wrong_program(key, sample)

    def wrong_program(self, key, sample):
        """What the program says against a sample, or None."""
        user = self.user(sample)
        return self.program.judge(user, sample.process == key[0], self.touches_stack(user))

    def user(self, sample):
        """The frames in user space."""
        return [self.code.placed(frame) for frame in sample.chain if frame.offset < self.maps.kernel]

    def touches_stack(self, user):
        """Whether a new thread touches its stack, before it runs anything else: by a recursion that is deeper than what is copied of a stack."""
        return any(frame.file == self.libart_path and self.libart.touches_stack(frame.offset) for frame in user)

    def judge(self, raw, sample):
        """What the kernel's record of a sample and its callers' instructions say against it, or None."""
        if sample.ip != raw.ip:
            return f"the ip was {raw.ip:#x}, not {sample.ip:#x}"
        if not sample.chain:
            return "no frame at all"
        user = self.user(sample)
        in_kernel = raw.ip >= self.maps.kernel
        if in_kernel and sample.chain[0].offset != raw.ip:
            return f"the leaf is {sample.chain[0].offset:#x}, not the kernel's {raw.ip:#x}"
        ip = raw.registers.get(self.ip, 0) if in_kernel else raw.ip
        part = self.part(ip)
        self.link = raw.registers.get("lr")
        self.counts["in kernel" if in_kernel else part or "outside"] += 1
        if part and self.unresolved(user):
            self.counts[self.why_unresolved(part, user)] += 1
            wrong = self.leaf(ip, user)
        elif part in ("body", "nterp"):
            self.counts["bytecode known"] += 1
            wrong = self.in_body(raw, ip, user, in_kernel)
        elif in_kernel:
            wrong = None
        elif part:
            wrong = self.in_method(ip, user)
            self.is_walked |= part == "switch"
        else:
            wrong = self.leaf(raw.ip, user)
        if part is None:
            self.confirm(raw, user)
        return wrong or self.unlinked(ip, user) or self.executes(user) or self.calls(user)

    def unresolved(self, user):
        """An interpreter's address and a reason instead of a method."""
        return not self.code.is_managed(user[0]) and any(is_reason(frame) for frame in user)

    def why_unresolved(self, part, user):
        """What is told apart of samples without a method."""
        # nterp's frames are found by unwinding before that, those of other interpreters are not.
        is_starting = not self.counts["bytecode known"] if self.has_mterp else not self.is_walked
        if is_starting and any(frame.symbol == "[vm-not-ready]" for frame in user):
            return "vm not ready"  # until varid has seen the process: as long as the machine is busy with others
        # While nterp enters or leaves a method its frame holds one and its register is another's.
        return "nterp window, unresolved" if part == "nterp window" else "unresolved"

    def in_body(self, raw, ip, user, in_kernel):
        """The registers say which bytecode."""
        known = self.bytecode(raw.registers[self.pc])
        if known is None:
            return f"{self.pc} {raw.registers[self.pc]:#x} is no instruction"
        dex, offset = known
        if handler := self.libart.handler(self.in_libart(ip)):
            opcode, moved = handler
            offsets = list(dex.before(offset, opcode)) if moved else [offset]
            self.counts["in a handler, at the next instruction" if moved else "in a handler"] += 1
            if len(offsets) != 1 or dex.content[offsets[0]] != opcode:
                return f"the handler of {opcode:#x} was at {offset:#x} of {dex.path}, the instructions may be {offsets}"
            offset = offsets[0]
        if not user or self.code.dex(user[0]) is not dex:
            return f"the bytecode {offset:#x} of {dex.path} is not the leaf"
        if user[0].offset != offset + in_kernel:
            return f"the leaf is {user[0].symbol} {user[0].offset:#x}, the bytecode was {offset:#x}"
        return self.code.wrong_name(user[0], offset)

    def in_method(self, ip, user):
        """Some method ran: which one is for its callers to say. Before nterp has made its frame there is none yet, if native code called it, or
        the switch interpreter."""
        if not self.code.is_managed(user[0]):
            if self.part(ip) == "nterp window" and len(user) > 1:
                is_native = not self.code.is_managed(user[1])
                if is_native or self.is_entered_by_stub(user[1]):
                    self.counts["nterp window, entered natively" if is_native else "nterp window, entered by a stub"] += 1
                    return self.leaf(ip, user)
                if self.has_link:
                    # In the middle of `return` the frame is gone, and the caller stands without its callee. The board's test bounds it.
                    self.counts["nterp window, method missing"] += 1
                    return self.leaf(ip, user)
            return "neither a method nor a reason"
        return self.code.wrong_name(user[0], user[0].offset) if self.code.dex(user[0]) else None

    def is_entered_by_stub(self, caller):
        """Whether a method may have called the one that nterp enters, and not from nterp: it is at an invoke, and that returns elsewhere."""
        dex = self.code.dex(caller)
        is_nterps = self.link is not None and self.part(self.link) == "nterp"
        return dex is not None and not is_nterps and bool(dex.invoked(caller.offset - 1))

    def leaf(self, ip, user):
        """A native leaf is the interrupted instruction itself."""
        place = self.maps.at(ip)
        if place is None:
            return None
        if not user or (user[0].file, user[0].offset) != place:
            return f"the leaf is {user and user[0]}, the ip in {place[0]} {place[1]:#x}"
        return None

    def confirm(self, raw, user):
        """Outside the loops the register is callee-saved: where it still is an instruction, it tends to be the innermost method's."""
        known = self.bytecode(raw.registers.get(self.pc, 0))
        inner = next((frame for frame in user if self.code.is_managed(frame)), None)
        if known and inner:
            same = self.code.dex(inner) is known[0] and inner.offset - (inner is not user[0]) == known[1]
            self.counts["bytecode confirmed" if same else "bytecode not confirmed"] += 1

    def unlinked(self, ip, user):
        """Where ART has made a method's frame the first one of its list and not linked it yet, the method's caller follows, whose instruction
        says whom it calls, or a reason."""
        offset = self.in_libart(ip)
        if offset is None or not self.libart.is_unlinked(offset) or float(self.key[1]) <= self.found:
            return None
        known = [at for at, frame in enumerate(user) if self.code.is_managed(frame) or is_reason(frame)]
        if not known:
            return "the method that is called has no frame"
        behind = user[known[0] : known[0] + 2]
        if self.invokes(behind[0]):
            # By unwind information alone, until the layout of a library is known, a method has a frame when it runs.
            self.counts["frame not linked yet, method missing"] += 1
            return None
        is_missing = any(map(is_reason, behind))
        self.counts["frame not linked yet, " + ("caller missing" if is_missing else "caller known")] += 1
        if is_missing or all(map(self.code.is_managed, behind[1:])) and len(behind) > 1:
            return None
        return f"the caller of {behind[0].symbol} is missing, and no reason says so"

    def invokes(self, frame):
        """Whether a frame is a caller's, at an invoke that is not where its method begins."""
        dex = self.code.dex(frame)
        instruction, method = dex.instructions.get(frame.offset - 1, (None, None)) if dex else (None, None)
        return method is not None and frame.offset - 1 != method.start and bool(dex.invoked(frame.offset - 1))

    def executes(self, user):
        """Where the interpreter has called something there is the method that it executes, or a reason."""
        def is_loop(frame):
            return frame.file == self.libart_path and self.libart.part(frame.offset - 1) in ("body", "nterp")

        loops = [frame for frame in user[1:] if is_loop(frame)]
        if loops and not any(self.code.is_managed(frame) or is_reason(frame) for frame in user):
            return f"the interpreter at {loops[0].offset:#x} executes no method"
        return None

    def calls(self, user):
        """Each managed frame must have been called by the next one: its instruction says whom it calls."""
        self.counts["of several methods"] += any(MORE.search(frame.symbol) for frame in user)
        in_libart = [frame for frame in user if frame.file == self.libart_path]
        delivers = any("QuickDeliverException" in frame.symbol or self.libart.is_long_jump(frame.offset) for frame in in_libart)
        for callee, caller in zip(user, user[1:]):
            # The frames that are missing may be those that deliver an exception.
            delivers = delivers or is_reason(callee)
            if self.code.is_managed(callee) and self.code.is_managed(caller):
                self.counts["calls"] += 1
                # ART tells the catching frame where it goes on before it takes away the frames that threw.
                if delivers and self.code.catches(caller):
                    self.counts["catching"] += 1
                    continue
                if wrong := self.code.wrong_call(caller, callee):
                    return wrong
        return None


def base(path):
    """A path's last part."""
    return path.rsplit("/", 1)[-1]


def lacks(sample, reason=None):
    """Whether a callchain says that frames are missing, for this reason or for any."""
    return any(is_reason(frame) and reason in (None, frame.symbol) for frame in sample.chain)


def compare(session, oracle):
    """Judges a session's samples; yields what is wrong."""
    samples, execs = {}, []
    for key, sample in perf_script.attributed(f"{session}/perf.data", execs):
        if key in samples:
            yield key, "attributed twice", sample
        samples[key] = sample
    # MAPS is of the program that was executed last.
    start = max([min((float(time) for _, time in samples), default=0.0), *execs])
    if not has_raw(session):
        yield from compare_chains(samples, start, oracle)
        return
    unknown = (float(time) for (_, time), sample in samples.items() if lacks(sample, "[vm-not-ready]"))
    oracle.found = max(unknown, default=start)
    missing, times = [], {}
    for key, raw in perf_script.raw(f"{session}/raw.data", samples):
        oracle.counts["samples"] += 1
        oracle.key = key
        times.setdefault(key[0], []).append(float(key[1]))
        sample = samples.pop(key, None)
        if sample and (float(key[1]) < start or oracle.executes_next(raw)):
            oracle.counts["before the start"] += 1
            continue
        if sample and float(key[1]) > oracle.found:
            oracle.counts["VM found"] += 1
            # A stack that is deeper than its copy says so; anything else is told apart.
            if lacks(sample):
                oracle.counts["VM found, " + ("truncated" if lacks(sample, "[truncated]") else "incomplete")] += 1
        if sample is None:
            missing.append((key, raw))
        elif wrong := oracle.wrong(raw, sample):
            yield key, wrong, sample
    # Of an overflow one record may have found room and the other none, where the session says that there was none for some: a few.
    lost = min(lost_by(session), oracle.counts["samples"] // 100)
    for key, raw in missing:
        oracle.key = key
        other = next((each for each in samples if is_same(key, raw, each, samples[each], times)), None)
        if other and oracle.counts["paired by ip"] * 100 <= oracle.counts["samples"]:
            oracle.counts["paired by ip"] += 1
            if wrong := oracle.wrong(raw, samples.pop(other)):
                yield key, wrong, None
        elif reason := perf_script.outside_session(raw, key[1], start, oracle.maps.kernel):
            oracle.counts[reason] += 1
        elif oracle.executes_next(raw):
            oracle.counts["before the start"] += 1
        elif oracle.counts["lost"] < lost:
            oracle.counts["lost"] += 1
        else:
            yield key, f"not attributed: {raw}", None
    for key, sample in samples.items():
        if oracle.counts["lost"] < lost:
            oracle.counts["lost"] += 1
        else:
            yield key, "the kernel has no such sample", sample


def has_raw(session):
    """Whether the kernel's own records were kept."""
    return os.path.exists(board.fetched(f"{session}/raw.data"))


def compare_chains(samples, start, oracle):
    """Judges what samples say by themselves; yields what is wrong."""
    for key, sample in samples.items():
        oracle.counts["samples"] += 1
        if float(key[1]) < start or any("sys_execve" in frame.symbol for frame in sample.chain):
            oracle.counts["before the start"] += 1
        elif wrong := oracle.wrong_chain(key, sample):
            yield key, wrong, sample


def lost_by(session):
    """How many records the session says that it has lost."""
    with open(board.fetched(f"{session}/session.json")) as file:
        return json.load(file)["counts"]["lost"]


def is_same(key, raw, other, sample, times):
    """The two records of one overflow are microseconds apart, or as long as a hypervisor takes the processor between them: no other
    sample of the thread can be in between."""
    if key[0] != other[0] or raw.ip != sample.ip:
        return False
    of_thread, (first, last) = times[key[0]], sorted((float(key[1]), float(other[1])))
    return bisect_left(of_thread, last) - bisect_right(of_thread, first) <= 0


def complain(judged):
    """Prints what is wrong; how much that is."""
    wrong = 0
    for (tid, time), reason, sample in judged:
        wrong += 1
        if wrong <= MANY:
            print(f"{tid} {time}: {reason}", file=sys.stderr)
            for frame in sample.chain if sample else []:
                print(f"    {frame.offset:x} {frame.symbol} ({frame.file})", file=sys.stderr)
    return wrong


def main():
    """Compares, prints."""
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    session, maps, trace, *dexes = sys.argv[1:]
    oracle = Oracle(Maps(board.fetched(maps)), trace, Code([Dex(path) for path in dexes], session))
    wrong = complain(compare(session, oracle))
    print(json.dumps({**oracle.counts, "wrong": wrong}))
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
