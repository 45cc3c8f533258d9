"""What is known of Debian's libart (build-id d3ba281c...) for a sample's registers? Read from the library with binutils."""

import re
import subprocess

BUILD_ID = "d3ba281c20e725780467fb41f50e669082ccac64"

# The interpreter's loop, ExecuteMterpImpl, as its FDE says.
LOOP = (0x7B2D80, 0x7BB023)
# Within it, by disassembly: up to here the prologue has not set the pc's register, r12 ...
ENTERED = 0x7B2DA9
# ... and from here the epilogue has popped the frame's, r13, and is about to pop r12.
LEFT = 0x7BB01E

# ART's other loop, nterp, whose frames are native ones: several FDEs that follow each other.
NTERP = (0x7BB088, 0x7C989B)
# Its prologue sets r12 here for the first time.
NTERP_ENTERED = 0x7BB5A7

INSTRUCTION = re.compile(r"^ +([0-9a-f]+):\t(.*)$")
# The switch interpreter's way in, which no symbol names.
SWITCH_ENTRY = (0x7B2B70, 0x7B2B78)
SWITCH_SYMBOL = re.compile(r"^([0-9a-f]+) . _ZN3art11interpreter20ExecuteSwitchImplCpp")
FDE = re.compile(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)")


def output(*command):
    """A tool's standard output."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Libart:
    """Which part of the interpreters an offset in libart's text is in."""

    def __init__(self, path):
        self.path = path
        if BUILD_ID not in output("readelf", "-n", path):
            raise SystemExit(f"{path}: not the build whose loop is known ({BUILD_ID})")
        symbols = output("nm", "-D", "--defined-only", path)
        starts = {int(found[1], 16) for found in map(SWITCH_SYMBOL.match, symbols.splitlines()) if found}
        frames = FDE.findall(output("readelf", "--debug-dump=frames", path))
        ranges = [(int(start, 16), int(end, 16)) for start, end in frames]
        if LOOP not in ranges:
            raise SystemExit(f"{path}: no FDE has the loop's bounds")
        self.nterp_windows = [(NTERP[0], NTERP_ENTERED), *self.frame_changes()]
        # The switch interpreter, which has no register for the pc.
        self.switch = [SWITCH_ENTRY, *(each for each in ranges if each[0] in starts)]

    def frame_changes(self):
        """Where nterp enters or leaves a method: from the prologue's probe or a new stack pointer to its r12, or to the return."""
        bounds = [f"--start-address={NTERP[0]:#x}", f"--stop-address={NTERP[1]:#x}"]
        start = None
        for line in output("objdump", "-d", "--no-show-raw-insn", *bounds, self.path).splitlines():
            found = INSTRUCTION.match(line)
            if not found or int(found[1], 16) < NTERP_ENTERED:
                continue
            offset, instruction = int(found[1], 16), " ".join(found[2].split())
            if start is not None and instruction in ("ret", "lea 0x10(%rax),%r12"):
                # The instruction that ends it is part of it.
                yield start, offset + 1
                start = None
            elif instruction.startswith("test %rax,-0x2000(%rsp)"):
                start = offset
            elif start is None and instruction in ("mov -0x8(%r15),%rsp", "mov %r10,%rsp"):
                # After it.
                start = offset + 1

    def part(self, offset):
        """`body`, `nterp` (a body, too), `window` (r12 is not this frame's), `switch` or None."""
        if NTERP[0] <= offset < NTERP[1]:
            return "window" if any(start <= offset < end for start, end in self.nterp_windows) else "nterp"
        if LOOP[0] <= offset < LOOP[1]:
            return "body" if ENTERED <= offset < LEFT else "window"
        if any(start <= offset < end for start, end in self.switch):
            return "switch"
        return None
