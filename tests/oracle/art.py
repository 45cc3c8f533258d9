"""What is known of Debian's libart for a sample's registers? Read from the library with binutils."""

import re
import subprocess
import tempfile
from dataclasses import dataclass, replace


@dataclass
class Instructions:
    """What a handler is followed by, in the disassembler's words."""

    branch: re.Pattern  # where to, but for calls
    leaves: re.Pattern  # what never goes on behind itself
    advance: re.Pattern  # what moves the pc's register: a load that writes its base back, or any result in it


AMD64 = Instructions(
    branch=re.compile(r"j\w+ ([0-9a-f]+)\b"),
    leaves=re.compile(r"(?:notrack )?(?:jmp|ret|ud2|int3)(?: |$)"),
    advance=re.compile(r"(?:lea|add|sub|mov|pop) (?:.*,)?%r12$"),
)
ARM64 = Instructions(
    branch=re.compile(r"(?:b|b\.\w+|cbn?z \w+,|tbn?z \w+, #\d+,) ([0-9a-f]+)\b"),
    leaves=re.compile(r"(?:b|br|ret)(?: |$)"),
    advance=re.compile(r"ldrh w\d+, \[x20, #\d+\]!$|(?:add|mov|ldr|ldur|sub) x20, "),
)
ARM64_NTERP = replace(ARM64, advance=re.compile(r"ldrh w\d+, \[x22, #\d+\]!$|(?:add|mov|ldr|ldur|sub) x22, "))
ARM = Instructions(
    branch=re.compile(r"b(?:eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)? ([0-9a-f]+)\b"),
    leaves=re.compile(r"(?:b|bx|(?:add|mov|ldr) pc,|pop {.*pc})(?: |$)"),
    advance=re.compile(r"ldrh\w* r\d+, \[r4, [#r]\d+\]!$|(?:add|mov|ldr|sub)\w* r4, "),
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
SWITCH_SYMBOL = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) . _ZN3art11interpreter20ExecuteSwitchImplCpp")
SECTION = re.compile(r" \.text +PROGBITS +([0-9a-f]+) ")
TEXT = re.compile(r" LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) .* R E ")
ROW = re.compile(r"^([0-9a-f]{8,16}) (\S+) +(.*)$")
FDE = re.compile(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)")
BUILD_ID = re.compile(r"Build ID: ([0-9a-f]+)")


def output(*command):
    """A tool's standard output."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def original(build_id):
    """The build-id of what a copy that varid does not know was made of: its first byte is one less."""
    return f"{(int(build_id[:2], 16) - 1) % 256:02x}{build_id[2:]}"


class Libart:
    """Which part of the interpreters an offset in libart's text is in."""

    def __init__(self, path):
        self.path = path
        found = BUILD_ID.search(output("readelf", "-n", path))
        build = found and (BUILDS.get(found[1]) or BUILDS.get(original(found[1])))
        if not build:
            raise SystemExit(f"{path}: not a build whose loop is known ({', '.join(BUILDS)})")
        self.build = build
        symbols = output("nm", "-D", "-S", "--defined-only", path)
        found = filter(None, map(SWITCH_SYMBOL.match, symbols.splitlines()))
        switch = [(int(each[1], 16), int(each[1], 16) + int(each[2], 16)) for each in found]
        frames = FDE.findall(output("readelf", "--debug-dump=frames", path))
        ranges = [(int(start, 16), int(end, 16)) for start, end in frames]
        if self.build.loop[1] and self.build.loop not in ranges:
            raise SystemExit(f"{path}: no FDE has the loop's bounds")
        self.nterp_windows = list(self.windows_of_nterp())
        text = TEXT.search(output("readelf", "-lW", path))
        self.text = int(text[2], 16) - int(text[1], 16)  # from an offset in the file to its address
        # The switch interpreter, which has no register for the pc.
        self.switch = [self.build.switch_entry, *switch]
        self.advanced = set(self.behind_advances())

    def handlers_code(self):
        """(address, instruction) of all handlers. What fills the room behind one is taken for an instruction, which may reach into the next one:
        the disassembler begins anew where there is a symbol."""
        section = int(SECTION.search(output("readelf", "-SW", self.path))[1], 16)
        starts = range(*self.build.handlers, self.handler_size())
        symbols = [f"--add-symbol=handler{at:x}=.text:{at - section},function" for at in starts]
        with tempfile.NamedTemporaryFile() as copy:
            output(f"{self.build.tools}objcopy", *symbols, self.path, copy.name)
            yield from self.disassemble(*self.build.handlers, copy.name)

    def disassemble(self, start, end, path=None):
        """(address, instruction) of the code between two addresses, of the library or of a copy."""
        bounds = [f"--start-address={start:#x}", f"--stop-address={end:#x}"]
        for line in output(f"{self.build.tools}objdump", "-d", "--no-show-raw-insn", *bounds, path or self.path).splitlines():
            if found := INSTRUCTION.match(line):
                yield int(found[1], 16), " ".join(found[2].split())

    def windows_of_nterp(self):
        """Where nterp's register is not its frame's."""
        nterp = self.build.nterp
        if nterp and self.build.nterp_entered:
            yield nterp[0], self.build.nterp_entered
            yield from self.frame_changes()
        elif nterp:
            rows = list(self.rows_of_nterp())
            for (start, is_marked), (end, _) in zip(rows, [*rows[1:], (nterp[1], None)]):
                if not is_marked:
                    yield start, end

    def rows_of_nterp(self):
        """(address, is marked) of nterp's rows: marked ones give the pc, and are those of whole frames, whose CFA an expression gives."""
        for line in output("readelf", "--debug-dump=frames-interp", self.path).splitlines():
            if (found := ROW.match(line)) and self.build.nterp[0] <= int(found[1], 16) < self.build.nterp[1]:
                yield int(found[1], 16), found[2] == "exp" and "vexp" in found[3].split()

    def frame_changes(self):
        """Where nterp enters or leaves a method: from the prologue's probe or a new stack pointer to its r12, or to the return."""
        start = None
        for offset, instruction in self.disassemble(*self.build.nterp):
            if offset < self.build.nterp_entered:
                continue
            if start is not None and instruction in ("ret", "lea 0x10(%rax),%r12"):
                # The instruction that ends it is part of it.
                yield start, offset + 1
                start = None
            elif instruction.startswith("test %rax,-0x2000(%rsp)"):
                start = offset
            elif start is None and instruction in ("mov -0x8(%r15),%rsp", "mov %r10,%rsp"):
                # After it.
                start = offset + 1

    def behind_advances(self):
        """Addresses in handlers that are executed only when the pc's register has been moved on: by following each handler's code."""
        code, instructions = dict(self.handlers_code()), self.build.code
        following = dict(zip(code, list(code)[1:]))
        moved = {}  # address: what may be true of the register there
        for start in range(*self.build.handlers, self.handler_size()):
            todo = [(start, False)]
            while todo:
                at, is_moved = todo.pop()
                inside = at is not None and start <= at < start + self.handler_size()
                if not inside or is_moved in moved.setdefault(at, set()):
                    continue
                moved[at].add(is_moved)
                is_moved = is_moved or instructions.advance.match(code[at]) is not None
                if not instructions.leaves.match(code[at]):
                    todo.append((following.get(at), is_moved))
                if branch := instructions.branch.match(code[at]):
                    todo.append((int(branch[1], 16), is_moved))
        both = [at for at, may in moved.items() if len(may) == 2]
        if both:
            raise SystemExit(f"{self.path}: {both[0]:#x} does not tell whether the register has been moved on")
        return (at for at, may in moved.items() if may == {True})

    def handler_size(self):
        """Bytes of one."""
        return (self.build.handlers[1] - self.build.handlers[0]) // 256

    def handler(self, offset):
        """The opcode whose handler an offset of the file is in and whether the pc's register is behind it there, or None."""
        offset += self.text
        if not self.build.handlers[0] <= offset < self.build.handlers[1]:
            return None
        return (offset - self.build.handlers[0]) // self.handler_size(), offset in self.advanced

    def is_long_jump(self, offset):
        """Whether an offset of the file is in art_quick_do_long_jump."""
        return self.build.long_jump[0] <= offset + self.text < self.build.long_jump[1]

    def touches_stack(self, offset):
        """Whether an offset of the file is in the function that touches a new thread's stack."""
        return self.build.touches_stack[0] <= offset + self.text < self.build.touches_stack[1]

    def part(self, offset):
        """`body`, `nterp` (a body, too), `window` and `nterp window` (the register is not this frame's), `switch` or None."""
        build, offset = self.build, offset + self.text
        if build.nterp and build.nterp[0] <= offset < build.nterp[1]:
            return "nterp window" if any(start <= offset < end for start, end in self.nterp_windows) else "nterp"
        if build.loop[0] <= offset < build.loop[1]:
            return "body" if build.entered <= offset < build.left else "window"
        if any(start <= offset < end for start, end in self.switch):
            return "switch"
        return None
