"""Which instructions does a method become?

Locals and temporaries are taken from one stack of registers; what dex wants of their numbers is left to registers.py.
"""

from .registers import Frame, Instruction, Operand
from .values import Values, kind_of, suffix


class MethodCompiler(Values):
    """One method's body to instructions."""

    def __init__(self, program, unit, method):
        self.program, self.unit, self.method = program, unit, method
        self.me = program.names[unit.name]
        self.returns = program.descriptor(method.returns)
        self.static = "static" in method.flags
        self.out, self.scopes, self.loops, self.monitors = [], [{}], [], []
        self.next = self.most = self.labels = 0
        self.line = self.said = 0
        self.parameter_words = 0
        if not self.static:
            self.parameter(self.me, "this")
        for kind, name in method.parameters:
            self.parameter(program.descriptor(kind), name)

    def parameter(self, kind, name):
        operand = Operand(self.parameter_words, True, kind_of(kind))
        self.scopes[0][name] = (operand, kind)
        self.parameter_words += operand.words()

    # Emitting

    def emit(self, op, *operands, extra=""):
        if self.line != self.said:
            self.raw(f"    .line {self.line}")
            self.said = self.line
        self.out.append(Instruction(op, list(operands), extra))

    def raw(self, text):
        self.out.append(Instruction(text, [], raw=True))

    def label(self, hint):
        self.labels += 1
        return f":{hint}_{self.labels}"

    def take(self, kind):
        """A fresh register of a type."""
        operand = Operand(self.next, False, kind_of(kind))
        self.next += operand.words()
        self.most = max(self.most, self.next)
        return operand

    def lookup(self, name):
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def compile(self):
        """The method's lines of smali, directives included."""
        body = self.method.body
        if self.method.name == "<init>" and not self.calls_super(body):
            self.line = self.method.line
            self.call_method(self.lookup("this"), self.program.names[self.unit.extends], "<init>", [], "invoke-direct")
        self.statement(body)
        if self.returns == "V" and (not self.out or self.out[-1].raw or self.out[-1].op not in ("return-void", "throw")):
            self.line = body[3]
            self.emit("return-void")
        frame = Frame(self.out, self.most, self.parameter_words)
        lines = frame.smali()
        return [f"    .registers {frame.size}"] + lines

    @staticmethod
    def calls_super(body):
        return bool(body[2]) and body[2][0][0] == "expression" and body[2][0][2][3] == "super"

    # Statements

    def statement(self, tree):
        self.line = tree[1]
        kept = self.next
        getattr(self, "do_" + tree[0])(*tree[2:])
        if tree[0] != "local":
            self.next = kept

    def do_block(self, statements, end):
        self.scopes.append({})
        for each in statements:
            self.statement(each)
        self.scopes.pop()
        self.line = end

    def do_local(self, kind, name, value):
        kind = self.program.descriptor(kind)
        operand = self.take(kind)
        if value:
            self.value(value, kind, operand)
        self.scopes[-1][name] = (operand, kind)
        self.next = operand.number + operand.words()

    def do_expression(self, tree):
        self.value(tree, None)

    def do_assign(self, op, target, value):
        if target[0] == "index":
            array, array_kind = self.value(target[2])
            index, _ = self.value(target[3], "I")
            kind = array_kind[1:]
            place = (suffix(kind), array, index)
            load, store, extra, operands = "aget", "aput", "", place[1:]
        else:
            local = self.lookup(target[2]) if target[0] == "name" else None
            if local:
                operand, kind = local
                if op == "=":
                    self.value(value, kind, operand)
                else:
                    source, _ = self.arithmetic(op[:-1], local, value, kind, operand)
                    if not source.same(operand):
                        self.redirect(source, operand)
                return
            load, store, extra, operands, kind = self.place(target)
        if op == "=":
            source, _ = self.value(value, kind)
        else:
            old = self.take(kind)
            self.emit(load + suffix(kind), old.to(True), *operands, extra=extra)
            source, _ = self.arithmetic(op[:-1], (old, kind), value, kind, self.take(kind))
        self.emit(store + suffix(kind), source.to(False), *operands, extra=extra)

    def place(self, target):
        """How a field is read and written: two opcodes, reference, registers, type."""
        if target[0] == "name":
            owner, kind, declared = self.program.field(self.me, target[2])
            base = None if "static" in declared.flags else self.lookup("this")[0]
        elif target[2][0] == "name" and not self.lookup(target[2][2]) and self.program.is_class(target[2][2]):
            owner, kind, declared = self.program.field(self.program.names[target[2][2]], target[3])
            base = None
        else:
            base, base_kind = self.value(target[2])
            owner, kind, declared = self.program.field(base_kind, target[3])
        if "static" in declared.flags:
            return "sget", "sput", f"{owner}->{declared.name}:{kind}", (), kind
        return "iget", "iput", f"{owner}->{declared.name}:{kind}", (base,), kind

    def do_if(self, condition, then, otherwise):
        over = self.label("else" if otherwise else "end_if")
        self.condition(condition, over, False)
        self.statement(then)
        if otherwise:
            end = None
            if not self.leaves():
                end = self.label("end_if")
                self.emit("goto", extra=end)
            self.raw(f"    {over}")
            self.statement(otherwise)
            over = end
        if over:
            self.raw(f"    {over}")

    def leaves(self):
        """Whether the last instruction does not go on to the next one."""
        return not self.out[-1].raw and self.out[-1].op.startswith(("return", "throw", "goto"))

    def do_for(self, start, condition, step, body):
        head_line = self.line
        self.scopes.append({})
        for each in start:
            self.statement(each)
        head, again, end = self.label("loop"), self.label("next"), self.label("end_loop")
        self.raw(f"    {head}")
        self.line = head_line
        if condition:
            self.condition(condition, end, False)
        self.loops.append((again, end))
        self.statement(body)
        self.loops.pop()
        self.raw(f"    {again}")
        for each in step:
            self.statement(each)
        self.line = head_line
        self.emit("goto", extra=head)
        self.raw(f"    {end}")
        self.scopes.pop()

    def do_break(self):
        self.emit("goto", extra=self.loops[-1][1])

    def do_continue(self):
        self.emit("goto", extra=self.loops[-1][0])

    def do_return(self, value):
        if not value:
            self.release()
            self.emit("return-void")
            return
        source, _ = self.value(value, self.returns)
        kind = kind_of(self.returns)
        self.release()
        self.emit("return" + (f"-{kind}" if kind else ""), source.to(False))

    def release(self):
        """Leaves the monitors that a return leaves."""
        for held in reversed(self.monitors):
            self.emit("monitor-exit", held)

    def do_throw(self, value):
        self.emit("throw", self.value(value)[0])

    def do_synchronized(self, lock, body):
        held, kind = self.value(lock)
        kept = self.take(kind)
        self.emit("move", kept.to(True), held)
        self.emit("monitor-enter", kept)
        start, end, caught = self.label("locked"), self.label("unlocked"), self.label("thrown")
        after = self.label("after")
        self.raw(f"    {start}")
        self.monitors.append(kept)
        self.statement(body)
        self.monitors.pop()
        if not self.leaves():
            self.emit("monitor-exit", kept)
            self.emit("goto", extra=after)
        self.raw(f"    {end}")
        self.raw(f"    .catchall {{{start} .. {end}}} {caught}")
        thrown = self.take("Ljava/lang/Throwable;")
        self.raw(f"    {caught}")
        self.emit("move-exception", thrown.to(True))
        self.emit("monitor-exit", kept)
        self.emit("throw", thrown)
        self.raw(f"    {after}")

    def do_try(self, body, kind, name, handler):
        start, end, caught, after = (self.label(x) for x in ("try", "try_end", "catch", "after"))
        self.raw(f"    {start}")
        self.statement(body)
        leaves = self.leaves()
        self.raw(f"    {end}")
        if not leaves:
            self.emit("goto", extra=after)
        descriptor = self.program.descriptor(kind)
        self.raw(f"    .catch {descriptor} {{{start} .. {end}}} {caught}")
        self.raw(f"    {caught}")
        self.line = handler[1]
        thrown = self.take(descriptor)
        self.emit("move-exception", thrown.to(True))
        self.scopes.append({name: (thrown, descriptor)})
        self.statement(handler)
        self.scopes.pop()
        self.raw(f"    {after}")
