"""Which instructions does an expression become, and in which register is its value?

Comparisons branch directly. A local is read where it lies; a temporary takes the place of the operands it is made of.
"""

import struct

from .program import CompileError
from .registers import Instruction

SUFFIX = {"J": "-wide", "D": "-wide", "Z": "-boolean", "B": "-byte", "C": "-char", "I": ""}
NAMES = {"I": "int", "J": "long", "D": "double", "B": "byte", "C": "char"}
OPS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem", "&": "and", "|": "or", "^": "xor",
       "<<": "shl", ">>": "shr", ">>>": "ushr"}  # fmt: skip
COMPARE = {"==": "eq", "!=": "ne", "<": "lt", ">=": "ge", ">": "gt", "<=": "le"}
OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def kind_of(descriptor):
    """Bank of a type: '', 'wide' or 'object'."""
    return "wide" if descriptor in "JD" else "object" if descriptor[0] in "L[n" else ""


def suffix(descriptor):
    """What aget, iget, sget and their like append for a type."""
    return SUFFIX.get(descriptor, "-object")


class Values:
    """The part of a method's compiler that deals with expressions; `emit`, `take`, `lookup` are MethodCompiler's."""

    # Conditions

    def condition(self, tree, target, wanted):
        """Branches to `target` if the condition is `wanted`, else goes on."""
        kept = self.next
        if tree[0] == "unary" and tree[2] == "!":
            self.condition(tree[3], target, not wanted)
        elif tree[0] == "binary" and tree[2] in ("&&", "||"):
            if (tree[2] == "||") == wanted:
                self.condition(tree[3], target, wanted)
                self.condition(tree[4], target, wanted)
            else:
                over = self.label("over")
                self.condition(tree[3], over, not wanted)
                self.condition(tree[4], target, wanted)
                self.raw(f"    {over}")
        elif tree[0] == "binary" and tree[2] in COMPARE:
            self.comparison(tree, target, wanted)
        else:
            source, _ = self.value(tree, "Z")
            self.emit("if-nez" if wanted else "if-eqz", source.to(False), extra=target)
        self.next = kept

    def comparison(self, tree, target, wanted):
        op = COMPARE[tree[2]] if wanted else OPPOSITE[COMPARE[tree[2]]]
        left, right = self.value(tree[3]), None
        if tree[4][0] == "null" or (tree[4][0] == "int" and tree[4][2] == 0 and left[1] in "IZBC"):
            self.emit(f"if-{op}z", left[0].to(False), extra=target)
            return
        right = self.value(tree[4])
        if left[1][0] in "L[" or (left[1] in "IZBC" and right[1] in "IZBC"):
            self.emit(f"if-{op}", left[0].to(False), right[0].to(False), extra=target)
            return
        kind = "D" if "D" in (left[1], right[1]) else "J"
        left, right = self.convert(left, kind), self.convert(right, kind)
        # A NaN makes every comparison but != false.
        compare = "cmp-long" if kind == "J" else "cmpg-double" if tree[2] in ("<", "<=") else "cmpl-double"
        result = self.take("I")
        self.emit(compare, result.to(True), left[0].to(False), right[0].to(False))
        self.emit(f"if-{op}z", result, extra=target)

    # Values

    def value(self, tree, wanted=None, into=None):
        """Register and type of an expression, converted to `wanted`, put `into` a register if one is given."""
        line, self.line = self.line, tree[1]
        if into and tree[0] in ("binary", "int", "double") and not self.is_boolean(tree):
            found = getattr(self, "get_" + tree[0])(*tree[2:], wanted=wanted, into=into)
        elif tree[0] in ("int", "double"):
            found = getattr(self, "get_" + tree[0])(*tree[2:], wanted=wanted)
        else:
            found = getattr(self, "get_" + tree[0])(*tree[2:])
        self.line = line
        if wanted and wanted != found[1] and found[1] != "V":
            found = self.convert(found, wanted, into)
        if into and not found[0].same(into):
            self.redirect(found[0], into)
            found = (into, found[1])
        return found

    def redirect(self, source, into):
        """Lets the last instruction write `into` directly where it made a temporary; else moves."""
        last = self.out[-1] if self.out else Instruction("", [], raw=True)
        temporary = not source.parameter and all(not source.same(o) for s in self.scopes for o, _ in s.values())
        writes = not last.raw and last.operands and last.operands[0].written and last.operands[0].same(source)
        if temporary and writes and source.kind == into.kind:
            last.operands[0] = into.to(True)
        else:
            self.emit("move", into.to(True), source.to(False))

    @staticmethod
    def is_boolean(tree):
        return tree[0] == "binary" and (tree[2] in COMPARE or tree[2] in ("&&", "||"))

    def convert(self, found, wanted, into=None):
        """A value as another type; widening and, for casts, narrowing of numbers."""
        source, kind = found
        if kind == wanted or kind_of(kind) == "object" or wanted == "Z" or (wanted == "I" and kind in "BCZ"):
            return source, wanted
        result = into or self.take(wanted)
        if wanted in "BC" and kind in "JD":
            source, kind = self.convert((source, kind), "I")
        start = "int" if kind in "BCZ" else NAMES[kind]
        self.emit(f"{start}-to-{NAMES[wanted]}", result.to(True), source.to(False))
        return result, wanted

    def get_int(self, value, kind, wanted=None, into=None):
        if wanted == "D":
            return self.get_double(float(value), "D", into=into)
        if wanted == "J" or kind == "J":
            result = into or self.take("J")
            form = "/16" if -(1 << 15) <= value < 1 << 15 else "/32" if -(1 << 31) <= value < 1 << 31 else ""
            value -= (1 << 64) if value >= 1 << 63 else 0
            self.emit("const-wide" + form, result.to(True), extra=hex(value) + ("" if form else "L"))
            return result, "J"
        result = into or self.take("I")
        value -= (1 << 32) if value >= 1 << 31 else 0
        form = "/4" if -8 <= value < 8 else "/16" if -(1 << 15) <= value < 1 << 15 else ""
        self.emit("const" + form, result.to(True), extra=hex(value))
        return result, wanted if wanted and wanted in "IZBC" else kind

    def get_double(self, value, _kind, wanted=None, into=None):
        result = into or self.take("D")
        bits = struct.unpack(">q", struct.pack(">d", value))[0]
        self.emit("const-wide" if bits & 0xFFFFFFFFFFFF else "const-wide/high16", result.to(True), extra=f"{bits:#x}L")
        return result, "D"

    def get_string(self, text):
        result = self.take("Ljava/lang/String;")
        self.emit("const-string", result.to(True), extra=text)
        return result, "Ljava/lang/String;"

    def get_null(self):
        result = self.take("null")
        self.emit("const/4", result.to(True), extra="0x0")
        return result, "null"

    def get_name(self, name):
        return self.lookup(name) or self.load(("name", self.line, name))

    def get_field(self, base, name):
        if name == "length":
            array, kind = self.value(base)
            if kind[0] == "[":
                result = self.take("I")
                self.emit("array-length", result.to(True), array.to(False))
                return result, "I"
        return self.load(("field", self.line, base, name))

    def load(self, target):
        constant = self.constant(target)
        if constant:
            return self.value(constant)
        op, _, extra, operands, kind = self.place(target)
        result = self.take(kind)
        self.emit(op + suffix(kind), result.to(True), *operands, extra=extra)
        return result, kind

    def constant(self, target):
        """The literal of a static final field, as javac inlines it."""
        if target[0] == "name":
            owner, name = self.me, target[2]
        elif target[2][0] == "name" and not self.lookup(target[2][2]) and self.program.is_class(target[2][2]):
            owner, name = self.program.names[target[2][2]], target[3]
        else:
            return None
        _, kind, declared = self.program.field(owner, name)
        if {"static", "final"} <= set(declared.flags) and declared.value and declared.value[0] in ("int", "double"):
            return (declared.value[0], self.line, declared.value[2], kind)
        return None

    def get_index(self, base, index):
        kept = self.next
        array, kind = self.value(base)
        at, _ = self.value(index, "I")
        self.next = kept
        result = self.take(kind[1:])
        self.emit("aget" + suffix(kind[1:]), result.to(True), array.to(False), at.to(False))
        return result, kind[1:]

    def get_binary(self, op, left, right, wanted=None, into=None):
        if op in COMPARE or op in ("&&", "||"):
            return self.flag(("binary", self.line, op, left, right))
        kept = self.next
        if left[0] == "int" and op in ("+", "*", "&", "|", "^"):
            left, right = right, left
        return self.arithmetic(op, self.value(left), right, None, into, wanted, kept)

    def arithmetic(self, op, first, right, result_kind, into=None, wanted=None, kept=None):
        """`first op right`; with `result_kind` the result is cast to it, as compound assignments do.

        Registers from `kept` on hold nothing but the operands: the result may take their place.
        """
        if first[1] in "IBC" and right[0] == "int" and right[3] == "I" and -(1 << 15) < right[2] < 1 << 15:
            value = -right[2] if op == "-" else right[2]
            short = -128 <= value < 128
            if short or op not in ("<<", ">>", ">>>"):
                fits = into and (wanted or result_kind or "I") == "I"
                self.next = self.next if kept is None else kept
                result = into if fits else self.take("I")
                form = "/lit8" if short else "/lit16"
                name = "add-int" if op == "-" else OPS[op] + "-int"
                self.emit(name + form, result.to(True), first[0].to(False), extra=hex(value))
                return self.convert((result, "I"), result_kind) if result_kind else (result, "I")
        literal = right[0] == "int" and right[3] == "I" and op not in ("<<", ">>", ">>>")
        second = self.value(right, first[1] if literal else None)
        found = self.combine(op, first, second, into, result_kind or wanted, kept)
        return self.convert(found, result_kind, into) if result_kind else found

    def combine(self, op, first, second, into, wanted, kept=None):
        shift = op in ("<<", ">>", ">>>")
        kinds = first[1] if shift else first[1] + second[1]
        if first[1] == "Z" and second[1] == "Z":
            kind = "Z"
        else:
            kind = "D" if "D" in kinds else "J" if "J" in kinds else "I"
        first = self.convert(first, kind)
        second = self.convert(second, "I" if shift else kind)
        self.next = self.next if kept is None else kept
        result = into if into and wanted == kind else self.take(kind)
        self.emit(f"{OPS[op]}-{NAMES.get(kind, 'int')}", result.to(True), first[0].to(False), second[0].to(False))
        return result, kind

    def flag(self, tree):
        """A condition as 0 or 1."""
        result, end = self.take("Z"), self.label("flag")
        false = self.label("false")
        self.condition(tree, false, False)
        self.emit("const/4", result.to(True), extra="0x1")
        self.emit("goto", extra=end)
        self.raw(f"    {false}")
        self.emit("const/4", result.to(True), extra="0x0")
        self.raw(f"    {end}")
        return result, "Z"

    def get_choose(self, condition, then, otherwise):
        """`c ? a : b`; the type is that of `a`."""
        false, end = self.label("otherwise"), self.label("chosen")
        self.condition(condition, false, False)
        start = len(self.out)
        kept, most, said = self.next, self.most, self.said
        _, kind = self.value(then)
        del self.out[start:]
        self.next, self.most, self.said = kept, most, said
        result = self.take(kind)
        self.value(then, kind, result)
        self.emit("goto", extra=end)
        self.raw(f"    {false}")
        self.value(otherwise, kind, result)
        self.raw(f"    {end}")
        return result, kind

    def get_unary(self, op, operand):
        if op == "!":
            return self.flag(("unary", self.line, op, operand))
        source, kind = self.value(operand)
        kind = "I" if kind in "BC" else kind
        result = self.take(kind)
        self.emit(("neg-" if op == "-" else "not-") + NAMES[kind], result.to(True), source.to(False))
        return result, kind

    def get_cast(self, kind, operand):
        wanted = self.program.descriptor(kind)
        found = self.value(operand)
        if kind_of(wanted) != "object":
            return self.convert(found, wanted)
        result = self.take(wanted)
        self.emit("move", result.to(True), found[0].to(False))
        self.emit("check-cast", result, extra=wanted)
        return result, wanted

    def get_instanceof(self, operand, kind):
        source, _ = self.value(operand)
        result = self.take("Z")
        self.emit("instance-of", result.to(True), source.to(False), extra=self.program.descriptor(kind))
        return result, "Z"

    def get_new(self, kind, arguments):
        descriptor = self.program.descriptor(kind)
        result = self.take(descriptor)
        self.emit("new-instance", result.to(True), extra=descriptor)
        self.call_method((result, descriptor), descriptor, "<init>", arguments, "invoke-direct")
        return result, descriptor

    def get_array(self, element, length):
        size, _ = self.value(length, "I")
        descriptor = "[" + self.program.descriptor(element)
        result = self.take(descriptor)
        self.emit("new-array", result.to(True), size.to(False), extra=descriptor)
        return result, descriptor

    # Calls

    def get_call(self, base, name, arguments):
        if base is None and name == "super":
            return self.call_method(
                self.lookup("this"), self.program.names[self.unit.extends], "<init>", arguments, "invoke-direct"
            )
        if base is None:
            return self.call_method(self.lookup("this"), self.me, name, arguments)
        if base[0] == "name" and base[2] == "super":
            owner = self.program.names[self.unit.extends]
            return self.call_method(self.lookup("this"), owner, name, arguments, "invoke-super")
        if base[0] == "name" and not self.lookup(base[2]) and self.program.is_class(base[2]):
            return self.call_method(None, self.program.names[base[2]], name, arguments)
        receiver = self.value(base)
        return self.call_method(receiver, receiver[1], name, arguments)

    def call_method(self, receiver, descriptor, name, arguments, op=None):
        line, before = self.line, self.next
        # The types decide which method it is, and the method into what each argument is converted.
        start, kept, most, said = len(self.out), self.next, self.most, self.said
        types = [self.value(each)[1] for each in arguments]
        del self.out[start:]
        self.next, self.most, self.said = kept, most, said
        owner, method = self.program.method(descriptor, name, types)
        wanted = [self.program.descriptor(kind) for kind, _ in method.parameters]
        values = [self.value(each, kind)[0].to(False) for each, kind in zip(arguments, wanted)]
        if "static" in method.flags:
            op = "invoke-static"
        else:
            if receiver is None:
                raise CompileError(f"{self.unit.file}:{line}: {name} needs an object")
            values.insert(0, receiver[0].to(False))
            if not op:
                interface = self.program.units[owner].interface
                private = "private" in method.flags
                op = "invoke-interface" if interface else "invoke-direct" if private else "invoke-virtual"
        for each, kind in zip(reversed(values), reversed(wanted)):
            each.kind = kind_of(kind)
        self.line = line
        self.emit(op, *values, extra=f"{owner}->{self.program.signature(method)}")
        returns = self.program.descriptor(method.returns)
        if returns == "V":
            return None, "V"
        kind = kind_of(returns)
        self.next = before
        result = self.take(returns)
        self.emit("move-result" + (f"-{kind}" if kind else ""), result.to(True))
        return result, returns
