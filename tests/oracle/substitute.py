#!/usr/bin/env python3
"""Do all tools that read ELF files say of a substitute what dexdump says of its dex file?

usage: substitute.py ELF DEX

Every row of dexdump's line tables is asked of addr2line, eu-addr2line, llvm-symbolizer and gdb: method, file and line.
readelf, objdump, eu-elflint and llvm-dwarfdump must read the whole file without a complaint. Prints what was compared as
JSON; exit status 1 and the differences on standard error if there are any.
"""

import json
import posixpath
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from dexdump import CLASS, FIELD, Dex, parameters

POSITION = re.compile(r"^        0x([0-9a-f]{4,}) line=(\d+)$")
SOURCE = re.compile(r"^  source_file_idx   : (-?\d+) \((.*)\)$")
# gdb takes long: of more rows than these it is asked some.
GDB_ROWS = 3000
# Names that a demangler would take for its own are quoted; gdb's `info symbol` alone tries Ada, Go and Objective-C, too.
# Code that methods share is named after one of them.
SHARED = re.compile(r" and (\d+) more$")
QUOTED = re.compile(r"[$.]*_+([ZRD]|GLOBAL_)|caml[A-Z]|R[A-Z]|ZN")
GUESSED = re.compile(r"go\.|_[ic]_|.*(U[0-9a-fA-F]{2}|W[0-9a-fA-F]{4})")


class Lines(Dex):
    """A dex file with its lines: `positions` of each method, and `source`."""

    def __init__(self, path):
        self.path, self.methods, self.declared, self.instructions = str(path), [], set(), {}
        # The header's SHA-1: a profile knows the file by it.
        self.build_id = Path(path).read_bytes()[12:32].hex()
        dump = subprocess.run(["dexdump", "-d", path], stdout=subprocess.PIPE, check=True).stdout
        text = dump.decode(errors="replace")
        self.parse(text)
        self.name()
        number, of_class = -1, 0
        for line in text.splitlines():
            if found := POSITION.match(line):
                self.methods[number].positions.append((int(found[1], 16), int(found[2])))
            elif (found := FIELD.match(line)) and found[1] == "type" and found[2].startswith("'("):
                number += 1
                self.methods[number].positions = []
            elif found := SOURCE.match(line):
                for method in self.methods[of_class : number + 1]:
                    method.source = found[2] if found[1] != "-1" else ""
                of_class = number + 1

    def rows(self):
        """(address, method, line) of each instruction at which a line begins; several methods may share it."""
        starts = sorted({method.start for method in self.methods if method.start})
        following = dict(zip(starts, starts[1:]))
        seen = set()
        for method in sorted(self.methods, key=lambda method: method.start):
            end = min(method.end, following.get(method.start, method.end))
            if method.start and method.start not in seen:
                seen.add(method.start)
                lines = {}
                for pc, line in method.positions:
                    # Of several lines for an instruction the first is the one.
                    lines.setdefault(method.start + 2 * pc, line)
                yield from ((at, method, line) for at, line in lines.items() if at < end and line < 1 << 31)


def run(*command, text=None):
    """What a tool prints; it must succeed and have no complaint."""
    done = subprocess.run(command, input=text and text.encode(), capture_output=True)
    errors = done.stderr.decode(errors="replace").strip()
    # Debian's gdb says so where no terminal is.
    if done.returncode or errors:
        differ(" ".join(command[:3]), f"status {done.returncode}", errors[:500])
    return done.stdout.decode(errors="replace")


differences = []


def differ(*what):
    """Remembers a difference."""
    differences.append(" | ".join(map(str, what)))


def symbols(elf, dex):
    """nm's name of each address: it must be the method's, in quotes if it looks mangled."""
    names = {}
    for line in run("nm", "-S", "--defined-only", elf).splitlines():
        at, size, _, name = line.split(" ", 3)
        names[int(at, 16)] = name
    shared = {}
    for method in dex.methods:
        if method.start:
            shared.setdefault(method.start, []).append(method)
    size = Path(dex.path).stat().st_size
    copies = {at: names.pop(at) for at in list(names) if at >= size}
    differ_copies(copies, [method for sharing in shared.values() if len(sharing) > 1 for method in sharing], size)
    for at in names.keys() ^ shared.keys():
        differ("nm", hex(at), names.get(at), shared.get(at))
    for at, name in names.items():
        plain = name[1:-1] if QUOTED.match(name[1:]) and name[0] == name[-1] == "'" else name
        # A class's methods are overloaded, too, if one of them is only referred to.
        more = SHARED.search(plain)
        plain = SHARED.sub("", plain)
        if len(shared.get(at, [])) != (int(more[1]) if more else 0) + 1:
            differ("nm", hex(at), name, shared.get(at))
        expected = {form for m in shared.get(at, []) for form in (m.symbol, m.symbol + parameters(m.descriptor))}
        if plain not in expected and not any("\N{REPLACEMENT CHARACTER}" in form for form in expected):
            differ("nm", hex(at), name, expected)
    return names


def differ_copies(copies, sharing, size):
    """Behind the dex file's end each method that shares its code has a symbol of its own, as long as the copies are no larger than the file."""
    left = list(sharing)
    for at, name in copies.items():
        plain = name[1:-1] if QUOTED.match(name[1:]) and name[0] == name[-1] == "'" else name
        method = next((each for each in left if plain in (each.symbol, each.symbol + parameters(each.descriptor))), None)
        if method is None:
            differ("nm", hex(at), name, "no method that shares its code")
        else:
            left.remove(method)
    if left and sum(method.end - method.start for method in sharing) < size:
        differ("nm", "no copies of", [method.symbol for method in left])


def answers(printed):
    """(name, file, line) from pairs of lines: name, then file:line and perhaps more."""
    lines = printed.splitlines()
    for name, place in zip(lines[::2], lines[1::2]):
        place = re.sub(r" \(discriminator \d+\)$", "", place)
        file, _, line = place.rpartition(":")
        yield name, file, int(line) if line.isdigit() else 0


def by_gdb(elf, rows):
    """gdb's (name, file, line) of each row, and what `info symbol` prints."""
    with tempfile.NamedTemporaryFile("w", suffix=".gdb") as script:
        script.writelines(f"info line *{at:#x}\ninfo symbol {at:#x}\n" for at, _, _ in rows)
        script.flush()
        printed = run("gdb", "-batch", "-nx", "-x", script.name, elf).splitlines()
    for (at, _, _), where, symbol in zip(rows, printed[::2], printed[1::2]):
        found = re.match(r'Line (\d+) of "(.*)" (?:starts at|is at) address 0x[0-9a-f]+ <(.*?)(\+\d+)?> and ends', where)
        none = re.match(r"No line number information available for address 0x[0-9a-f]+ <(.*?)(\+\d+)?>$", where)
        symbol = re.sub(r"( \+ \d+)? in section \.text$", "", symbol)
        if found:
            yield found[3], found[2], int(found[1]), symbol
        else:
            yield none and none[1], None, 0, symbol


def compare(elf, dex):
    """Asks everybody; returns what was compared."""
    names = symbols(elf, dex)
    rows = list(dex.rows())
    expected = [(names.get(method.start), line) for _, method, line in rows]
    asked = "".join(f"{at:#x}\n" for at, _, _ in rows)
    files = None
    for tool in (
        ["llvm-symbolizer-16", "--output-style=GNU", f"--obj={elf}"],
        ["addr2line", "-fie", elf],
        ["addr2line", "-Cfie", elf],
        ["eu-addr2line", "-C", "-fe", elf],
    ):
        printed = run(*tool, text=asked) if rows else ""
        if tool[0] == "eu-addr2line":
            printed = re.sub(r"(?<=:\d)(\d*):\d+$", r"\1", printed, flags=re.M)
        found = list(answers(printed))
        if len(found) != len(rows):
            differ(tool[0], f"{len(found)} answers to {len(rows)} questions")
        for (at, _, _), row, (name, _, line) in zip(rows, expected, found):
            if (name, line) != row:
                differ(tool[0], hex(at), f"dexdump {row}", f"{tool[0]} {name, line}")
        # Where the line is zero some know no file.
        theirs = [posixpath.normpath(file) if line else None for _, file, line in found]
        files = files or theirs
        if theirs != files and len(theirs) == len(files):
            differ(tool[0], "files", next(pair for pair in zip(files, theirs) if pair[0] != pair[1]))
    known = {at: file for (at, _, _), file in zip(rows, files or [])}
    some = rows[:: len(rows) // GDB_ROWS + 1]
    for (at, method, line), (name, file, theirs, symbol) in zip(some, by_gdb(elf, some)):
        wanted = names.get(method.start)
        # gdb gives an instruction without a line to the line before it.
        if name != wanted or line and (theirs, file) != (line, known[at]):
            differ("gdb", hex(at), f"dexdump {wanted, line}", f"gdb {name, file, theirs}")
        # For Ada's it takes a.b.c, and shows a.b[c].
        if symbol != wanted and not GUESSED.match(wanted) and not symbol.endswith(f"[{method.name}]"):
            differ("gdb", hex(at), f"dexdump {wanted}", f"info symbol {symbol}")
    elsewhere = sum(file is not None and file != source_path(method) for (_, method, _), file in zip(rows, files or []))
    whole(elf)
    return {"methods": len(names), "rows": len(rows), "rows_of_other_files": elsewhere, "rows_asked_of_gdb": len(some)}


def source_path(method):
    """The class's source file in the folder of its package; one that is not known is called as the class."""
    package, _, simple = method.cls.rpartition(".")
    return posixpath.join(package.replace(".", "/"), method.source or simple)


def whole(elf):
    """Those that read everything must not complain."""
    for tool in (
        ["readelf", "-aW"],
        ["readelf", "--debug-dump=line,info,aranges,abbrev"],
        ["readelf", "--debug-dump=decodedline"],
        ["objdump", "-t"],
    ):
        for line in run(*tool, elf).splitlines():
            if re.match(r"\S*(readelf|objdump): |\*\*\*", line):
                differ(*tool, line)
    for tool in (["eu-elflint", "--gnu-ld"], ["eu-elflint"]):
        if (said := run(*tool, elf).strip()) != "No errors":
            differ(*tool, said[:300])
    if "No errors." not in (said := run("llvm-dwarfdump-16", "--verify", elf)):
        differ("llvm-dwarfdump", said[-300:])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(json.dumps(compare(sys.argv[1], Lines(sys.argv[2]))))
    print("\n".join(differences[:20]), file=sys.stderr)
    sys.exit(bool(differences))
