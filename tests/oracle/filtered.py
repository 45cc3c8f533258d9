#!/usr/bin/env python3
"""Are the samples of the shadow interpreter that were recorded those whose methods were asked for, and no others?

usage: filtered.py SESSION MAPS SHADOWVM PATTERN...

SESSION has raw.data: the kernel's record of each overflow, recorded or not. Every method is a native function of its own: the kernel's callchain says
which methods a sample was in, and the innermost that a pattern names whether it was asked for. What is not known (a function without a frame of its own lacks
its caller, a chain may be cut) decides nothing. Prints what it counted as JSON, and what is wrong on standard error; exit status 1 if anything is.
"""

import json
import re
import sys
from collections import Counter

import perf_script
from maps import Maps
from shadow import CALLED_BY_LIBRARY, DEEPEST, NATIVE, Methods

CLASS = "org.example.shadow.Methods."
MANY = 20


class Patterns:
    """What is asked for."""

    def __init__(self, patterns):
        def expression(pattern):
            return re.compile(".*".join(map(re.escape, pattern.lstrip("!").split("*"))))

        self.wanted = [expression(pattern) for pattern in patterns if not pattern.startswith("!")]
        self.unwanted = [expression(pattern) for pattern in patterns if pattern.startswith("!")]

    def of(self, method):
        """True or False of a method that is named, None of others."""
        if any(each.fullmatch(CLASS + method) for each in self.unwanted):
            return False
        return True if any(each.fullmatch(CLASS + method) for each in self.wanted) else None

    def decide(self, stack):
        """Whether a stack is asked for, leaf first; None in it: any method, or more than one. None: that decides."""
        for method in stack:
            if method is None:
                return None
            if (decided := self.of(method)) is not None:
                return decided
        return not self.wanted


def stack_of(raw, methods):
    """The methods of a sample, as far as they are known."""
    user = [address for address in raw.chain if address < methods.maps.kernel]
    if not user:
        return None
    leaf = methods.at(user[0])
    stack = [leaf] if leaf else []
    if methods.lacks_frame(user[0]) or leaf in (None, CALLED_BY_LIBRARY):
        stack.append(None)
    # Return addresses: the call is before them.
    stack += [method for method in (methods.at(address - 1) for address in user[1:]) if method]
    return stack + [None] if len(raw.chain) >= DEEPEST else stack


def lacks_frames(sample):
    """Whether an attributed sample says that frames of it are missing."""
    markers = (frame.symbol for frame in sample.chain if frame.file.endswith("/remap.elf"))
    return any(symbol.startswith("[") and symbol not in NATIVE for symbol in markers)


def main():
    """Compares, prints."""
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    session = sys.argv[1]
    methods = Methods(sys.argv[3], Maps(sys.argv[2]))
    patterns = Patterns(sys.argv[4:])
    with open(f"{session}/session.json") as file:
        filtered = json.load(file)["counts"].get("filtered", {})
    recorded = dict(perf_script.attributed(f"{session}/perf.data"))
    counts = Counter({"in the recording": len(recorded)})
    wrong = 0
    for key, raw in perf_script.raw(f"{session}/raw.data", recorded):
        counts["samples"] += 1
        counts["recorded" if key in recorded else "not recorded"] += 1
        stack = stack_of(raw, methods)
        decided = patterns.decide(stack) if stack is not None else None
        counts[{True: "asked for", False: "not asked for", None: "not known"}[decided]] += 1
        if decided is None or decided == (key in recorded):
            continue
        if decided:
            counts["missing"] += 1
        elif lacks_frames(recorded[key]):
            # Where patterns only leave out, what is not known is not left out, and says that frames are missing.
            counts["recorded, frames missing"] += 1
            continue
        else:
            wrong += 1
        if wrong + counts["missing"] <= MANY:
            print(f"{key}: {'not ' if decided else ''}recorded: {stack[:12]}", file=sys.stderr)
    # Of those frames may have been missing, which is counted.
    if counts["missing"] > filtered.get("method-incomplete", 0):
        wrong += counts["missing"] - filtered.get("method-incomplete", 0)
    # Of a few overflows the kernel's record came without the shim's, or not at once, filter or not.
    counts["not paired"] = counts["not recorded"] - sum(filtered.values())
    counts["without the kernel's"] = len(recorded) - counts["recorded"]
    for unpaired in counts["not paired"], counts["without the kernel's"]:
        if abs(unpaired) * 1000 > counts["samples"]:
            print(f"{unpaired} records are only of the kernel, or of varid: {counts}, {filtered}", file=sys.stderr)
            wrong += 1
    if counts["recorded, frames missing"] * 200 > counts["samples"]:
        wrong += 1
    print(json.dumps({**counts, "filtered": filtered, "wrong": wrong}))
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
