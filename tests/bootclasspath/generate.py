#!/usr/bin/env python3
"""Which classes does libart find on the boot class path of the tests? Writes them as smali.

usage: generate.py DEMANDS OUTDIR

Two sources are merged, class by class:

* DEMANDS, boot-class-path-RELEASE.tsv: what that release of the runtime demands (classes, fields, methods, vtable padding);
* overlay/**/*.smali: members with real bodies, and members that only programs want. A file there is a
  fragment: `.method` and `.field` blocks that replace the demanded member of the same signature or are added,
  and, for classes that the runtime does not know, the class directives as well.

A demanded method without a body in the overlay throws UnsupportedOperationException naming itself: a
program that leans on something that is not there is told so. Where a class is padded (libart checks the
size of some vtables exactly), each virtual method that the overlay adds takes the place of one dummy.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
PADDING = re.compile(r"zzPad\d+$")
METHOD = re.compile(r"\.method\s+(?P<flags>.*?)(?P<name>\S+?)(?P<signature>\([^)]*\)\S+)\s*$")
FIELD = re.compile(r"\.field\s+(?P<flags>.*?)(?P<name>\S+?):(?P<type>\S+?)(\s*=.*)?$")
OBJECT = "java/lang/Object"
UNSUPPORTED = "Ljava/lang/UnsupportedOperationException;"


@dataclass
class Class:
    """One class: directives and members, each member as its smali text, keyed by signature."""

    name: str
    header: list = field(default_factory=list)
    fields: dict = field(default_factory=dict)
    methods: dict = field(default_factory=dict)
    super_name: str = OBJECT
    interface: bool = False

    def smali(self):
        """The class as smali."""
        parts = self.header + [""] + list(self.fields.values()) + [""] + list(self.methods.values())
        return "\n".join(parts) + "\n"


def registers(signature, static):
    """Number of argument registers of a method."""
    count = 0 if static else 1
    for part in re.findall(r"\[*(?:L[^;]+;|[ZBSCIJFD])", signature[1 : signature.index(")")]):
        count += 2 if part in "JD" else 1
    return count


def method_flags(kind, class_name, name, interface):
    """Access flags of a demanded method; kind is the table's: static, virtual, direct, clinit, native."""
    words = kind.split()
    flags = []
    if "clinit" in words:
        flags = ["static", "constructor"]
    elif name == "<init>":
        flags = ["public", "constructor"]
    elif "direct" in words:
        flags = ["private"]
    elif "static" in words:
        flags = ["public", "static"]
    else:
        flags = ["public"]
        # The polymorphic methods are native and take an array of arguments.
        if class_name in ("java/lang/invoke/MethodHandle", "java/lang/invoke/VarHandle") and "native" in words:
            flags += ["final", "varargs"]
    if interface:
        flags.append("abstract")
    if "native" in words:
        flags.append("native")
    return flags


def demanded_method(cls, kind, name, signature, note):
    """A demanded method as smali."""
    flags = method_flags(kind, cls.name, name, cls.interface)
    lines = [f".method {' '.join(flags)} {name}{signature}"]
    for annotation in ("FastNative", "CriticalNative"):
        if annotation in note:
            lines.append(f"    .annotation build Ldalvik/annotation/optimization/{annotation};")
            lines.append("    .end annotation")
    if "native" not in flags and "abstract" not in flags:
        arguments = registers(signature, "static" in flags)
        lines += [f"    {line}" for line in body(cls, name, signature, arguments, "throws" in note)]
    lines.append(".end method")
    return "\n".join(lines)


def body(cls, name, signature, arguments, throws):
    """The instructions of a demanded method that the overlay does not have; throws: whatever it is, it throws."""
    if PADDING.match(name):
        return [".locals 0", "return-void"]
    if name == "<clinit>" and not throws:
        return [".locals 0", "return-void"]
    if name == "<init>" and is_throwable(cls.name):
        # A throwable passes its arguments on; Throwable itself is in the overlay.
        last = f"p0 .. p{arguments - 1}"
        return [".locals 0", f"invoke-direct/range {{{last}}}, L{cls.super_name};-><init>{signature}", "return-void"]
    if name == "<init>" and signature == "()V" and cls.name != "java/lang/String":
        if cls.super_name == "-":
            return [".locals 0", "return-void"]
        return [".locals 0", f"invoke-direct {{p0}}, L{cls.super_name};-><init>()V", "return-void"]
    message = f"{cls.name.replace('/', '.')}.{name}"
    return [
        ".locals 2",
        f"new-instance v0, {UNSUPPORTED}",
        f'const-string v1, "{message} is not part of this boot class path"',
        f"invoke-direct {{v0, v1}}, {UNSUPPORTED}-><init>(Ljava/lang/String;)V",
        "throw v0",
    ]


def is_throwable(name):
    """Whether a class of the table is one of its exceptions."""
    return name.endswith(("Exception", "Error"))


def read_demands(path):
    """The classes of a table of demands by name."""
    classes = {}
    current = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        columns = line.split("\t") + [""] * 5
        if columns[0] == "C":
            _, name, super_name, flags, interfaces = columns[:5]
            current = Class(name, super_name=super_name, interface="interface" in flags.split())
            current.header = [f".class {flags} L{name};"]
            if super_name != "-":
                current.header.append(f".super L{super_name};")
            current.header += [f".implements L{each};" for each in interfaces.split(",") if each]
            classes[name] = current
        elif columns[0] == "F" and current:
            _, flags, name, kind = columns[:4]
            current.fields[f"{name}:{kind}"] = f".field {flags} {name}:{kind}"
        elif columns[0] == "M" and current:
            _, kind, name, signature, note = columns[:5]
            current.methods[name + signature] = demanded_method(current, kind, name, signature, note)
        else:
            sys.exit(f"{path}:{number}: neither a class, nor a member of one: {line!r}")
    return classes


def blocks(text):
    """The top-level pieces of a smali fragment: ('method' | 'field' | 'other', text)."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(".method"):
            piece = [line]
            for line in lines:
                piece.append(line)
                if line.startswith(".end method"):
                    break
            yield "method", "\n".join(piece)
        elif line.startswith(".field"):
            yield "field", line
        elif line.strip() and not line.startswith("#"):
            yield "other", line


def is_virtual(method):
    """Whether a method's smali declares an entry of the vtable."""
    flags = METHOD.match(method.splitlines()[0])["flags"].split()
    return not {"static", "private", "constructor"} & set(flags)


def apply_overlay(classes, root, demands):
    """Merges the fragments below root into the classes."""
    for path in sorted(root.rglob("*.smali")):
        name = str(path.relative_to(root).with_suffix(""))
        known = name in classes
        cls = classes.setdefault(name, Class(name))
        for kind, text in blocks(path.read_text()):
            if kind == "method":
                match = METHOD.match(text.splitlines()[0])
                if not match:
                    sys.exit(f"{path}: no method: {text.splitlines()[0]}")
                key = match["name"] + match["signature"]
                overrides = name != OBJECT and key in classes[OBJECT].methods
                if key not in cls.methods and is_virtual(text) and not overrides:
                    give_up_padding(cls)
                cls.methods[key] = text
            elif kind == "field":
                match = FIELD.match(text)
                if not match:
                    sys.exit(f"{path}: no field: {text}")
                cls.fields[f"{match['name']}:{match['type']}"] = text
            elif known:
                sys.exit(f"{path}: the class's directives come from {demands}: {text}")
            else:
                cls.header.append(text)


def give_up_padding(cls):
    """Drops one dummy of a padded class, to keep the size of its vtable."""
    padding = [key for key in cls.methods if PADDING.match(key.split("(")[0])]
    if padding:
        del cls.methods[padding[-1]]


def main():
    """Writes every class below the folder given."""
    if len(sys.argv) != 3:
        sys.exit("usage: generate.py DEMANDS OUTDIR")
    demands, out = Path(sys.argv[1]), Path(sys.argv[2])
    classes = read_demands(demands)
    apply_overlay(classes, HERE / "overlay", demands)
    for cls in classes.values():
        path = out / f"{cls.name}.smali"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(cls.smali())
    methods = sum(len(cls.methods) for cls in classes.values())
    print(f"{len(classes)} classes, {methods} methods")


if __name__ == "__main__":
    main()
