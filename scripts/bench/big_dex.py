#!/usr/bin/env python3
"""What does a large app's dex file look like? Writes smali sources of its methods with lines, the same at every run.

usage: big_dex.py SMALI-FOLDER CLASSES

A hundred methods a class, in 25 packages; each method has 15 to 45 instructions, a line for every second one, and some branches; every tenth is an overload.
Of 500 classes, assembled: about 10 MB.
"""

import pathlib
import random
import sys

METHODS = 100
SEED = 20
OPS = (
    "add-int v0, v0, v1", "mul-int/lit16 v1, v0, 0x1f3", "xor-int v2, v0, v1", "const v3, 0x{:x}",
    "const-wide v4, 0x{:x}L", "shl-int/lit8 v2, v2, 0x3", "add-int/2addr v0, v2", "int-to-long v4, v0",
    "rem-int/lit16 v1, v1, 0x3e9", "move v2, v0",
)


def method(random, name, parameters, callee, line):
    """One method's text, and the line after its last."""
    text = [f".method public static {name}({parameters})I", "    .registers 8", "    const/4 v0, 0x1", "    const/4 v1, 0x2", "    const/4 v2, 0x3"]
    count = random.randrange(12, 42)
    branch = random.randrange(3, count - 3)
    for at in range(count):
        if at % 2 == 0:
            # Now and then the compiler has moved a line.
            line += random.choice((1, 1, 1, 2, 3, -2 if at else 1))
            text.append(f"    .line {line}")
        if at == branch:
            text.append("    if-eqz v1, :out")
        text.append("    " + random.choice(OPS).format(random.randrange(1 << 20, 1 << 30)))
    text += [f"    .line {line + 1}", f"    invoke-static {{v0}}, {callee}", "    move-result v0", "    :out", f"    .line {line + 2}",
             "    return v0", ".end method", ""]
    return "\n".join(text), line + 4


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, classes = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    numbers = random.Random(SEED)
    for index in range(classes):
        package = f"org/example/part{index % 25}"
        name = f"L{package}/Worker{index};"
        text = [f".class public {name}", ".super Ljava/lang/Object;", f'.source "Worker{index}.java"', ""]
        line = 20
        for number in range(METHODS):
            overload = number % 10 == 9
            called = f"compute{number - 1 if overload else number}"
            body, line = method(numbers, called, "II" if overload else "I", f"{name}->compute0(I)I", line)
            text.append(body)
        (folder / package).mkdir(parents=True, exist_ok=True)
        (folder / package / f"Worker{index}.smali").write_text("\n".join(text))


if __name__ == "__main__":
    main()
