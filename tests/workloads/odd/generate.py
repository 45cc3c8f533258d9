#!/usr/bin/env python3
"""Which odd methods are too long to write down? A name of 600 characters, a body of 40,000 code units, two
equal bodies (which finish.py makes one).

usage: generate.py OUT.smali
"""

import sys
from pathlib import Path

LONG_NAME = ("aVeryLongNameAsObfuscatorsAndTestFrameworksWriteThem" * 12)[:600]
ADDITIONS = 20000  # of two code units each


def method(name, instructions, line):
    """A static int method of the given instructions."""
    return [f".method public static {name}()I", "    .registers 2", f"    .line {line}", *instructions, ".end method", ""]


def main():
    """Writes the class Generated."""
    if len(sys.argv) != 2:
        sys.exit("usage: generate.py OUT.smali")
    names = [LONG_NAME, "huge", "twin", "otherTwin"]
    lines = [".class public Lorg/example/odd/Generated;", ".super Ljava/lang/Object;", '.source "Generated.java"', ""]
    calls = ["    const/4 v0, 0x0"]
    for name in names:
        calls += [f"    invoke-static {{}}, Lorg/example/odd/Generated;->{name}()I", "    move-result v1", "    add-int/2addr v0, v1"]
    lines += method("all", calls + ["    return v0"], 1)
    lines += method(LONG_NAME, ["    const/16 v0, 0x3", "    return v0"], 10)
    body = ["    const/4 v0, 0x0"]
    for number in range(ADDITIONS):
        if number % 8 == 0:
            body.append(f"    .line {100 + number // 8}")
        body.append("    add-int/lit8 v0, v0, 0x1")
    lines += method("huge", body + ["    return v0"], 99)
    for name in ("twin", "otherTwin"):
        lines += method(name, ["    const/16 v0, 0x7", "    return v0"], 20)
    Path(sys.argv[1]).write_text("\n".join(lines))


if __name__ == "__main__":
    main()
