"""Which methods do class files have, and which ones may each of their instructions call? As the JDK's javap prints them."""

import os
import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field

CLASS = re.compile(r"^(?:[\w-]+ )*(?:class|interface|enum) ([\w.$/-]+)")
SUPER = re.compile(r"^  (?:super_class): #\d+ +// (\S+)$")
EXTENDS = re.compile(r"^(?:[\w-]+ )*interface \S+ extends (.*)$")
IMPLEMENTS = re.compile(r" implements (.*)$")
SIGNATURE = re.compile(r"<[^<>]*>")
DECLARATION = re.compile(r"^  (\S.*);$")
DESCRIPTOR = re.compile(r"^    descriptor: (\(\S*)$")
FLAGS = re.compile(r"^    flags: \(0x([0-9a-f]+)\)")
INSTRUCTION = re.compile(r"^ +(\d+): ([a-z]\w*) *([^/\n]*?)(?: *// (.*))?$")
CATCHES = re.compile(r"^ +\d+ +\d+ +(\d+) +(?:Class .*|any)$")
LINE = re.compile(r"^        line (\d+): (\d+)$")
METHOD = re.compile(r"^(?:Interface)?Method (?:(\"?[^\s.:]+\"?)\.)?(\"?[^\s.:]+\"?):(\S+)$")
DYNAMIC = re.compile(r"^InvokeDynamic #(\d+):(\S+?):(\S+)$")
BOOTSTRAP = re.compile(r"^  (\d+): #\d+ REF_\w+ (\S+?):\S+$")
HANDLE = re.compile(r"^      #\d+ REF_\w+ ([\w/$]+)\.(\S+?):(\(\S+)$")
STATIC, ABSTRACT, NATIVE = 0x8, 0x400, 0x100
# The JDK's classes, if another JDK than javap's own has executed the program.
BOOT = ["-bootclasspath", os.environ["JAVA_BASE"]] if "JAVA_BASE" in os.environ else []
# javap runs too briefly for more of it to pay.
LITTLE_COMPILED = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]
# Instructions that end a method, and their lengths.
LAST = {"athrow": 1, "goto": 3, "goto_w": 5} | {f"{kind}return": 1 for kind in ("", "i", "l", "f", "d", "a")}


@dataclass(frozen=True)
class Reference:
    """What an instruction or a lambda names: a method of a class, by name and descriptor."""

    cls: str
    name: str
    descriptor: str


@dataclass
class Instruction:
    """A bytecode, and what it invokes, if it invokes something."""

    mnemonic: str
    invoked: Reference | None = None
    dynamic: int | None = None
    operand: str = ""


@dataclass
class Method:
    """A method with its instructions by bytecode index."""

    cls: str
    name: str
    descriptor: str
    flags: int = 0
    code: dict = field(default_factory=dict)
    handlers: set = field(default_factory=set)
    lines: list = field(default_factory=list)

    @property
    def symbol(self):
        """As a profile has it."""
        return f"{self.cls}.{self.name}"

    @property
    def size(self):
        """Bytes of its code; None if its last instruction does not tell."""
        if not self.code:
            return 0
        last = max(self.code)
        length = LAST.get(self.code[last].mnemonic)
        return length and last + length


@dataclass
class Class:
    """A class with its methods, its supertypes, and what its lambdas call."""

    name: str
    supertypes: list = field(default_factory=list)
    methods: list = field(default_factory=list)
    bootstraps: dict = field(default_factory=dict)  # index to [factory, handles]


def printed(*arguments):
    """What javap prints. It says on standard error which classes there are not."""
    return subprocess.run(["javap", *LITTLE_COMPILED, *BOOT, "-v", "-p", *arguments], capture_output=True, text=True).stdout


def plain(name):
    """A class's name in a source."""
    return name.strip('"').replace("/", ".")


class Classes:
    """Classes by name. `path`: where the workload's are; others are the JDK's, and are read when they are asked for."""

    def __init__(self, path):
        self.path, self.classes, self.absent = path, {}, set()

    def read(self, names):
        """Reads those that are not known yet."""
        names = sorted(set(names) - self.classes.keys() - self.absent)
        for start in range(0, len(names), 200):
            self.parse(printed("-cp", str(self.path), *names[start : start + 200]))
        self.absent |= set(names) - self.classes.keys()

    def get(self, name):
        """A class, or None."""
        if name not in self.classes and name not in self.absent:
            self.read([name])
        return self.classes.get(name)

    def supertypes(self, name):
        """A class and all above it."""
        found, todo = {}, [name]
        while todo:
            each = todo.pop()
            if each not in found and (cls := self.get(each)):
                found[each] = cls
                todo += cls.supertypes
        return found

    def parse(self, text):
        """Reads what javap prints of several classes."""
        cls = method = bootstrap = None
        section = ""
        for line in text.splitlines():
            if line.startswith("Classfile "):
                cls = method = None
            elif cls is None:
                if found := CLASS.match(line):
                    cls = self.begin(found[1], line)
            elif line.startswith("BootstrapMethods:"):
                method, section = None, "bootstraps"
            elif line and not line.startswith(" ") and line not in "{}":
                method, section = None, ""
            elif section == "bootstraps":
                if found := BOOTSTRAP.match(line):
                    bootstrap = cls.bootstraps[int(found[1])] = [found[2], []]
                elif found := HANDLE.match(line):
                    bootstrap[1].append(Reference(plain(found[1]), found[2].strip('"'), found[3]))
            elif found := SUPER.match(line):
                cls.supertypes.append(plain(found[1]))
            elif found := DECLARATION.match(line):
                declared = found[1]
                method, section = None, ""
            elif found := DESCRIPTOR.match(line):
                method = Method(cls.name, name_of(declared, cls.name), found[1])
                cls.methods.append(method)
            elif method:
                section = self.part_of(cls, method, section, line)

    def begin(self, name, line):
        """A class whose declaration is this line."""
        cls = self.classes[plain(name)] = Class(plain(name))
        while SIGNATURE.search(line):
            line = SIGNATURE.sub("", line)
        for pattern in (EXTENDS, IMPLEMENTS):
            if found := pattern.search(line):
                cls.supertypes += [plain(each.strip()) for each in found[1].split(",")]
        return cls

    @staticmethod
    def part_of(cls, method, section, line):
        """Reads a line of a method; returns the section that it is in."""
        if heading := re.match(r"^    (?:  )?([A-Z]\w+(?: table)?):", line):
            return heading[1]
        if section == "Code" and (found := INSTRUCTION.match(line)):
            instruction = Instruction(found[2], operand=found[4] or found[3])
            if found[2].startswith("invoke") and found[4]:
                if named := METHOD.match(found[4]):
                    owner = plain(named[1]) if named[1] else cls.name
                    instruction.invoked = Reference(owner, named[2].strip('"'), named[3])
                elif named := DYNAMIC.match(found[4]):
                    instruction.dynamic = int(named[1])
                    instruction.invoked = Reference("", named[2], named[3])
            method.code[int(found[1])] = instruction
        elif section == "Exception table" and (found := CATCHES.match(line)):
            method.handlers.add(int(found[1]))
        elif section == "LineNumberTable" and (found := LINE.match(line)):
            method.lines.append((int(found[2]), int(found[1])))
        elif found := FLAGS.match(line):
            method.flags = int(found[1], 16)
        return section


def name_of(declared, cls):
    """The name of a method by its declaration."""
    if declared == "static {}":
        return "<clinit>"
    name = declared.split("(")[0].split(" ")[-1]
    return "<init>" if name == cls else name


class Calls:
    """Which methods of a workload each of its instructions may call: virtual calls by all of its classes."""

    def __init__(self, path, workload):
        self.classes = Classes(path)
        self.workload = workload
        self.classes.read(workload)
        self.own = [method for name in workload for method in self.classes.get(name).methods]
        self.below = defaultdict(set)
        for name in workload:
            for above in self.classes.supertypes(name):
                self.below[above].add(name)
        # Classes of lambdas: (class, interface's method) to what they call; (interface, its method) to classes.
        self.lambdas, self.implemented = defaultdict(set), defaultdict(set)
        for method in self.own:
            for each in method.code.values():
                if each.dynamic is not None:
                    self.add_lambda(method.cls, each)

    def add_lambda(self, name, instruction):
        """Adds the class that an instruction makes, if that is a lambda's."""
        factory, handles = self.classes.get(name).bootstraps[instruction.dynamic]
        if factory.startswith("java/lang/invoke/LambdaMetafactory."):
            interface = plain(instruction.invoked.descriptor.split(")L")[1][:-1])
            self.lambdas[name, instruction.invoked.name].update(handles)
            self.implemented[interface, instruction.invoked.name].add(name)

    def declared(self, name, reference):
        """The method that a class has, by name and descriptor, its own or that of a class above it; None if it has none that is known."""
        for cls in self.classes.supertypes(name).values():
            for method in cls.methods:
                if (method.name, method.descriptor) == (reference.name, reference.descriptor) and not method.flags & ABSTRACT:
                    return method
        return None

    def callees(self, instruction):
        """The methods that an invoke instruction may call, of the workload or inherited from the JDK."""
        reference = instruction.invoked
        receivers = {reference.cls}
        if instruction.mnemonic in ("invokevirtual", "invokeinterface"):
            receivers |= self.below[reference.cls]
        found = (self.declared(name, reference) for name in receivers)
        return [method for method in found if method]
