#!/usr/bin/env python3
"""Has every method of org.example.truth.Main.shares the share of the samples that it has of the work?

usage: shares.py TRUTH.json SESSION...

A sample's path is its managed frames from Main.shares to the innermost one. TRUTH.json has each method's instructions, self and total,
and thereby each path's. A machine does not take the same time for each instruction: the cost of a method's may differ by COST from
the mean, and more than DEVIATIONS standard deviations of the rest are no chance: 14 shares exceed them once in 10 million runs.
Prints the largest errors and probabilities of no difference at all as JSON; exit status 1 if a share is off by more.
"""

import json
import math
import statistics
import sys
from pathlib import Path

import perf_script
import chi_square

ROOT = "org.example.truth.Main.shares"
# On virtual machines that share a processor, costs of the same code were seen to be 2 % off for minutes.
COST = 0.02
DEVIATIONS = 6
# Of a method that hardly has samples of its own: as many are allowed.
RARE = 100


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


def deviation(runs, share, block=100):
    """The standard deviation of a share, from its variance between blocks of successive samples; never below that of independent ones."""
    shares = [sum(run[at : at + block]) / block for run in runs for at in range(0, len(run) - block + 1, block)]
    variance = max(statistics.pvariance(shares), share * (1 - share) / block)
    return math.sqrt(variance / len(shares))


def main():
    """Compares, prints."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    truth = json.loads(Path(sys.argv[1]).read_text())["shares"]
    known = paths(truth)
    runs = [list(observed(session, known)) for session in sys.argv[2:]]
    samples = sum(map(len, runs))
    # Too few instructions to be seen at all: counted with its callee that has most.
    merged = (ROOT, "org.example.truth.Shares.outer10")
    fold = {path: merged if path == (ROOT,) else path for path in known}
    folded = {}
    for path, share in known.items():
        folded[fold[path]] = folded.get(fold[path], 0) + share
    total_chi_square, by_path = chi_square.fit([[fold[path] for path in run] for run in runs], folded)
    selfs = {}
    for path, share in folded.items():
        selfs[path[-1]] = selfs.get(path[-1], 0) + share
    self_chi_square, by_self = chi_square.fit([[fold[path][-1] for path in run] for run in runs], selfs)

    off = []
    for method in truth["methods"]:
        name = method["symbol"]
        for kind, share, counts in (
            ("self", method["self_share"], [[path[-1] == name for path in run] for run in runs]),
            ("total", method["total_share"], [[name in path for path in run] for run in runs]),
        ):
            error = sum(map(sum, counts)) / samples - share
            # Of two parts whose costs are COST off in opposite directions.
            allowed = max(2 * COST * share * (1 - share) + DEVIATIONS * deviation(counts, share), RARE / samples)
            off.append((abs(error) > allowed, kind, name, error, allowed))
    worst_self = max(abs(error) for _, kind, _, error, _ in off if kind == "self")
    worst_total = max(abs(error) for _, kind, _, error, _ in off if kind == "total")
    print(
        json.dumps(
            {
                "runs": len(runs),
                "samples": samples,
                "self": {"chi_square": self_chi_square, "p": by_self, "largest_error": worst_self},
                "total": {"chi_square": total_chi_square, "p": by_path, "largest_error": worst_total},
            }
        )
    )
    wrong = [row for row in off if row[0]]
    for _, kind, name, error, allowed in wrong:
        print(f"{name}: {kind} off by {error:+.4f}, more than {allowed:.4f}", file=sys.stderr)
    sys.exit(bool(wrong))



if __name__ == "__main__":
    main()
