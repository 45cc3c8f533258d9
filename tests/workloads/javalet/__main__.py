"""Which smali files do the sources of one dex become?

usage: python3 -m javalet OUTDIR SOURCE.java...
"""

import sys
from pathlib import Path

from .compile import MethodCompiler
from .program import CompileError, Program
from .syntax import Method, Parser, SyntaxError_


def with_initialisers(unit):
    """The unit's methods, and `<clinit>` where fields need it."""
    methods = list(unit.methods)
    statics = [
        f for f in unit.fields if "static" in f.flags and f.value and not ("final" in f.flags and f.value[0] in ("int", "double"))
    ]
    if statics:
        body = [("assign", f.line, "=", ("name", f.line, f.name), f.value) for f in statics]
        last = statics[-1].line
        methods.insert(0, Method("<clinit>", "void", [], ["static"], ("block", statics[0].line, body, last), last))
    return methods


def smali(program, unit):
    """One class as smali."""
    descriptor = program.names[unit.name]
    lines = [f".class {' '.join(unit.flags)} {descriptor}", f".super {program.names[unit.extends]}"]
    lines += [f'.source "{Path(unit.file).name}"']
    lines += [f".implements {program.names[each]}" for each in unit.implements]
    for each in unit.fields:
        lines += ["", f".field {' '.join(each.flags)} {each.name}:{program.descriptor(each.type)}"]
    for method in with_initialisers(unit):
        flags = method.flags + (["constructor"] if method.name[0] == "<" else [])
        lines += ["", f".method {' '.join(flags)} {program.signature(method)}"]
        if method.body:
            lines += MethodCompiler(program, unit, method).compile()
        lines.append(".end method")
    return "\n".join(lines) + "\n"


def main():
    """Writes one file per class below the folder given."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    try:
        units = [Parser(name, Path(name).read_text()).unit() for name in sys.argv[2:]]
        program = Program(units)
        for unit in units:
            path = out / unit.package.replace(".", "/") / f"{unit.name}.smali"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(smali(program, unit))
    except (SyntaxError_, CompileError) as error:
        sys.exit(f"javalet: {error}")


if __name__ == "__main__":
    main()
