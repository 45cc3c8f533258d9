"""What is known of Debian's libart for a sample's registers? Read from the library with binutils."""

import re
import tempfile

from art_builds import build_of, disassembled, functions, output

SWITCH_SYMBOL = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) . _ZN3art11interpreter20ExecuteSwitchImplCpp")
# What an interpreter calls a method by: the method's frame is not the first one of its list.
CALLED_BY_INTERPRETERS = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) . (?:_ZN3art11interpreter33ArtInterpreterToInterpreterBridgeE|MterpInvoke)")
NEAR = 8  # instructions between the store of a list's first frame and that of its link, at most
SECTION = re.compile(r" \.text +PROGBITS +([0-9a-f]+) ")
TEXT = re.compile(r" LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) .* R E ")
ROW = re.compile(r"^([0-9a-f]{8,16}) (\S+) +(.*)$")


class Libart:
    """Which part of the interpreters an offset in libart's text is in."""

    def __init__(self, path):
        self.path = path
        self.build = build_of(path)
        symbols = output("nm", "-D", "-S", "--defined-only", path)
        found = filter(None, map(SWITCH_SYMBOL.match, symbols.splitlines()))
        switch = [(int(each[1], 16), int(each[1], 16) + int(each[2], 16)) for each in found]
        if self.build.loop[1] and self.build.loop not in functions(path):
            raise SystemExit(f"{path}: no FDE has the loop's bounds")
        self.nterp_windows = list(self.windows_of_nterp())
        text = TEXT.search(output("readelf", "-lW", path))
        self.text = int(text[2], 16) - int(text[1], 16)  # from an offset in the file to its address
        # The switch interpreter, which has no register for the pc.
        self.switch = [self.build.switch_entry, *switch]
        self.advanced = set(self.behind_advances())
        called = list(filter(None, map(CALLED_BY_INTERPRETERS.match, symbols.splitlines())))
        self.unlinked = [window for each in called for window in self.pushes(int(each[1], 16), int(each[1], 16) + int(each[2], 16))]

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
        return disassembled(path or self.path, self.build.tools, start, end)

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

    def pushes(self, start, end):
        """Where a function has made a frame the first one of a list and not linked it to the one before."""
        code = list(self.disassemble(start, end))
        load, store = self.build.code.load, self.build.code.store
        for at, (_, instruction) in enumerate(code):
            first = store.match(instruction)
            if not first:
                continue
            loads = filter(None, (load.match(what) for _, what in code[max(at - NEAR, 0) : at]))
            before = [each["register"] for each in loads if each["place"] == first["place"]][-1:]
            frame = first["register"]
            for (_, what), (behind, _) in zip(code[at + 1 : at + NEAR], code[at + 2 :]):
                link = store.match(what)
                if link and [link["register"]] == before and link["place"] in (f"({frame})", f"0x0({frame})", f"[{frame}]"):
                    yield code[at + 1][0], behind
                    break

    def is_unlinked(self, offset):
        """Whether the first frame of a thread's list is not linked to its caller at an offset of the file."""
        return any(start <= offset + self.text < end for start, end in self.unlinked)

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
