"""Where are a dex file's methods and instructions? As dexdump prints them."""

import re
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

CLASS = re.compile(r"^    #\d+ +: \(in (\S+)\)$")
FIELD = re.compile(r"^      (name|type|insns size) +: (.*)$")
INSTRUCTION = re.compile(r"^([0-9a-f]{6,}): [^|]*\|[0-9a-f]{4,}: (.*)$")
DATA = ("packed-switch-data", "sparse-switch-data", "array-data")
INVOKED = re.compile(r", (L[^;]+;)\.([^:]+):(\(\S*\)\S+)")
# A branch's, in code units from the method's start.
TARGET = re.compile(r"\b([0-9a-f]{4,8}) // [+-]")
SWITCHES = ("packed-switch ", "sparse-switch ")
ENDS = ("goto", "return", "throw")
PRIMITIVES = {
    "V": "void", "Z": "boolean", "B": "byte", "S": "short", "C": "char",
    "I": "int", "J": "long", "F": "float", "D": "double",
}  # fmt: skip


@dataclass(eq=False)
class Method:
    """A method with code; `start` and `end` are offsets in the file."""

    cls: str  # as in Java, with dots
    name: str
    descriptor: str
    start: int = 0
    end: int = 0
    symbol: str = ""  # what a profile calls it


class Dex:
    """A dex file's methods by name and its instructions by offset."""

    def __init__(self, path):
        self.path = str(path)
        self.content = Path(path).read_bytes()
        # The header's SHA-1: a profile knows the file by it.
        self.build_id = self.content[12:32].hex()
        self.methods = []
        self.declared = set()  # symbols of all methods, those without code too
        self.instructions = {}  # offset: (mnemonic and operands, method)
        # Without its checksum, which dex2oat leaves as it is when it changes instructions.
        self.parse(subprocess.run(["dexdump", "-i", "-d", self.path], capture_output=True, text=True, check=True).stdout)
        self.name()

    def parse(self, text):
        """Reads dexdump's output."""
        method = None
        for line in text.splitlines():
            if found := INSTRUCTION.match(line):
                offset, instruction = int(found[1], 16), found[2]
                if method.start == 0:
                    method.start = offset
                    method.end += offset
                if not instruction.startswith(DATA):
                    self.instructions[offset] = (instruction, method)
            elif found := CLASS.match(line):
                method = Method(java_class(found[1]), "", "")
            elif (found := FIELD.match(line)) and method:
                if found[1] == "name":
                    method.name = found[2].strip("'")
                elif found[1] == "type" and found[2].startswith("'("):
                    method.descriptor = found[2].strip("'")
                    self.methods.append(method)
                elif found[1] == "insns size":
                    method.end = 2 * int(found[2].split()[0])

    def name(self):
        """Overloads are told apart by their parameters, as in Java."""
        overloads = {}
        for method in self.methods:
            overloads.setdefault((method.cls, method.name), []).append(method)
        for (cls, name), methods in overloads.items():
            for method in methods:
                method.symbol = f"{cls}.{name}" + (parameters(method.descriptor) if len(methods) > 1 else "")
                self.declared.add(method.symbol)

    def before(self, offset, opcode):
        """Offsets of the method's instructions of an opcode that may lead to the one at an offset."""
        method = self.instructions[offset][1]
        inside = sorted(each for each in self.instructions if method.start <= each < method.end)
        for at, behind in zip(inside, [*inside[1:], None]):
            if self.content[at] != opcode:
                continue
            instruction = self.instructions[at][0]
            targets = [method.start + 2 * int(place, 16) for place in TARGET.findall(instruction)]
            if instruction.startswith(SWITCHES):
                targets = list(self.switch_targets(at, targets[0]))
            if not instruction.startswith(ENDS):
                targets.append(behind)
            if offset in targets:
                yield at

    def switch_targets(self, at, table):
        """Where the branches of the switch at an offset lead, by its table's."""
        kind, count = struct.unpack_from("<HH", self.content, table)
        first = table + (8 if kind == 0x100 else 4 + 4 * count)
        for target in struct.unpack_from(f"<{count}i", self.content, first):
            yield at + 2 * target

    def invoked(self, offset):
        """Name and descriptor of the method that the instruction at an offset calls: the class is the static one."""
        instruction = self.instructions.get(offset, ("", None))[0]
        found = INVOKED.search(instruction) if instruction.startswith("invoke-") else None
        return found and (java_class(found[1]), found[2], found[3])


def java_class(descriptor):
    """Lorg/example/Main; is org.example.Main."""
    return descriptor[1:-1].replace("/", ".")


def parameters(descriptor):
    """(I[Ljava/lang/String;)V is (int,java.lang.String[])."""
    types = re.findall(r"\[*(?:[A-Z](?<!L)|L[^;]+;)", descriptor[1 : descriptor.index(")")])
    return "(" + ",".join(map(java_type, types)) + ")"


def java_type(descriptor):
    """[I is int[]."""
    plain = descriptor.lstrip("[")
    return (PRIMITIVES.get(plain) or java_class(plain)) + "[]" * (len(descriptor) - len(plain))
