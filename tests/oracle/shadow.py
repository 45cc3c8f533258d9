#!/usr/bin/env python3
"""Is every sample of the shadow interpreter attributed to the method that ran, and its callers to theirs?

usage: shadow.py SESSION MAPS SHADOWVM       in the environment: ADB, if all of them are on a board

Every method is a native function of its own: m17 is Methods.m17. Its symbol tells which one the ip was in; the kernel's own callchain, by
frame pointers, tells the callers. That chain lacks one caller where the interrupted function has not set up its frame or is the C library's,
which has none: the machine code tells where that is. Prints what it counted as JSON, and what is wrong on standard error; exit status 1 if
anything is.
"""

import bisect
import json
import re
import struct
import subprocess
import sys
from collections import Counter
from functools import cache
from typing import NamedTuple

import board
import perf_script
from maps import Maps

SYMBOL = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) [tT] (m\d\d)$")
METHOD = re.compile(r"org\.example\.shadow\.Methods\.(m\d\d)$")
LIBRARY = re.compile(r"(libc|ld)[.-]")  # and its loader, at a function's first call
CALLED_BY_LIBRARY = "m63"  # qsort's comparison
DEEPEST = 100  # addresses, the kernel's own included: a longer chain may have been cut by it
NATIVE = ("[native]", "[no-unwind-info]")  # native frames are missing there, and no others
MANY = 20

# By an ELF file's machine: whose objdump reads it, what makes a function's frame, what gives the caller's back, and what returns.
MACHINE = 18  # where the file says it
CODE = {
    3: ("objdump", r"mov +%esp,%ebp", r"pop +%ebp|leave", r"ret"),
    40: ("arm-linux-gnueabihf-objdump", r"sub\tfp, ip, #4", None, r"ldm\w*\tsp, {.*pc}|bx\tlr"),
    62: ("objdump", r"mov +%rsp,%rbp", r"pop +%rbp|leave", r"ret"),
    183: ("aarch64-linux-gnu-objdump", r"mov\tx29, sp|add\tx29, sp,", r"ldp\tx29, x30,", r"ret"),
}
INSTRUCTION = re.compile(r"^ +([0-9a-f]+):\t(.*)$")
# For a system call of six arguments the frame pointer's register is used for one of them, and given back.
LENDS = re.compile(r"push +%[er]bp")
# Jumps of all of them: with what condition, and where to.
CONDITION = "eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le"
JUMP = re.compile(rf"(j\w+|b(?:\.\w+|{CONDITION})?|[ct]bn?z)[ \t].*?([0-9a-f]+) <")
ALWAYS = ("jmp", "b")


def framed(file):
    """The instructions of a program that run while their function's frame is there: between what makes it and what takes it away."""
    with open(file, "rb") as program:
        (machine,) = struct.unpack_from("<H", program.read(MACHINE + 2), MACHINE)
    objdump, *patterns = CODE[machine]
    makes, takes, returns = (pattern and re.compile(pattern) for pattern in patterns)
    code = subprocess.run([objdump, "-d", "--no-show-raw-insn", file], capture_output=True, text=True, check=True).stdout
    found = set()
    made = there = lent = reached = False
    jumped = {}
    for line in code.splitlines():
        instruction = INSTRUCTION.match(line)
        if not instruction:
            made, there, lent, reached, jumped = False, False, False, True, {}  # the next function
            continue
        address, text = int(instruction[1], 16), instruction[2]
        if not reached and address in jumped:
            # Behind a return or a jump: the frame is there if it is where another jump leads here from.
            there, reached = jumped[address], True
        if there:
            found.add(address)
        if jump := JUMP.match(text):
            jumped.setdefault(int(jump[2], 16), there)
            reached = jump[1] not in ALWAYS
        if makes.match(text):
            made = there = True
        elif returns.match(text):
            there, reached = made, False  # as long as no jump is known to lead there
        elif there and LENDS.match(text):
            there, lent = False, True
        elif takes and takes.match(text):
            there, lent = lent, False
    return found


class Methods:
    """The methods' native functions."""

    def __init__(self, program, maps):
        self.program, self.maps = program, maps
        file = board.fetched(program)
        symbols = subprocess.run(["nm", "-S", file], capture_output=True, text=True, check=True).stdout
        found = [SYMBOL.match(line) for line in symbols.splitlines()]
        self.ranges = sorted((int(m[1], 16), int(m[1], 16) + int(m[2], 16), m[3]) for m in found if m)
        if len(self.ranges) != 64:
            raise SystemExit(f"{program}: {len(self.ranges)} methods")
        headers = subprocess.run(["readelf", "-lW", file], capture_output=True, text=True, check=True).stdout
        loads = re.findall(r"LOAD +0x([0-9a-f]+) 0x([0-9a-f]+)", headers)
        self.loads = [(int(offset, 16), int(address, 16)) for offset, address in loads]
        self.framed = framed(file)

    def inside(self, address):
        """An address in the program's own terms, or None."""
        place = self.maps.at(address)
        if place is None or place[0] != self.program:
            return None
        offset, start = max(load for load in self.loads if load[0] <= place[1])
        return place[1] - offset + start

    def lacks_frame(self, leaf):
        """Whether the function that an address is in has no frame there, so that the kernel's callchain lacks its caller."""
        address = self.inside(leaf)
        if address is not None:
            return address not in self.framed
        place = self.maps.at(leaf)
        return place is not None and LIBRARY.match(place[0].rsplit("/", 1)[-1]) is not None

    @cache
    def at(self, address):
        """The method whose function an address is in, or None."""
        address = self.inside(address)
        if address is None:
            return None
        at = bisect.bisect(self.ranges, (address, 1 << 64)) - 1
        return self.ranges[at][2] if at >= 0 and address < self.ranges[at][1] else None


@cache
def method(symbol):
    """The method that a symbol names, or None."""
    found = METHOD.match(symbol)
    return found and found[1]


class Stacks(NamedTuple):
    """A sample's stack as the kernel and as varid saw it."""

    user: list  # the kernel's addresses in user space, the innermost first
    is_cut: bool  # whether the outermost ones may be missing there
    leaf: str  # the method whose function runs, or None
    callers: list  # the methods whose functions have called it
    chain: list  # varid's frames
    found: list  # the methods in it


def judged(raw, sample, methods, counts, judge):
    """What is wrong with a sample, or None; `judge` says it where varid found methods."""
    if sample.ip != raw.ip:
        return f"the ip was {raw.ip:#x}, not {sample.ip:#x}"
    user = [address for address in raw.chain if address < methods.maps.kernel]
    if not user:
        return None
    reasons = [frame.symbol for frame in sample.chain if frame.symbol.startswith("[") and frame.file.endswith("/remap.elf")]
    reasons = [reason for reason in reasons if reason not in NATIVE]
    if reasons:
        # Until varid has seen the process: as long as the machine is busy with others.
        not_ready = reasons == ["[vm-not-ready]"]
        counts["vm not ready" if not_ready else "unresolved"] += 1
        counts[" ".join(reasons)] += 1
        return "the VM had been ready before" if not_ready and counts["method known"] else None
    # Return addresses: the call is before them.
    callers = [caller for caller in (methods.at(address - 1) for address in user[1:]) if caller]
    found = [name for name in (method(frame.symbol) for frame in sample.chain) if name]
    is_cut = len(raw.chain) >= DEEPEST
    return judge(raw, Stacks(user, is_cut, methods.at(user[0]), callers, sample.chain, found), methods, counts)


def judge(raw, stacks, methods, counts):
    """What is wrong with a shadow stack, or None."""
    user, is_cut, leaf, callers, chain, found = stacks
    if leaf:
        counts["method known"] += 1
        if not found or found[0] != leaf:
            return f"{leaf} was running, not {found[0] if found else None}"
        if raw.ip < methods.maps.kernel and not method(chain[0].symbol):
            return f"{leaf} was running, the leaf is {chain[0].symbol}"
        found = found[1:]
    if is_cut:
        callers, found = callers[:-1], found[: max(len(callers) - 1, 0)]
    if found == callers:
        counts["callers known"] += 1
        return None
    if found[1:] == callers or (is_cut and found[1:] == callers[:-1]):
        counts["one caller without frame"] += 1
        if methods.lacks_frame(user[0]):
            return None
        return f"{leaf} at {methods.inside(user[0]) or user[0]:#x}, which has its frame, was called by {callers}, not by {found}"
    if not callers and leaf in (None, CALLED_BY_LIBRARY):
        # The C library has something else in the frame pointer's register, and no frame of its own is there yet.
        counts["truth unknown"] += 1
        return None
    if leaf is None and callers == [CALLED_BY_LIBRARY] == found[:1]:
        # In dim, which it calls: who called the C library is not in the kernel's chain.
        counts["truth unknown"] += 1
        return None
    return f"{leaf} was called by {callers}, not by {found}"


def main(usage, judge):
    """Compares each sample of the session that the arguments name, prints."""
    if len(sys.argv) != 4:
        sys.exit(usage)
    session = sys.argv[1]
    methods = Methods(sys.argv[3], Maps(board.fetched(sys.argv[2])))
    samples = dict(perf_script.attributed(f"{session}/perf.data"))
    start = min((float(time) for _, time in samples), default=0.0)
    counts = Counter()
    wrong = 0
    for key, raw in perf_script.raw(f"{session}/raw.data", samples):
        counts["samples"] += 1
        if key not in samples:
            unpaired = perf_script.outside_session(raw, key[1], start, methods.maps.kernel) or "not paired"
            counts[unpaired] += 1
            if unpaired == "not paired":
                print(f"{key}: not paired: {raw}; attributed from {start} on", file=sys.stderr)
        elif reason := judged(raw, samples[key], methods, counts, judge):
            wrong += 1
            if wrong <= MANY:
                print(f"{key}: {reason}", file=sys.stderr)
                for frame in samples[key].chain[:12]:
                    print(f"    {frame.offset:x} {frame.symbol} ({frame.file})", file=sys.stderr)
    print(json.dumps({**counts, "wrong": wrong}))
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main(__doc__, judge)
