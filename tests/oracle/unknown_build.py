#!/usr/bin/env python3
"""Is every sample of an ART process attributed right by an unwinder that does not know the build?

usage: unknown_build.py SESSION MAPS TRACE DEX...

The build is Debian's but for the first digits of its build-id, so what per_sample.py knows of that one is the truth here.
TRACE is ART's method trace of a run of the same program. Prints what it counted as JSON, and every wrong sample on standard error; exit status 1 if there is one.
"""

import json
import sys

import per_sample
from dexdump import Dex
from managed import Code
from maps import Maps


class UnknownBuild(per_sample.Oracle):
    """What is different where nothing but unwind information is known."""

    def __init__(self, maps, trace, code):
        super().__init__(maps, trace, code)
        # Where its handlers are is not known: the register is taken at its word.
        self.libart.handler = lambda offset: None
        self.knows_callers = False


def main():
    """Compares, prints."""
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    session, maps, trace, *dexes = sys.argv[1:]
    oracle = UnknownBuild(Maps(maps), trace, Code([Dex(path) for path in dexes]))
    wrong = per_sample.complain(per_sample.compare(session, oracle))
    print(json.dumps({**oracle.counts, "wrong": wrong}))
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
