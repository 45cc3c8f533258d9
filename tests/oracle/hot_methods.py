#!/usr/bin/env python3
"""Are the methods that take the time of an interpreted program in its profile when its code is compiled?

usage: hot_methods.py INTERPRETED COMPILED

Both are sessions of the same program. Each method of the app that is the innermost managed frame of at least 1 % of INTERPRETED's samples
must be a frame of some sample of COMPILED, unless it calls nothing: of a method that is inlined, a sample says nothing where it has
called nobody. Prints what was compared as JSON; exit status 1 if a method is missing.
"""

import json
import sys
from collections import Counter

import perf_script

HOT = 0.01
APP = "org.example."


def managed(sample):
    """The app's frames of a sample, innermost first."""
    return [frame.symbol for frame in sample.chain if frame.symbol.startswith(APP) and "/symbols/" in frame.file]


def main():
    """Compares, prints."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    chains = [[managed(sample) for _, sample in perf_script.attributed(f"{session}/perf.data")] for session in sys.argv[1:]]
    interpreted, compiled = ([chain for chain in each if chain] for each in chains)
    leaves = Counter(chain[0] for chain in interpreted)
    callers = {frame for chain in interpreted for frame in chain[1:]}
    hot = {method for method, count in leaves.items() if count >= HOT * len(interpreted)}
    seen = Counter(frame for chain in compiled for frame in set(chain))
    missing = hot - set(seen)
    inlined = missing - callers
    for method in sorted(missing - inlined):
        print(f"missing: {method} ({leaves[method] / len(interpreted):.1%} when it is interpreted)", file=sys.stderr)
    print(
        json.dumps(
            {
                "interpreted": len(interpreted),
                "compiled": len(compiled),
                "hot": len(hot),
                "found": len(hot - missing),
                "leaves that are inlined": len(inlined),
                "wrong": len(missing - inlined),
            }
        )
    )
    for method in sorted(inlined):
        print(f"inlined: {method}", file=sys.stderr)
    sys.exit(missing != inlined)


if __name__ == "__main__":
    main()
