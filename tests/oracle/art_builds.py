"""Which builds of Debian's libart are known, and where are their interpreters? Of one that is built from source, nm says it."""

import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass
class Instructions:
    """What a handler is followed by, in the disassembler's words."""

    branch: re.Pattern  # where to, but for calls
    leaves: re.Pattern  # what never goes on behind itself
    advance: re.Pattern  # what moves the pc's register: a load that writes its base back, or any result in it
    load: re.Pattern  # of a word
    store: re.Pattern


AMD64 = Instructions(
    branch=re.compile(r"j\w+ ([0-9a-f]+)\b"),
    leaves=re.compile(r"(?:notrack )?(?:jmp|ret|ud2|int3)(?: |$)"),
    advance=re.compile(r"(?:lea|add|sub|mov|pop) (?:.*,)?%r12$"),
    load=re.compile(r"mov (?P<place>\w*\(%r\w+\)),(?P<register>%r\w+)$"),
    store=re.compile(r"mov (?P<register>%r\w+),(?P<place>\w*\(%r\w+\))$"),
)
ARM64 = Instructions(
    branch=re.compile(r"(?:b|b\.\w+|cbn?z \w+,|tbn?z \w+, #\d+,) ([0-9a-f]+)\b"),
    leaves=re.compile(r"(?:b|br|ret)(?: |$)"),
    advance=re.compile(r"ldrh w\d+, \[x20, #\d+\]!$|(?:add|mov|ldr|ldur|sub) x20, "),
    load=re.compile(r"ldr (?P<register>x\d+), (?P<place>\[\w+(?:, #\d+)?\])$"),
    store=re.compile(r"str (?P<register>x\d+), (?P<place>\[\w+(?:, #\d+)?\])$"),
)
ARM64_NTERP = replace(ARM64, advance=re.compile(r"ldrh w\d+, \[x22, #\d+\]!$|(?:add|mov|ldr|ldur|sub) x22, "))
ARM = Instructions(
    branch=re.compile(r"b(?:eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)? ([0-9a-f]+)\b"),
    leaves=re.compile(r"(?:b|bx|(?:add|mov|ldr) pc,|pop {.*pc})(?: |$)"),
    advance=re.compile(r"ldrh\w* r\d+, \[r4, [#r]\d+\]!$|(?:add|mov|ldr|sub)\w* r4, "),
    load=re.compile(r"ldr (?P<register>r\d+), (?P<place>\[\w+(?:, #\d+)?\])"),
    store=re.compile(r"str (?P<register>r\d+), (?P<place>\[\w+(?:, #\d+)?\])"),
)


@dataclass
class Build:
    """A build's interpreters. Addresses are the library's own."""

    tools: str  # what the names of binutils for it begin with
    pc: str  # the register of the bytecode pc, as perf calls it
    ip: str  # the instruction pointer, likewise
    switch_entry: tuple  # the switch interpreter's way in, which no symbol names
    handlers: tuple  # of 256 opcodes, of one size
    code: Instructions  # of handlers
    loop: tuple = (0, 0)  # ExecuteMterpImpl, as its FDE says; none since Android 12
    entered: int = 0  # by disassembly: up to here the prologue has not set the pc's register ...
    left: int = 0  # ... and from here the epilogue has given the frame's back, or is about to
    nterp: tuple = None  # ART's other loop, whose frames are native ones: several FDEs that follow each other
    long_jump: tuple = (0, 0)  # art_quick_do_long_jump, which goes on in the frame that catches: its stack is no native one
    touches_stack: tuple = (0, 0)  # the function that calls itself at a thread's start until it has touched each page of the stack, 8 MB
    nterp_entered: int = 0  # its prologue sets the pc's register here for the first time; 0: the FDEs say where that holds


BUILDS = {
    "d3ba281c20e725780467fb41f50e669082ccac64": Build(
        tools="",
        pc="R12",
        ip="IP",
        loop=(0x7B2D80, 0x7BB023),
        entered=0x7B2DA9,
        left=0x7BB01E,
        long_jump=(0x7A5A60, 0x7A5AD7),
        touches_stack=(0x687CA0, 0x687D0D),
        switch_entry=(0x7B2B70, 0x7B2B78),
        nterp=(0x7BB088, 0x7C989B),
        nterp_entered=0x7BB5A7,
        handlers=(0x7B2E00, 0x7BAE00),
        code=AMD64,
    ),
    "2de21a0d4ca9b5446222c70a4e814a342758d2e2": Build(
        tools="aarch64-linux-gnu-",
        pc="x20",
        ip="pc",
        loop=(0x727400, 0x72F80C),
        touches_stack=(0x619F2C, 0x619FA4),
        entered=0x727438,
        left=0x72F7C8,
        switch_entry=(0x7271D0, 0x7271E4),
        handlers=(0x727480, 0x72F480),
        code=ARM64,
    ),
    "e383dc2a23c443c345f83ebd57c2274d8cdc6324": Build(
        tools="arm-linux-gnueabihf-",
        pc="r4",
        ip="pc",
        loop=(0x7E6980, 0x7EEDD8),
        entered=0x7E69A4,
        left=0x7EEDD8,
        switch_entry=(0x7E6920, 0x7E694E),
        handlers=(0x7E6A00, 0x7EEA00),
        code=ARM,
    ),
    "61497c95b23887e92d3e2e8206345c91fb28d21d": Build(
        tools="",
        pc="R12",
        ip="IP",
        switch_entry=(0x8AB020, 0x8AB028),
        nterp=(0x8AB560, 0x8BAA12),
        long_jump=(0x8900E0, 0x890157),
        touches_stack=(0x792270, 0x792300),
        handlers=(0x8ABC80, 0x8B3C80),
        code=AMD64,
    ),
    "152e5eef3e17820cab5bf418ffbb7742e0023bcf": Build(
        tools="aarch64-linux-gnu-",
        pc="x22",
        ip="pc",
        switch_entry=(0x8693D0, 0x8693E4),
        nterp=(0x8698E0, 0x8789C4),
        long_jump=(0x850580, 0x850610),
        handlers=(0x86A100, 0x872100),
        code=ARM64_NTERP,
    ),
}

INSTRUCTION = re.compile(r"^ +([0-9a-f]+):\t(.*)$")
BUILD_ID = re.compile(r"Build ID: ([0-9a-f]+)")
FDE = re.compile(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)")
SYMBOL = re.compile(r"^([0-9a-f]+) [TtWw] (\w+)$")


def output(*command):
    """A tool's standard output."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def disassembled(path, tools, start, end):
    """(address, instruction) of the code between two addresses."""
    bounds = [f"--start-address={start:#x}", f"--stop-address={end:#x}"]
    for line in output(f"{tools}objdump", "-d", "--no-show-raw-insn", *bounds, path).splitlines():
        if found := INSTRUCTION.match(line):
            yield int(found[1], 16), " ".join(found[2].split())


def original(build_id):
    """The build-id of what a copy that varid does not know was made of: its first byte is one less."""
    return f"{(int(build_id[:2], 16) - 1) % 256:02x}{build_id[2:]}"


def build_of(path):
    """The build of a library."""
    symbols = Path(path).with_name("libart.symbols")
    if symbols.exists():
        return built_from_source(path, symbols.read_text(encoding="ascii"))
    found = BUILD_ID.search(output("readelf", "-n", path))
    build = found and (BUILDS.get(found[1]) or BUILDS.get(original(found[1])))
    if not build:
        raise SystemExit(f"{path}: not a build whose loop is known ({', '.join(BUILDS)})")
    return build


def built_from_source(path, symbols):
    """ART 11 for x86-64, by all symbols of the library before it was stripped (tests/art11/changed.sh)."""
    at = {found[2]: int(found[1], 16) for found in map(SYMBOL.match, symbols.splitlines()) if found}
    mterp, handlers = at["ExecuteMterpImpl"], (at["artMterpAsmInstructionStart"], at["artMterpAsmInstructionEnd"])
    nterp = at["ExecuteNterpImpl"], at["EndExecuteNterpImpl"]
    end = next(size for start, size in functions(path) if start == mterp)
    switch = next(each for each in functions(path) if each[0] == at["ExecuteSwitchImplAsm"])

    def following(start, end, instruction):
        """The addresses behind the instructions between two addresses that look so."""
        code = list(disassembled(path, "", start, end))
        return [after for (_, what), (after, _) in zip(code, code[1:]) if re.search(instruction, what)]

    return Build(
        tools="",
        pc="R12",
        ip="IP",
        loop=(mterp, end),
        entered=following(mterp, handlers[0], r"^lea .*,%r12$")[0],
        left=following(handlers[1], end, r"^pop %r13$")[0],
        switch_entry=switch,
        nterp=nterp,
        nterp_entered=following(nterp[0], at["artNterpAsmInstructionStart"], r"^add \$0x10,%r12$")[-1],
        handlers=handlers,
        code=AMD64,
    )


def functions(path):
    """(start, end) of the functions that the unwind information has."""
    found = FDE.findall(output("readelf", "--debug-dump=frames", path))
    return [(int(start, 16), int(end, 16)) for start, end in found]
