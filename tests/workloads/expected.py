#!/usr/bin/env python3
"""Which result must a workload have?

usage: expected.py                           every workload for 1 and 3 rounds, as lines of PACKAGE METHOD N RESULT
       expected.py PACKAGE METHOD N          one result, e.g. expected.py math fft 20

METHOD is a static long METHOD(int) of org.example.PACKAGE.Main.
"""

import importlib
import sys

sys.dont_write_bytecode = True
PACKAGES = ("math", "truth", "cradle", "vm", "scene", "odd")


def methods(package):
    """The methods of a package's Main by name."""
    return importlib.import_module(f"model.{package}").METHODS


def main():
    """Prints what is asked for."""
    if len(sys.argv) == 1:
        for package in PACKAGES:
            for name, result in methods(package).items():
                for rounds in (1, 3):
                    print(package, name, rounds, result(rounds))
    elif len(sys.argv) == 4 and sys.argv[1] in PACKAGES and sys.argv[2] in methods(sys.argv[1]):
        print(methods(sys.argv[1])[sys.argv[2]](int(sys.argv[3])))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
