#!/usr/bin/env python3
"""Is every sample of an ART process with compiled code attributed to the methods that ran, inlined ones included?

usage: compiled.py SESSION MAPS TRACE FILE...

SESSION has raw.data with copies of the stacks: it was recorded with --keep-raw and --stack full. Without copies only leaves and calls are
judged. MAPS is a copy of the process's /proc/PID/maps. TRACE is ART's method trace of a run of the same program. FILE is of one of these kinds:
    NAME.jitdump: the code that the JIT has written, with the times when it was about to become runnable
    an oat file, of the same name as one that is mapped, and of equal code, which was written with --generate-debug-info
With ADB in the environment SESSION, MAPS and what is mapped are on a board.

Of a sample in compiled code the oracle walks the stack itself, by the unwind information that the compiler wrote for debuggers. The
methods of the frames that it finds must be in the callchain, in this order, without others but inlined ones between them: that each
method calls the next one its bytecode tells. The instruction of a leaf in compiled code must be marked as approximate, and that of a leaf
that is interpreted must not. Prints what it counted as JSON, and every wrong sample on standard error; exit status 1 if
there is one.
"""

import json
import sys
from collections import Counter, defaultdict
from functools import cache

import board
import dexdump
import per_sample
import vdex
from beginnings import content, is_beginning, is_signal_return
from compiled_code import WORD, JitLog, OatFile
from managed import Code, is_reason
from maps import Maps
from sample_marks import approximate
from stack_words import Stacks

STUB = "art_jni_trampoline"
JIT_CACHE = "/memfd:jit-cache (deleted)"
# Nanoseconds after a sample in which a profiler is likely to have read it.
SOON = 100_000_000
# Frames that a walk takes.
DEEPEST = 100_000
# Words of the stack in which nterp has its caller's return address while it makes a frame.
NTERP_FRAME = 64
# call *N(%rdi), which ends in N: how ART's stubs call the code of the method that the switch interpreter or native code invokes.
CALL_OF_METHOD = bytes.fromhex("ff57")


@cache
def pretty(method):
    """A method's name as ART prints it."""
    descriptor = method.descriptor
    parameters = dexdump.parameters(descriptor).replace(",", ", ")
    return f"{dexdump.java_type(descriptor[descriptor.index(')') + 1 :])} {method.cls}.{method.name}{parameters}"




class Walk:
    """What the compiled frames of a sample are: the code of each, innermost first."""

    def __init__(self):
        self.codes = []
        self.size = None  # of the innermost
        self.end = "native"  # why there are no more


class Oracle(per_sample.Oracle):
    """Judges samples of one process."""

    def __init__(self, session, maps, trace, files):
        with open(board.fetched(f"{session}/session.json")) as file:
            described = json.load(file)
        build_ids = {image["path"]: image["build_id"] for image in described["images"] if image["kind"] == "dex"}
        self.unattributed = described["counts"]["unattributed"]
        paths = dict.fromkeys(mapping.path for mapping in maps.mappings)
        dexes = []
        for path in paths:
            if path.endswith(".vdex"):
                dexes += vdex.dexes(path, build_ids.get(path))
            elif path.endswith(".dex"):
                dexes.append(dexdump.Dex(board.fetched(path)))
                dexes[-1].path = path
        super().__init__(maps, trace, Code(dexes, session))
        # As ART prints them, those without bytecode.
        self.native = {pretty(method) for dex in dexes for method in dex.methods if not method.start}
        self.of_file = defaultdict(list)
        for dex in dexes:
            self.of_file[dex.path].append(dex)
        # Without the kernel's own records there is nothing to hold leaves against.
        self.stacks = Stacks(board.fetched(f"{session}/raw.data")) if per_sample.has_raw(session) else None
        self.approximate = set(approximate(board.fetched(f"{session}/perf.data")))
        logs = [each for each in files if each.endswith(".jitdump")]
        self.jit = JitLog(logs[0]) if logs else None
        twins = {per_sample.base(each): each for each in files if each not in logs}
        self.oats = {path: OatFile(path, twins[per_sample.base(path)]) for path in paths if path.endswith((".oat", ".odex"))}

    def bytecode(self, address):
        """(dex, offset) of an address in a dex file's instructions, or None."""
        place = self.maps.at(address)
        for dex in self.of_file.get(place[0], []) if place else []:
            offset = place[1] - getattr(dex, "start", 0)
            if offset in dex.instructions:
                return dex, offset
        return None

    def compiled(self, address):
        """(code, address in its terms) at an address of the process; None: no compiled code is there."""
        place = self.maps.at(address)
        if place is None:
            return None
        path, offset = place
        if path in self.oats:
            code = self.oats[path].at(offset)
            return code and (code, offset)
        if path == JIT_CACHE and self.jit:
            code = self.jit.at(address, self.time())
            return code and (code, address)
        return None

    def soon_replaced(self, address):
        """Whether another method's code was put into an address's place soon after the sample: a profiler that looks then sees that."""
        place = self.maps.at(address)
        if not self.jit or not place or place[0] != JIT_CACHE:
            return False
        code, then = self.jit.around(address, self.time())
        return bool(code and then) and then[0] - self.time() < SOON and then[1].names != code.names

    def is_compiled(self, address):
        """Whether an address is where compiled code may be."""
        place = self.maps.at(address)
        return bool(place) and (place[0] in self.oats or place[0] == JIT_CACHE)

    def time(self):
        """Nanoseconds of the sample."""
        seconds, nanoseconds = self.key[1].split(".")
        return int(seconds) * 10**9 + int(nanoseconds)

    def walk(self, ip):
        """The compiled frames from an instruction on."""
        walk, offset, address = Walk(), 0, ip
        while len(walk.codes) < DEEPEST:
            found = self.compiled(address)
            if found is None:
                if self.is_compiled(address):
                    walk.end = "no compiled code is known there"
                break
            code, at = found
            walk.codes.append(code)
            size = code.frame_size(at)
            if size is None:
                walk.end = "no unwind information"
                break
            walk.size = size if walk.size is None else walk.size
            offset += size
            in_register = address == ip and code.returns_by_register(at)
            returns = self.link if in_register else self.stacks.word(self.key, offset - 8)
            if returns is None:
                walk.end = "not copied"
                break
            address = returns - 1
        return walk

    def judge(self, raw, sample):
        """What the kernel's record of a sample, its code and its callers' instructions say against it, or None."""
        user = self.user(sample)
        in_kernel = raw.ip >= self.maps.kernel
        ip = raw.registers.get(self.ip, 0) if in_kernel else raw.ip
        self.link = raw.registers.get("lr")
        self.count(user)
        if wrong := self.wrong_mark(ip, user):
            return wrong
        if not self.is_compiled(ip):
            return super().judge(raw, sample)
        if sample.ip != raw.ip:
            return f"the ip was {raw.ip:#x}, not {sample.ip:#x}"
        if in_kernel and sample.chain[0].offset != raw.ip:
            return f"the leaf is {sample.chain[0].offset:#x}, not the kernel's {raw.ip:#x}"
        self.counts["compiled"] += 1
        self.counts["compiled, soon replaced"] += self.soon_replaced(ip)
        return self.in_compiled(ip, user, in_kernel) or self.executes(user) or self.calls(user)

    def count(self, user):
        """What is told apart of callchains that lack something."""
        if not user:
            # A thread's last work, of which the kernel gives no registers, either.
            self.counts["kernel only"] += 1
            return
        reasons = [at for at, frame in enumerate(user) if is_reason(frame)]
        if is_beginning(user[0], self.has_link) and (reasons == [1] or len(user) == 2 and self.has_link):
            # A new thread, before its first call: there is nothing that it could be unwound to. The link register is its creator's.
            self.counts["a thread's first instruction"] += 1
            return
        if any(user[at].symbol == "[vm-not-ready]" for at in reasons):
            self.counts["vm not ready"] += 1
            return
        for at in reasons:
            self.counts[user[at].symbol] += 1
        # An implicit null check: ART's handler runs on an alternate stack. What it has interrupted is judged as any callers are.
        is_in_handler = any(map(is_signal_return, user))
        self.counts["in a signal's handler"] += is_in_handler
        if is_in_handler and self.has_link and [user[at].symbol for at in reasons] == ["[no-unwind-info]"]:
            # arm64's unwind information of where a handler returns to has the interrupted link register alone.
            self.counts["signal stack"] += 1
            return
        if [user[at].symbol for at in reasons] == ["[truncated]"] and self.touches_stack(user):
            self.counts["a thread's stack is touched"] += 1
            return
        # While nterp enters a method its frame is not there yet.
        is_entered = self.in_nterp(user[0])  # by native code: there is no method at all
        in_nterp = [at for at in reasons if at and (self.in_nterp(user[at - 1]) or (is_entered and at == len(user) - 1))]
        if reasons:
            self.counts["nterp, unresolved" if len(in_nterp) == len(reasons) else "unattributed"] += 1
        # A reason at the end is told of already.
        outermost = next((frame for frame in reversed(user) if not is_reason(frame)), user[-1])
        if not is_beginning(outermost, self.has_link):
            self.counts["broken stacks"] += 1

    def wrong_mark(self, ip, user):
        """Whether the innermost method's instruction is marked as approximate if it is the leaf's and not known, or None."""
        is_marked = self.key in self.approximate
        self.counts["approximate"] += is_marked
        if not user or self.code.dex(user[0]) is None:
            # Which calls the compiler notes nothing down of, and has no symbols for, only itself knows.
            self.counts["approximate callers"] += is_marked
            return None
        if is_marked != self.is_compiled(ip):
            return f"{user[0].symbol} is {'' if is_marked else 'not '}marked as approximate, the ip was {ip:#x}"
        return None

    def in_method(self, ip, user):
        """While compiled code enters nterp, nterp's frame is not there yet: the caller's return address is near the stack pointer."""
        if self.part(ip) == "nterp window" and not self.code.is_managed(user[0]) and len(user) > 1:
            if any(self.is_of(code, user, self.depth_of(code, user)) for code in self.near_callers()):
                self.counts["nterp window, entered from compiled code"] += 1
                return self.leaf(ip, user)
        return super().in_method(ip, user)

    def near_callers(self):
        """The compiled code that addresses near the stack pointer return to; where no stack is copied, all that there was up to then."""
        if self.stacks.copies:
            return [found[0] for found in (self.compiled(word - 1) for word in self.near_words()) if found]
        return [*(code for oat in self.oats.values() for code in oat.codes), *(self.jit.before(self.time()) if self.jit else [])]

    def near_words(self):
        """What lies near the stack pointer; nothing where no stack is copied."""
        words = (self.stacks.word(self.key, WORD * at) for at in range(NTERP_FRAME))
        return [word for word in words if word]

    def is_in_stub(self, address):
        """Whether a method's code that a stub has called returns to an address."""
        offset = self.in_libart(address)
        return offset is not None and self.libart.part(offset) is None and content(self.libart_path)[offset - 3 : offset - 1] == CALL_OF_METHOD

    def is_entered_by_stub(self, caller):
        """As for any sample; where the stack is copied it is seen."""
        is_seen = not self.stacks.copies or any(map(self.is_in_stub, self.near_words()))
        return is_seen and super().is_entered_by_stub(caller)

    def depth_of(self, code, user):
        """Where the method of some code is, behind those that are inlined in it."""
        depths = range(1, len(user))
        return next((at for at in depths if not self.code.is_managed(user[at]) or self.is_of(code, user, at)), len(user))

    def in_nterp(self, frame):
        """Whether a frame is one of nterp."""
        part = self.libart.part(frame.offset) if frame.file == self.libart_path else None
        return part in ("nterp", "nterp window")

    def in_compiled(self, ip, user, in_kernel):
        """The compiler tells which methods."""
        if not user:
            return "no user's frame"
        walk = self.walk(ip)
        if not walk.codes:
            self.counts["compiled, outside known code"] += 1
            return None if any(map(is_reason, user)) or not self.code.is_managed(user[0]) else "a method where no code is known"
        if walk.codes[0].is_thunk or walk.codes[0].is_trampoline:
            return self.in_native_code(walk, ip, user)
        leaf = walk.codes[0]
        is_partial = walk.size != leaf.whole
        self.counts["compiled, partial"] += is_partial
        self.counts["compiled, shared code"] += leaf.is_shared
        self.counts["compiled, stub"] += self.is_stub(leaf)
        if walk.end != "native":
            self.counts[f"walk: {walk.end}"] += 1
        if not self.code.is_managed(user[0]):
            reasons = [frame.symbol for frame in user if is_reason(frame)]
            what = "stub" if self.is_stub(leaf) else "shared" if leaf.is_shared else "partial" if is_partial else "whole"
            self.counts[f"compiled leaf, {what}: {' '.join(reasons) or 'native'}"] += 1
            if not reasons:
                return self.leaf(ip, user) or f"neither a method nor a reason in {leaf.names}"
            return None
        if wrong := self.right_place(user[0], in_kernel):
            return wrong
        return self.in_order(walk, user)

    def in_native_code(self, walk, ip, user):
        """A thunk and a trampoline are native code without a frame, which goes back to the method that has branched there, or has called a
        method by it that has not begun."""
        is_trampoline = walk.codes[0].is_trampoline
        self.counts["compiled, trampoline" if is_trampoline else "compiled, thunk"] += 1
        if wrong := self.leaf(ip, user):
            return wrong
        if is_trampoline and len(user) > 1 and (dex := self.code.dex(user[1])) and not dex.invoked(user[1].offset - 1):
            return f"{user[1].symbol} is at no invoke, and calls {' or '.join(walk.codes[0].names)}"
        del walk.codes[0]
        # Until the VM is found no method has a name.
        is_unnamed = len(user) > 1 and not self.code.is_managed(user[1]) and any(map(is_reason, user))
        if not walk.codes or is_unnamed:
            return None
        # Entry points are called, at places that the compiler has noted down.
        return self.in_order(walk, user[1:], called=True)

    def right_place(self, frame, in_kernel):
        """The leaf's bytecode is one of its method's; which one nobody knows."""
        if self.code.dex(frame) is None:
            return None
        return self.code.wrong_name(frame, frame.offset - in_kernel)

    def in_order(self, walk, user, called=False):
        """The walk's methods are the callchain's, with inlined ones between them, and before the first one if it has called something."""
        at = 0
        for depth, code in enumerate(walk.codes, start=called):
            first = at
            while not self.is_of(code, user, at):
                if at == len(user) - 1 and user[at].symbol == "[truncated]":
                    # The profile's copy of the stack, which is not the one that is walked here, holds less of it.
                    self.counts["compiled, a shorter copy"] += 1
                    return None
                if self.cannot_be_named(code, user, at):
                    self.counts["compiled, a reason on the walk"] += 1
                    return None
                if depth == 0 or at >= len(user) or not self.code.is_managed(user[at]):
                    return f"frame {at} is not {' or '.join(code.names)}, whose code is at {code.start:#x}, and not inlined there"
                at += 1
            if depth:
                # From this method to what was called last, through those that are inlined in it.
                self.counts["compiled, edges"] += at + 1 - first
                self.counts["inlined edges"] += at + 1 - first if at > first else 0
            at += 1
        if walk.end == "native" and at < len(user) and len(walk.codes) > 1:
            self.counts["walks to native code"] += 1
        return None

    def cannot_be_named(self, code, user, at):
        """Whether a native frame with a reason is in the place of a method that the frame and its code do not tell, whose code the JIT
        has collected before it was read, whose class the collector was moving, or whose process ended before it was read."""
        reason = user[at + 1].symbol if at + 1 < len(user) else None
        is_collected = self.jit and code.start in self.jit.starts
        return reason in ("[unknown-method]", "[vm-gone]") or reason == "[art-quick]" and (code.is_shared or self.is_stub(code) or is_collected)

    def is_stub(self, code):
        """Whether native methods are called by the code: all those of like parameters, of which the JIT names one."""
        return STUB in code.names or bool(code.names & self.native)

    def is_of(self, code, user, at):
        """Whether a frame's method may be the code's."""
        if at >= len(user) or not self.code.is_managed(user[at]):
            return False
        if self.is_stub(code):
            return self.code.dex(user[at]) is None
        # Of shared code the compiler names one method.
        return code.is_shared or any(pretty(method) in code.names for method in self.code.methods(user[at]))


def main():
    """Compares, prints."""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    session, maps, trace, *files = sys.argv[1:]
    oracle = Oracle(session, Maps(board.fetched(maps)), trace, files)
    wrong = per_sample.complain(per_sample.compare(session, oracle))
    if oracle.jit:
        oracle.counts["jit codes"], oracle.counts["jit codes in the place of others"] = oracle.jit.codes, oracle.jit.replacing
    print(json.dumps({**oracle.counts, "wrong": wrong}))
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
