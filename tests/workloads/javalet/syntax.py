"""What does a source file of the workloads say? Tokens and a tree.

The subset of Java: classes and interfaces without generics, inner classes, initialiser blocks or `switch`;
static and instance members; int, long, double, boolean, byte and char, arrays, references; assignments and `++` only
as statements, so that an expression without a call has no side effects.

The tree is made of tuples `(kind, line, ...)`; the classes below hold the declarations.
"""

import re
from dataclasses import dataclass, field

TOKENS = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<double>\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
    |(?P<int>0[xX][0-9a-fA-F]+[lL]?|\d+[lL]?)
    |(?P<string>"[^"\n]*")
    |(?P<name>[^\W\d][\w$]*)
    |(?P<op>>>>=|<<=|>>=|>>>|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[-+*/%&|^!~<>=?:;,.(){}\[\]@])""",
    re.X | re.S,
)
PRIMITIVES = {"int": "I", "long": "J", "double": "D", "boolean": "Z", "byte": "B", "char": "C", "void": "V"}
MODIFIERS = {"public", "private", "protected", "static", "final", "abstract", "native", "volatile"}
PRECEDENCE = [
    ["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", ">", "<=", ">=", "instanceof"],
    ["<<", ">>", ">>>"], ["+", "-"], ["*", "/", "%"],
]  # fmt: skip
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", ">>>="}


@dataclass
class Field:
    """A field; `type` is a source type such as `double[]`, `value` the initialiser's tree or None."""

    name: str
    type: str
    flags: list
    value: tuple
    line: int


@dataclass
class Method:
    """A method or constructor (`<init>`); `body` is None where it is native or abstract."""

    name: str
    returns: str
    parameters: list  # of (type, name)
    flags: list
    body: tuple
    line: int


@dataclass
class Unit:
    """The one class of a source file."""

    file: str
    package: str
    name: str
    flags: list
    extends: str = "Object"
    implements: list = field(default_factory=list)
    fields: list = field(default_factory=list)
    methods: list = field(default_factory=list)

    @property
    def interface(self):
        """Whether this is an interface."""
        return "interface" in self.flags


class SyntaxError_(Exception):
    """Something outside the subset; names file and line."""


class Parser:
    """Recursive descent over one file."""

    def __init__(self, file, text):
        self.file, self.tokens, self.at = file, [], 0
        line, position = 1, 0
        while position < len(text):
            match = TOKENS.match(text, position)
            if not match:
                raise SyntaxError_(f"{file}:{line}: unexpected {text[position]!r}")
            if match.lastgroup != "space":
                self.tokens.append((match.lastgroup, match.group(), line))
            line += match.group().count("\n")
            position = match.end()
        self.tokens.append(("end", "", line))

    @property
    def text(self):
        return self.tokens[self.at][1]

    @property
    def line(self):
        return self.tokens[self.at][2]

    def fail(self, wanted):
        raise SyntaxError_(f"{self.file}:{self.line}: {wanted} expected, not {self.text!r}")

    def accept(self, *texts):
        """The next token's text if it is one of these, else None."""
        if self.text in texts and self.tokens[self.at][0] in ("op", "name"):
            self.at += 1
            return self.tokens[self.at - 1][1]
        return None

    def expect(self, text):
        return self.accept(text) or self.fail(repr(text))

    def name(self):
        if self.tokens[self.at][0] != "name":
            self.fail("a name")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def dotted(self):
        name = self.name()
        while self.accept("."):
            name += "." + self.name()
        return name

    def type(self):
        """A source type, dimensions included."""
        name = self.dotted()
        while self.text == "[" and self.tokens[self.at + 1][1] == "]":
            self.at += 2
            name += "[]"
        return name

    def modifiers(self):
        flags = []
        while True:
            if self.accept("@"):
                self.dotted()
            elif self.text in MODIFIERS:
                flags.append(self.name())
            else:
                return flags

    # Declarations

    def unit(self):
        self.expect("package")
        package = self.dotted()
        self.expect(";")
        flags = self.modifiers()
        kind = self.accept("class", "interface") or self.fail("class or interface")
        if kind == "interface":
            flags += ["interface", "abstract"]
        unit = Unit(self.file, package, self.name(), flags)
        if self.accept("extends"):
            unit.extends = self.type()
        while self.accept("implements", ","):
            unit.implements.append(self.type())
        self.expect("{")
        while not self.accept("}"):
            self.member(unit)
        return unit

    def member(self, unit):
        flags, line = self.modifiers(), self.line
        if unit.interface:
            flags = ["public", "abstract"]
        if self.text == unit.name and self.tokens[self.at + 1][1] == "(":
            self.name()
            returns, name = "void", "<init>"
        else:
            returns, name = self.type(), self.name()
        if not self.accept("("):
            value = self.expression() if self.accept("=") else None
            self.expect(";")
            unit.fields.append(Field(name, returns, flags, value, line))
            return
        parameters = []
        while not self.accept(")"):
            self.accept(",")
            self.accept("final")
            parameters.append((self.type(), self.name()))
        body = None if self.accept(";") else self.block()
        unit.methods.append(Method(name, returns, parameters, flags, body, line))

    # Statements

    def block(self):
        line = self.line
        self.expect("{")
        statements = []
        while self.text != "}":
            statements.append(self.statement())
        end = self.line
        self.expect("}")
        return ("block", line, statements, end)

    def statement(self):
        line = self.line
        if self.text == "{":
            return self.block()
        if self.accept(";"):
            return ("block", line, [], line)
        if self.accept("if"):
            condition, then = self.parenthesised(), self.statement()
            return ("if", line, condition, then, self.statement() if self.accept("else") else None)
        if self.accept("while"):
            return ("for", line, [], self.parenthesised(), [], self.statement())
        if self.accept("for"):
            self.expect("(")
            start = [] if self.text == ";" else self.simple_list()
            self.expect(";")
            condition = None if self.text == ";" else self.expression()
            self.expect(";")
            step = [] if self.text == ")" else self.simple_list()
            self.expect(")")
            return ("for", line, start, condition, step, self.statement())
        if self.accept("return"):
            value = None if self.text == ";" else self.expression()
            self.expect(";")
            return ("return", line, value)
        if self.accept("throw"):
            value = self.expression()
            self.expect(";")
            return ("throw", line, value)
        if self.text in ("break", "continue"):
            kind = self.name()
            self.expect(";")
            return (kind, line)
        if self.accept("synchronized"):
            return ("synchronized", line, self.parenthesised(), self.block())
        if self.accept("try"):
            body = self.block()
            self.expect("catch")
            self.expect("(")
            kind, name = self.type(), self.name()
            self.expect(")")
            return ("try", line, body, kind, name, self.block())
        statement = self.simple()
        self.expect(";")
        return statement

    def parenthesised(self):
        self.expect("(")
        value = self.expression()
        self.expect(")")
        return value

    def simple_list(self):
        statements = [self.simple()]
        while self.accept(","):
            statements.append(self.simple())
        return statements

    def is_declaration(self):
        """Whether a type and a name follow."""
        start = self.at
        try:
            self.type()
            return self.tokens[self.at][0] == "name" and self.text != "instanceof"
        except SyntaxError_:
            return False
        finally:
            self.at = start

    def simple(self):
        line = self.line
        self.accept("final")
        if self.tokens[self.at][0] == "name" and self.is_declaration():
            kind, name = self.type(), self.name()
            return ("local", line, kind, name, self.expression() if self.accept("=") else None)
        prefix = self.accept("++", "--")
        target = self.unary()
        suffix = prefix or self.accept("++", "--")
        if suffix:
            return ("assign", line, suffix[0] + "=", target, ("int", line, 1, "I"))
        if self.text in ASSIGNMENTS:
            op = self.text
            self.at += 1
            return ("assign", line, op, target, self.expression())
        if target[0] not in ("call", "new"):
            self.fail("a statement")
        return ("expression", line, target)

    # Expressions

    def expression(self):
        condition = self.binary(0)
        if not self.accept("?"):
            return condition
        line = self.line
        then = self.expression()
        self.expect(":")
        return ("choose", line, condition, then, self.expression())

    def binary(self, level):
        if level == len(PRECEDENCE):
            return self.unary()
        left = self.binary(level + 1)
        while True:
            line, op = self.line, self.accept(*PRECEDENCE[level])
            if not op:
                return left
            if op == "instanceof":
                left = ("instanceof", line, left, self.type())
            else:
                left = ("binary", line, op, left, self.binary(level + 1))

    def unary(self):
        line, op = self.line, self.accept("-", "!", "~", "+")
        if op:
            operand = self.unary()
            if op == "-" and operand[0] in ("int", "double"):
                return (operand[0], line, -operand[2], operand[3])
            return operand if op == "+" else ("unary", line, op, operand)
        if self.text == "(" and self.is_cast():
            self.expect("(")
            kind = self.type()
            self.expect(")")
            return ("cast", line, kind, self.unary())
        return self.postfix(self.primary())

    def is_cast(self):
        start = self.at
        try:
            self.expect("(")
            name = self.type()
            if not self.accept(")"):
                return False
            kind, text, _ = self.tokens[self.at]
            return name.rstrip("[]") in PRIMITIVES or kind in ("name", "string") or text == "("
        except SyntaxError_:
            return False
        finally:
            self.at = start

    def primary(self):
        kind, text, line = self.tokens[self.at]
        if kind == "op":
            return self.parenthesised()
        self.at += 1
        if kind == "int":
            wide = text[-1] in "lL"
            return ("int", line, int(text.rstrip("lL"), 0), "J" if wide else "I")
        if kind == "double":
            return ("double", line, float(text), "D")
        if kind == "string":
            return ("string", line, text)
        if text in ("true", "false"):
            return ("int", line, int(text == "true"), "Z")
        if text == "null":
            return ("null", line)
        if text == "new":
            return self.creation(line)
        if self.text == "(":
            return ("call", line, None, text, self.arguments())
        return ("name", line, text)

    def creation(self, line):
        name = self.dotted()
        if self.text == "(":
            return ("new", line, name, self.arguments())
        self.expect("[")
        length = self.expression()
        self.expect("]")
        element = name
        while self.accept("["):
            self.expect("]")
            element += "[]"
        return ("array", line, element, length)

    def arguments(self):
        self.expect("(")
        values = []
        while not self.accept(")"):
            self.accept(",")
            values.append(self.expression())
        return values

    def postfix(self, value):
        while True:
            line = self.line
            if self.accept("["):
                value = ("index", line, value, self.expression())
                self.expect("]")
            elif self.accept("."):
                name = self.name()
                if self.text == "(":
                    value = ("call", line, value, name, self.arguments())
                else:
                    value = ("field", line, value, name)
            else:
                return value
