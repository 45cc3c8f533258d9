#!/usr/bin/env python3
"""Has every method of org.example.truth.Main.shares the share of the samples that it has of the work?

usage: shares.py TRUTH.json [--inlined] SESSION...

A sample's path is its managed frames from Main.shares to the innermost one. TRUTH.json has each method's instructions, self and total,
and thereby each path's. Prints the largest errors and the probabilities of exact equality as JSON; exit status 1 if a share is off by
more than a percentage point. --inlined: the code was compiled, and paths without a sample count with their callers, which they are
inlined into: where an inlined method calls nobody, a sample does not tell it. Improbable is not wrong: samples measure time, and a shared machine takes another time for the same
instructions, seen as up to a percentage point of a share for minutes.
"""

import json
import sys
from pathlib import Path

import perf_script
import chi_square

ROOT = "org.example.truth.Main.shares"
POINT = 0.01


def paths(truth):
    """Each path's share of the instructions; both10 is called from two places, its own share belongs to both."""
    own = {method["symbol"]: method["self_share"] for method in truth["methods"]}
    calls = {method["symbol"]: method["calls"] for method in truth["methods"]}
    found = {(ROOT,): own[ROOT]}
    queue = [(ROOT,)]
    while queue:
        path = queue.pop()
        for edge in truth["edges"]:
            if edge["caller"] == path[-1]:
                callee = (*path, edge["callee"])
                found[callee] = own[callee[-1]] * edge["calls"] / calls[callee[-1]]
                queue.append(callee)
    return found


def observed(session, known):
    """The paths of a session's samples, in order of time; whatever ran below a known method (a helper, the kernel) is its own."""
    for _, sample in perf_script.attributed(f"{session}/perf.data"):
        managed = [frame.symbol for frame in reversed(sample.chain) if frame.symbol.startswith("org.example.")]
        if ROOT in managed:
            path = tuple(managed[managed.index(ROOT) :])
            if path not in known:
                raise SystemExit(f"{session}: no such path: {' > '.join(path)}")
            yield path


def main():
    """Compares, prints."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    truth = json.loads(Path(sys.argv[1]).read_text())["shares"]
    known = paths(truth)
    sessions = [each for each in sys.argv[2:] if each != "--inlined"]
    runs = [list(observed(session, known)) for session in sessions]
    samples = sum(map(len, runs))
    # Too few instructions to be seen at all: counted with its callee that has most.
    merged = (ROOT, "org.example.truth.Shares.outer10")
    fold = {path: merged if path == (ROOT,) else path for path in known}
    if "--inlined" in sys.argv:
        seen = {path for run in runs for path in run}
        for path in known:
            inside = path
            while inside not in seen and len(inside) > 2:
                inside = inside[:-1]
            fold[path] = fold[inside]
    folded = {}
    for path, share in known.items():
        folded[fold[path]] = folded.get(fold[path], 0) + share
    total_chi_square, by_path = chi_square.fit([[fold[path] for path in run] for run in runs], folded)
    selfs = {}
    for path, share in folded.items():
        selfs[path[-1]] = selfs.get(path[-1], 0) + share
    self_chi_square, by_self = chi_square.fit([[fold[path][-1] for path in run] for run in runs], selfs)

    off = {}
    for name in dict.fromkeys(method for path in folded for method in path):
        own = sum(path[-1] == name for run in runs for path in run) / samples
        total = sum(name in path for run in runs for path in run) / samples
        known_own = sum(share for path, share in folded.items() if path[-1] == name and path[-1] != ROOT)
        known_total = sum(share for path, share in folded.items() if name in path)
        off[name] = (own - known_own, total - known_total)
    worst_self = max(abs(own) for own, _ in off.values())
    worst_total = max(abs(total) for _, total in off.values())
    print(
        json.dumps(
            {
                "runs": len(runs),
                "samples": samples,
                "paths": len(folded),
                "self": {"chi_square": self_chi_square, "p": by_self, "largest_error": worst_self},
                "total": {"chi_square": total_chi_square, "p": by_path, "largest_error": worst_total},
            }
        )
    )
    for name, (own, total) in off.items():
        if max(abs(own), abs(total)) > POINT:
            print(f"{name}: self off by {own:+.4f}, total by {total:+.4f}", file=sys.stderr)
    sys.exit(max(worst_self, worst_total) > POINT)


if __name__ == "__main__":
    main()
