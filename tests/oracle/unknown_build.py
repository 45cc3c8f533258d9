#!/usr/bin/env python3
"""Is every sample of an ART process attributed right by an unwinder that does not know the build?

usage: unknown_build.py SESSION MAPS ENTRY DEX...

The build is Debian's but for the first digits of its build-id, so what per_sample.py knows of that one is the truth here.
ENTRY is the method that native code calls: every chain of managed frames begins there, or in a thread or in the VM's own boot.
Prints what it counted as JSON, and every wrong sample on standard error; exit status 1 if there is one.
"""

import json
import sys

import per_sample
from maps import Maps


class UnknownBuild(per_sample.Oracle):
    """What is different where nothing but unwind information is known."""

    def __init__(self, maps, entry, dexes):
        super().__init__(maps, dexes)
        self.entry = entry
        # Where its handlers are is not known: the register is taken at its word.
        self.libart.handler = lambda offset: None

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
        return self.wrong_end(user)

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

    def wrong_end(self, user):
        """Where the managed frames of a whole chain begin."""
        managed = [frame for frame in user if self.code.is_managed(frame)]
        if not managed or any(per_sample.is_reason(frame) for frame in user):
            return None
        first = managed[-1].symbol
        self.counts["whole chains"] += 1
        if first == self.entry or first.endswith((".run", "<clinit>")) or first.startswith(("java.", "dalvik.")):
            return None
        return f"the chain begins in {first}"


def main():
    """Compares, prints."""
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    oracle = UnknownBuild(Maps(sys.argv[2]), sys.argv[3], sys.argv[4:])
    wrong = per_sample.complain(per_sample.compare(sys.argv[1], oracle))
    print(json.dumps({**oracle.counts, "wrong": wrong}))
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
