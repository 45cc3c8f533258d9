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
        # Nor is the list of frames: a method is there when its interpreter is.
        self.libart.is_unlinked = lambda offset: False

    def calls(self, user):
        """Of a method in the switch interpreter only its first instruction is known: one of its others must be the call."""
        for callee, caller in zip(user, user[1:]):
            if not (self.code.is_managed(callee) and self.code.is_managed(caller)):
                continue
            self.counts["calls"] += 1
            wrong = self.code.wrong_call(caller, callee)
            if wrong and self.is_first(caller) and self.may_call(caller, callee):
                self.counts["calls known by method only"] += 1
            elif wrong:
                return wrong
        return None

    def method(self, frame):
        """Of a caller's frame: its method."""
        dex = self.code.dex(frame)
        return dex.instructions[frame.offset - 1][1] if dex and frame.offset - 1 in dex.instructions else None

    def is_first(self, caller):
        """Whether a caller's frame is at its method's first instruction."""
        method = self.method(caller)
        return method is not None and method.start == caller.offset - 1

    def may_call(self, caller, callee):
        """Whether any instruction of the caller's method can have called the callee."""
        method, dex = self.method(caller), self.code.dex(caller)
        for offset in dex.instructions:
            if method.start <= offset < method.end:
                at = per_sample.perf_script.Frame(offset + 1, caller.symbol, caller.file)
                if self.code.wrong_call(at, callee) is None:
                    return True
        return False


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
