#!/usr/bin/env python3
"""Which result must a workload have?

usage: expected.py                           every workload for 1 and 3 rounds, as lines of PACKAGE METHOD N RESULT
       expected.py PACKAGE METHOD N          one result, e.g. expected.py math fft 20
       expected.py golden [PACKAGE METHOD N] writes golden.txt anew, with one run more if it is named: results that tests compare with
                                             without computing them
       expected.py verify                    computes those of golden.txt again; exit status 1 if one differs

METHOD is a static long METHOD(int) of org.example.PACKAGE.Main.
"""

import importlib
import sys
from pathlib import Path

sys.dont_write_bytecode = True
GOLDEN = Path(__file__).with_name("golden.txt")
PACKAGES = ("math", "truth", "cradle", "vm", "scene", "jit", "odd", "waits", "corner", "faults", "alike")


def methods(package):
    """The methods of a package's Main by name."""
    return importlib.import_module(f"model.{package}").METHODS


def result(package, method, rounds):
    """What a run returns."""
    return str(methods(package)[method](int(rounds)))


def runs():
    """The runs of golden.txt with their results."""
    lines = GOLDEN.read_text().splitlines() if GOLDEN.exists() else []
    return {tuple(run): value for *run, value in map(str.split, lines)}


def write(run):
    """Writes golden.txt anew."""
    wanted = sorted({*runs(), *([run] if run else [])}, key=lambda each: (each[0], each[1], int(each[2])))
    GOLDEN.write_text("".join(f"{' '.join(each)} {result(*each)}\n" for each in wanted))


def verify():
    """Computes golden.txt's results again; the exit status."""
    wrong = [run for run, value in runs().items() if result(*run) != value]
    for run in wrong:
        print(f"golden.txt: {' '.join(run)} is {runs()[run]}, the model says {result(*run)}", file=sys.stderr)
    print(f"{len(runs())} results, {len(wrong)} wrong")
    return int(bool(wrong) or not runs())


def main():
    """Prints what is asked for."""
    is_run = len(sys.argv) >= 4 and sys.argv[-3] in PACKAGES and sys.argv[-2] in methods(sys.argv[-3])
    if len(sys.argv) == 1:
        for package in PACKAGES:
            for name in methods(package):
                for rounds in (1, 3):
                    print(package, name, rounds, result(package, name, rounds))
    elif sys.argv[1:] == ["verify"]:
        sys.exit(verify())
    elif sys.argv[1] == "golden" and (is_run if len(sys.argv) == 5 else len(sys.argv) == 2):
        write(tuple(sys.argv[2:]))
    elif len(sys.argv) == 4 and is_run:
        print(result(*sys.argv[1:]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
