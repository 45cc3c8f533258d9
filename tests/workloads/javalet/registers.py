"""Which register does each value get, and which form does each instruction take?

The compiler numbers registers from 0 (locals and temporaries) and the parameters apart. Here they become the
registers of the frame: parameters last, as dex wants it. Many instructions only reach v0..v15: in a method with more registers the first ones
are kept free, and operands out of reach pass through them, as dx and d8 do it.
"""

from dataclasses import dataclass

MOVES = {"": "move", "wide": "move-wide", "object": "move-object"}
UNARY = ("neg-", "not-", "int-to-", "long-to-", "double-to-")
NARROW = ("if-eq", "if-ne", "if-lt", "if-ge", "if-gt", "if-le", "array-length", "new-array", "instance-of")
ARITHMETIC = ("add-", "sub-", "mul-", "div-", "rem-", "and-", "or-", "xor-", "shl-", "shr-", "ushr-")


@dataclass
class Operand:
    """A register: `number` in its bank, `kind` '', 'wide' or 'object', `written` where it is the destination."""

    number: int
    parameter: bool = False
    kind: str = ""
    written: bool = False

    def words(self):
        """Registers taken."""
        return 2 if self.kind == "wide" else 1

    def to(self, written):
        """The same register read or written."""
        return Operand(self.number, self.parameter, self.kind, written)

    def same(self, other):
        """Whether both are one register."""
        return (self.number, self.parameter) == (other.number, other.parameter)


@dataclass
class Instruction:
    """An opcode with its registers and what follows them; a label or directive has no operands and `raw` set."""

    op: str
    operands: list
    extra: str = ""
    raw: bool = False


def reaches_only_16(op):
    """Whether the opcode's format has four bits for a register."""
    if op.endswith("z"):
        return False
    return op in NARROW or op.startswith(UNARY) or op.startswith(("iget", "iput")) or op.endswith("/lit16")


class Frame:
    """Gives registers their final numbers and writes the instructions as smali."""

    def __init__(self, instructions, locals_used, parameter_words):
        self.instructions = instructions
        calls = [i for i in instructions if i.op.startswith("invoke")]
        widest = max((sum(o.words() for o in i.operands) for i in calls), default=0)
        self.scratch = max(4, widest) if locals_used + parameter_words > 16 or widest > 5 else 0
        self.locals = locals_used + self.scratch
        self.size = self.locals + parameter_words
        self.lines = []

    def number(self, operand):
        """Final number of a register."""
        return operand.number + (self.locals if operand.parameter else self.scratch)

    def put(self, op, numbers, extra=""):
        """One line of smali."""
        text = ", ".join([f"v{n}" for n in numbers] + ([extra] if extra else []))
        self.lines.append(f"    {op} {text}".rstrip())

    def move(self, kind, to, source):
        """A move in the shortest form."""
        if to != source:
            self.put(MOVES[kind] + ("" if to < 16 and source < 16 else "/from16" if to < 256 else "/16"), [to, source])

    def smali(self):
        """The method's instructions."""
        for instruction in self.instructions:
            if instruction.raw:
                self.lines.append(instruction.op)
            elif instruction.op == "move":
                to, source = instruction.operands
                self.move(to.kind, self.number(to), self.number(source))
            elif instruction.op.startswith("invoke"):
                self.invoke(instruction)
            elif reaches_only_16(instruction.op):
                self.narrow(instruction)
            else:
                self.plain(instruction)
        return self.lines

    def plain(self, instruction):
        """Formats with eight bits a register; shortened where four do."""
        op, numbers = instruction.op, [self.number(o) for o in instruction.operands]
        if op.startswith(ARITHMETIC) and "/" not in op and numbers[0] == numbers[1] and max(numbers) < 16:
            op, numbers = op + "/2addr", numbers[1:]
        if op == "const/4" and numbers[0] > 15:
            op = "const/16"
        self.put(op, numbers, instruction.extra)

    def narrow(self, instruction):
        """Formats with four bits a register."""
        numbers, after, free = [], None, 0
        for operand in instruction.operands:
            number = self.number(operand)
            if number > 15:
                if operand.written:
                    after = (operand.kind, number, 0)
                    numbers.append(0)
                    continue
                self.move(operand.kind, free, number)
                number, free = free, free + operand.words()
            numbers.append(number)
        self.put(instruction.op, numbers, instruction.extra)
        if after:
            self.move(*after)

    def invoke(self, instruction):
        """A call: up to five registers below 16, or a range."""
        words = [self.number(o) + k for o in instruction.operands for k in range(o.words())]
        if len(words) <= 5 and all(w < 16 for w in words):
            registers, op = ", ".join(f"v{w}" for w in words), instruction.op
        else:
            if words != list(range(words[0], words[0] + len(words))):
                at = 0
                for operand in instruction.operands:
                    self.move(operand.kind, at, self.number(operand))
                    at += operand.words()
                words = list(range(len(words)))
            registers, op = f"v{words[0]} .. v{words[-1]}", instruction.op + "/range"
        self.lines.append(f"    {op} {{{registers}}}, {instruction.extra}")
