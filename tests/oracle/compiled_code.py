"""Which methods' compiled code is where, and how is a frame of it left? As the compiler itself tells for debuggers: oat files that were
written once more with --generate-debug-info, and what is logged of the JIT's."""

import re
import struct
import subprocess
import tempfile
from bisect import bisect_right
from collections import defaultdict
from functools import cache
from pathlib import Path

import board

SYMBOL = re.compile(r"^([0-9a-f]{16}) ([0-9a-f]{16}) T (.*)$")
FDE = re.compile(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)$")
HEAD = re.compile(r"^ +LOC +CFA +")
ROW = re.compile(r"^([0-9a-f]{16}) r?sp\+(\d+) ")
SEGMENT = re.compile(r"^ +LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) \S+ 0x([0-9a-f]+) ")
TEXT = re.compile(r"^ +LOAD +0x([0-9a-f]+) .* R E ", re.MULTILINE)
INSTRUCTION = re.compile(r"^ +([0-9a-f]+):\t(\S+)(?: +(.*))?$")
CONSTANT = re.compile(r"^\$(-?0x[0-9a-f]+),%rsp$")
SHARED = "[DEDUPED]"
# What code for arm64 branches to for a read barrier, and calls entry points of the VM by: it has no frame, and no method.
THUNK = re.compile(r"^(?:BakerReadBarrier|EntrypointCall|MethodCall)Thunk\w*$")
# What the log's records begin with: event, size, time; and a method's: process, thread, 0, address, size, number.
RECORD, LOAD = struct.Struct("<IIQ"), struct.Struct("<IIQQQQ")
# What a boot image's first oat file has before its methods: each jumps to the function of the VM that stands for a method without
# code of its own, or looks a native one up. It has no frame, and no method: the one that is called has not begun.
TRAMPOLINE = re.compile(r"^(?:JniDlsymLookup(?:Critical)?|QuickGenericJni|QuickImtConflict|QuickResolution|Nterp)Trampoline$|^QuickToInterpreterBridge$")
MACHINE = re.compile(r"^ +Machine: +(.*)$", re.MULTILINE)
WORD = 8


def output(*command):
    """A tool's standard output."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def text(path):
    """Where a file's machine code begins in it."""
    return int(TEXT.search(output("readelf", "-lW", str(path)))[1], 16)


def has_link(path):
    """Whether a file is for a machine with a link register."""
    return "X86-64" not in MACHINE.search(output("readelf", "-hW", str(path)))[1]


class Code:
    """One piece of code: the names of the methods that it may be of, as ART prints them, and the sizes of its frame. None: of what the code
    itself tells."""

    is_thunk = is_trampoline = False  # native code that only jumps on
    in_register = frozenset()  # offsets of rows in which the return address is in the link register

    def __init__(self, start, content, names, rows=None):
        self.start, self.content, self.known_rows = start, content, rows
        # Of equal code ART 11's compiler names one method, ART 14's what all have in common.
        self.is_shared = any(SHARED in name for name in names)
        self.names = {name.replace(SHARED, "").strip() for name in names}

    @property
    def rows(self):
        """Offsets, and the frame's size from each on."""
        return disassembled_rows(self.content) if self.known_rows is None else self.known_rows

    @property
    def whole(self):
        """The largest size of the frame."""
        return max((size for _, size in self.rows), default=None)

    def frame_size(self, address):
        """Bytes from the stack pointer to the caller's, at an address of it."""
        at = bisect_right(self.rows, (address - self.start, 1 << 64)) - 1
        return self.rows[at][1] if at >= 0 else None

    def returns_by_register(self, address):
        """Whether the return address is in the link register at an address of it."""
        at = bisect_right(self.rows, (address - self.start, 1 << 64)) - 1
        return at >= 0 and self.rows[at][0] in self.in_register


class OatFile:
    """A mapped oat file, by the one that was written once more."""

    def __init__(self, path, twin):
        self.path = str(path)
        here = board.fetched(path)
        mapped, content = Path(here).read_bytes(), Path(twin).read_bytes()
        # What comes before the code tells how the file was written.
        shift = text(here) - text(twin)
        found = filter(None, map(SEGMENT.match, output("readelf", "-lW", str(twin)).splitlines()))
        segments = [tuple(int(part, 16) for part in each.groups()) for each in found]
        names = defaultdict(set)
        for found in filter(None, map(SYMBOL.match, output("nm", "-S", str(twin)).splitlines())):
            names[int(found[1], 16), int(found[2], 16)].add(found[3])
        rows, in_register, known, columns = {}, defaultdict(set), None, []
        by_register = has_link(twin)
        for line in output("readelf", "--debug-dump=frames-interp", str(twin)).splitlines():
            if found := FDE.search(line):
                start, end = (int(each, 16) for each in found.groups())
                known = rows.setdefault(start, [])
            elif HEAD.match(line):
                columns = line.split()
            elif (found := ROW.match(line)) and known is not None and start <= int(found[1], 16) < end:
                offset = int(found[1], 16) - start
                known.append((offset, int(found[2])))
                saved = dict(zip(columns, line.split())).get("ra", "u")
                if not saved.startswith("c"):
                    in_register[start].add(offset)
        self.codes = []
        for (address, size), of in sorted(names.items()):
            start = next(offset + address - at for offset, at, length in segments if at <= address < at + length)
            code = content[start : start + size]
            start += shift
            # The twin's code is the same; only what lies between may not be.
            if mapped[start : start + size] != code:
                raise SystemExit(f"{path}: the code at {start:#x} is not that of {twin}")
            is_thunk, is_trampoline = (all(map(kind.match, of)) for kind in (THUNK, TRAMPOLINE))
            if is_thunk or is_trampoline:
                # The return address is where a call leaves it.
                rows[address], in_register[address] = ([(0, 0)], {0}) if by_register else ([(0, WORD)], set())
            self.codes.append(Code(start, code, of, rows.get(address, [])))
            self.codes[-1].is_thunk, self.codes[-1].is_trampoline = is_thunk, is_trampoline
            self.codes[-1].in_register = in_register[address]
        self.starts = [code.start for code in self.codes]

    def at(self, offset):
        """The code at an offset of the file, or None."""
        code = self.codes[bisect_right(self.starts, offset) - 1]
        return code if code.start <= offset < code.start + len(code.content) else None


class JitLog:
    """What the JIT has written where, and when it was about to become runnable, by a file in the format of perf's jitdump."""

    PAGE = 4096

    def __init__(self, path):
        content = Path(path).read_bytes()
        self.by_page = defaultdict(list)  # of (time, code), in the order of time
        self.starts = set()
        self.codes = self.replacing = at = 0
        while at + RECORD.size <= len(content):
            _, size, time = RECORD.unpack_from(content, at)
            # The process was ended while it wrote the last one.
            if at + size > len(content):
                break
            _, _, _, address, length, _ = LOAD.unpack_from(content, at + RECORD.size)
            named = content[at + RECORD.size + LOAD.size : at + size - length]
            self.add(Code(address, content[at + size - length : at + size], {named.rstrip(b"\0").decode()}), time)
            at += size

    def add(self, code, time):
        """One more."""
        end = code.start + len(code.content)
        pages = range(code.start // self.PAGE, (end - 1) // self.PAGE + 1)
        self.codes += 1
        self.starts.add(code.start)
        self.replacing += any(
            other.start < end and code.start < other.start + len(other.content) for page in pages for _, other in self.by_page[page]
        )
        for page in pages:
            self.by_page[page].append((time, code))

    def at(self, address, time):
        """The code at an address at a time, from when it became runnable until another one did: what a thread executes is not thrown away."""
        before, _ = self.around(address, time)
        return before

    def before(self, time):
        """All code that became runnable up to a time."""
        return {code for page in self.by_page.values() for load, code in page if load <= time}

    def around(self, address, time):
        """The code at an address at a time, and the first later one with when it became runnable; None: there is none."""
        found = None
        for load, code in self.by_page[address // self.PAGE]:
            if code.start <= address < code.start + len(code.content):
                if load > time:
                    return found, (load, code)
                found = code
        return found, None


@cache
def disassembled_rows(code):
    """The frame's size from each instruction on that changes it, by what the instructions do to the stack pointer: code of ART has one
    prologue, and behind the return of each epilogue the frame is that of the prologue's end."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(code)
        file.flush()
        text = output("objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "--no-show-raw-insn", file.name)
    found = filter(None, map(INSTRUCTION.match, text.splitlines()))
    instructions = [(int(each[1], 16), each[2], each[3] or "") for each in found]
    rows, size, body = [(0, WORD)], WORD, None
    for (_, name, operands), (behind, *_) in zip(instructions, [*instructions[1:], (len(code), "", "")]):
        before, constant = size, CONSTANT.match(operands)
        if name == "ret":
            size = body or size
        elif name == "push":
            size += WORD
        elif name == "pop":
            body = body or size
            size -= WORD
        elif name == "sub" and constant:
            size += signed(constant[1])
        elif name == "add" and constant:
            body = body or size
            size -= signed(constant[1])
        elif name.startswith(("call", "j")):
            # The prologue has none of them.
            body = body or size
        if size != before:
            rows.append((behind, size))
    return rows


def signed(constant):
    """A constant as the disassembler prints it."""
    value = int(constant, 16)
    return value - (1 << 64) if value >= 1 << 63 else value
