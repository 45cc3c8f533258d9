#!/usr/bin/env python3
"""Has every method of org.example.truth.Shares the share of the samples that it has of the work?

usage: java_shares.py SESSION
Its loops have one to four times as many iterations, in their own methods, two of which each caller calls. Prints the samples and the
largest errors as JSON; exit status 1 if a share, self or total, is off by more than a percentage point.
"""

import json
import sys
from collections import Counter

import perf_script

CLASS = "org.example.truth.Shares"
SELF = {"one": 0.1, "two": 0.2, "three": 0.3, "four": 0.4}
CALLERS = {"below": ("one", "two"), "above": ("three", "four"), "main": tuple(SELF)}
POINT = 0.01


def main():
    """Compares, prints."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    own, total, samples = Counter(), Counter(), 0
    for _, sample in perf_script.attributed(f"{sys.argv[1]}/perf.data"):
        methods = [frame.symbol.rpartition(".")[2] for frame in sample.chain if frame.symbol.rpartition(".")[0] == CLASS]
        if methods:
            samples += 1
            own[methods[0]] += 1
            total.update(set(methods))
    known = SELF | {caller: sum(SELF[callee] for callee in callees) for caller, callees in CALLERS.items()}
    of_self = {name: own[name] / samples - SELF.get(name, 0) for name in known}
    of_total = {name: total[name] / samples - share for name, share in known.items()}
    errors = {"self": max(map(abs, of_self.values())), "total": max(map(abs, of_total.values()))}
    print(json.dumps({"samples": samples, "largest_error": errors}))
    for name in known:
        if max(abs(of_self[name]), abs(of_total[name])) > POINT:
            print(f"{name}: self off by {of_self[name]:+.4f}, total by {of_total[name]:+.4f}", file=sys.stderr)
    sys.exit(max(errors.values()) > POINT)


if __name__ == "__main__":
    main()
