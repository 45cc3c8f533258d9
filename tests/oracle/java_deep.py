#!/usr/bin/env python3
"""Has every sample of a deep recursion all of its callers?

usage: java_deep.py SESSION CLASS DEPTH
Below the work of the class, such as org.example.truth.Deep, are DEPTH calls, main, and the functions that have started the VM. On the way there are fewer calls, and the rest is
the same. Prints how many samples there are, how many are not whole, and why; exit status 1 if one has a wrong number of calls, or if more
than three in a hundred are not whole.
"""

import json
import sys
from collections import Counter

import perf_script
from beginnings import is_beginning
from sample_marks import approximate

MOST = 0.03  # where a frame is being made or left, in a stub; before the shim has been told of the VM, which takes longer on a busy machine


def problem(chain, of, depth, is_approximate):
    """Why a stack is not whole, or None. The innermost method may be one that is inlined behind the instruction if it is approximate."""
    symbols = [frame.symbol for frame in chain]
    calls = symbols.count(f"{of}.down")
    if symbols.count(f"{of}.main") != 1:
        return f"ends in {symbols[-1]}"
    if f"{of}.work" in symbols and calls != depth and not is_approximate:
        return "WRONG number of calls"
    return None if is_beginning(chain[-1], False) else f"begins in {symbols[-1]}"


def main():
    """Counts, prints."""
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    of, depth = sys.argv[2], int(sys.argv[3])
    counts, problems = Counter(), Counter()
    inexact = set(approximate(f"{sys.argv[1]}/perf.data"))
    for key, sample in perf_script.attributed(f"{sys.argv[1]}/perf.data"):
        symbols = {frame.symbol for frame in sample.chain}
        if not symbols & {f"{of}.down", f"{of}.work"}:
            continue
        counts["samples"] += 1
        counts["at work"] += f"{of}.work" in symbols
        found = problem(sample.chain, of, depth, key in inexact)
        if found:
            counts["not whole"] += 1
            problems[found] += 1
    print(json.dumps(dict(counts) | {"problems": dict(problems.most_common(10))}))
    is_wrong = any(found.startswith("WRONG") for found in problems)
    sys.exit(is_wrong or counts["not whole"] > MOST * counts["samples"])


if __name__ == "__main__":
    main()
