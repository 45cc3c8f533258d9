"""Which classes, fields and methods can a source name? Those of its own package and these of the core library."""

from .syntax import PRIMITIVES, Field, Method, Unit

LIBRARY = {
    "java.lang.Object": ("", ["<init>()V", "hashCode()I", "equals(Ljava/lang/Object;)Z"], []),
    "java.lang.String": ("Object", ["length()I", "charAt(I)C"], []),
    "java.lang.Runnable": ("Object", ["run()V"], []),
    "java.lang.Thread": ("Object", ["<init>()V", "<init>(Ljava/lang/String;)V", "start()V", "join()V", "run()V"], []),
    "java.lang.Throwable": ("Object", ["<init>()V", "<init>(Ljava/lang/String;)V"], []),
    "java.lang.Exception": ("Throwable", ["<init>()V", "<init>(Ljava/lang/String;)V"], []),
    "java.lang.RuntimeException": ("Exception", ["<init>()V", "<init>(Ljava/lang/String;)V"], []),
    "java.lang.InterruptedException": ("Exception", ["<init>()V"], []),
    "java.lang.NullPointerException": ("RuntimeException", ["<init>()V"], []),
    "java.lang.ArrayIndexOutOfBoundsException": ("RuntimeException", ["<init>()V"], []),
    "java.lang.ArithmeticException": ("RuntimeException", ["<init>()V"], []),
    "java.lang.Error": ("Throwable", ["<init>()V"], []),
    "java.lang.VirtualMachineError": ("Error", ["<init>()V"], []),
    "java.lang.StackOverflowError": ("VirtualMachineError", ["<init>()V"], []),
    "java.lang.Math": ("Object", [], ["sin(D)D", "cos(D)D", "sqrt(D)D"]),
    "java.lang.Double": ("Object", [], ["doubleToRawLongBits(D)J"]),
}


class CompileError(Exception):
    """Something that the source names and nobody has, or a type that does not fit."""


def split_signature(text):
    """`f(IJ)D` as name, parameter descriptors, return descriptor."""
    name, rest = text.split("(")
    inside, returns = rest.split(")")
    return name, descriptors(inside), returns


def descriptors(text):
    """The descriptors that stand one after the other in `text`."""
    found, start, at = [], 0, 0
    while at < len(text):
        if text[at] == "[":
            at += 1
            continue
        at = text.index(";", at) + 1 if text[at] == "L" else at + 1
        found.append(text[start:at])
        start = at
    return found


class Program:
    """All units of one dex, by descriptor."""

    def __init__(self, units):
        self.units = {}
        self.names = {}
        for full, (parent, members, statics) in LIBRARY.items():
            package, name = full.rsplit(".", 1)
            flags = ["interface"] if name == "Runnable" else []
            unit = Unit("", package, name, flags, extends=parent)
            for flag, signatures in ((["public"], members), (["public", "static"], statics)):
                for signature in signatures:
                    method, parameters, returns = split_signature(signature)
                    unit.methods.append(Method(method, returns, [(p, "") for p in parameters], flag, None, 0))
            self.add(unit)
        for unit in units:
            if not unit.interface and not any(m.name == "<init>" for m in unit.methods):
                line = min((m.line for m in unit.methods), default=1)
                unit.methods.insert(0, Method("<init>", "void", [], ["public"], ("block", line, [], line), line))
            self.add(unit)

    def add(self, unit):
        descriptor = f"L{unit.package}.{unit.name};".replace(".", "/")
        self.units[descriptor] = unit
        self.names[unit.name] = descriptor

    def descriptor(self, source_type):
        """A source type such as `double[][]` as a descriptor; descriptors pass unchanged."""
        base = source_type.replace("[]", "")
        dimensions = (len(source_type) - len(base)) // 2
        if source_type[0] == "[" or source_type[-1] == ";" or source_type in PRIMITIVES.values():
            return source_type
        base = PRIMITIVES.get(base) or self.names.get(base)
        if not base:
            raise CompileError(f"no class {source_type}")
        return "[" * dimensions + base

    def is_class(self, name):
        """Whether a simple name is a class."""
        return name in self.names

    def ancestors(self, descriptor):
        """The class, its superclasses and its interfaces."""
        unit = self.units.get(descriptor)
        if not unit:
            return
        yield descriptor, unit
        for parent in unit.implements + ([unit.extends] if unit.extends else []):
            yield from self.ancestors(self.names[parent])

    def field(self, descriptor, name):
        """Owner, type and declaration of a field."""
        for owner, unit in self.ancestors(descriptor):
            for each in unit.fields:
                if each.name == name:
                    return owner, self.descriptor(each.type), each
        raise CompileError(f"no field {name} in {descriptor}")

    def method(self, descriptor, name, types):
        """Owner and declaration of the method that takes these argument types; an exact match first."""
        for fits in (self.equal, self.assignable):
            for owner, unit in self.ancestors(descriptor):
                for each in unit.methods:
                    wanted = [self.descriptor(kind) for kind, _ in each.parameters]
                    if each.name == name and len(wanted) == len(types) and all(map(fits, types, wanted)):
                        return owner, each
                if name == "<init>":
                    break
        raise CompileError(f"no method {name}({''.join(types)}) in {descriptor}")

    @staticmethod
    def equal(given, wanted):
        """Whether two types are one."""
        return given == wanted

    def assignable(self, given, wanted):
        """Whether a value of type `given` may become one of type `wanted` without a cast."""
        widths = "BSIJD"
        if given in widths and wanted in widths:
            return widths.index(given) <= widths.index(wanted)
        if given == "C":
            return wanted in "CIJD"
        if given == "null" or wanted == "Ljava/lang/Object;":
            return wanted[0] in "L["
        return given == wanted or any(owner == wanted for owner, _ in self.ancestors(given))

    def signature(self, method):
        """Name and descriptor of a method as smali writes them."""
        parameters = "".join(self.descriptor(kind) for kind, _ in method.parameters)
        return f"{method.name}({parameters}){self.descriptor(method.returns)}"
