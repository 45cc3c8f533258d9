#!/usr/bin/env python3
"""Is the profile's call graph the one that the VM traced?

usage: callgraph.py TRACE ROUNDS ROOT SESSION [REPORT.json | --compiled]

TRACE is ART's method trace of a program, SESSION a profile of the same program, over many more rounds, with whole stacks. Of both, what ran
below the method ROOT counts. Every edge of a sample, two managed frames with nothing but native ones between, must be in the trace; every edge
that is on the stack for at least 1 % of the trace's time must be in a sample, if it was called as often as the trace has ROUNDS: what is called
once, to set up, takes more of a short run than of a long one. REPORT.json is what `varid report --callgraph --format json` prints of SESSION:
the same must hold of its edges, which are those without native frames between. --compiled: SESSION's code was compiled, and a method that
calls nothing may be inlined: where it has called nobody, a sample does not tell it. Prints what was compared as JSON; exit status 1 if something differs.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

import method_trace
import perf_script

SEEN = 0.01
MORE = re.compile(r" and \d+ more$")
APP = "org.example."


def plain(symbol):
    """A method's name without its parameters: the trace's overloads are one. None: of several methods, which have their bytecode in common
    in a compact dex file."""
    return None if MORE.search(symbol) else symbol.split("(")[0]


def stretches(chain):
    """The managed frames of a callchain, innermost first; apart where a reason says that something is missing."""
    stretch = []
    for frame in chain:
        remapped = frame.file.endswith("/remap.elf")
        if remapped and frame.symbol.startswith("[") and frame.symbol != "[native]":
            yield stretch
            stretch = []
        elif "/symbols/" in frame.file and not frame.symbol.startswith("["):
            stretch.append(plain(frame.symbol))
    yield stretch


def direct(chain):
    """The edges of a callchain that have no native frame between."""
    managed = [plain(frame.symbol) if "/symbols/" in frame.file else None for frame in chain]
    return {(caller, callee) for callee, caller in zip(managed, managed[1:]) if callee and caller}


def sampled(session, root):
    """Samples of each edge; the edges without native frames; samples with the root; the longest run of one recursive method."""
    edges, adjacent, longest, samples = Counter(), set(), 0, 0
    for _, sample in perf_script.attributed(f"{session}/perf.data"):
        found = set()
        for stretch in stretches(sample.chain):
            if root in stretch:
                samples += 1
                stretch = stretch[: stretch.index(root) + 1]
            elif not any(name and name.startswith(APP) for name in stretch):
                continue
            found.update(edge for edge in zip(stretch[1:], stretch) if all(edge))
            run = 1
            for callee, caller in zip(stretch, stretch[1:]):
                run = run + 1 if callee and callee == caller else 1
                longest = max(longest, run)
        edges.update(found)
        adjacent |= direct(sample.chain)
    return edges, adjacent, samples, longest


def reported(path):
    """The edges of a report's call graph."""
    graph = json.loads(Path(path).read_text())
    found = set()
    for entry in graph["rows"]:
        for caller in entry["callers"]:
            found.add((plain(caller["symbol"]), plain(entry["symbol"])))
        for callee in entry["callees"]:
            found.add((plain(entry["symbol"]), plain(callee["symbol"])))
    return {edge for edge in found if all(name.startswith(APP) for name in edge)}


def main():
    """Compares, prints."""
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    trace, rounds, root, session = sys.argv[1:5]
    traced, calls = method_trace.edges(trace)
    whole = sum(time for (caller, callee), time in traced.items() if callee == root) or max(
        time for (caller, _), time in traced.items() if caller == root
    )
    edges, adjacent, samples, longest = sampled(session, root)
    wanted = {
        edge
        for edge, time in traced.items()
        if time >= SEEN * whole and calls[edge] >= int(rounds) and all(name.startswith(APP) for name in edge)
    }
    graphs = [("sample", set(edges), wanted)]
    compiled = sys.argv[5:] == ["--compiled"]
    inlined = set()
    if compiled:
        shown, callers = {name for edge in edges for name in edge}, {caller for caller, _ in traced}
        inlined = {edge for edge in wanted - set(edges) if edge[0] in shown and edge[1] not in callers}
        graphs = [("sample", set(edges), wanted - inlined)]
    elif len(sys.argv) == 6:
        graphs.append(("report", reported(sys.argv[5]), wanted & adjacent))
    wrong = 0
    for where, found, must in graphs:
        for caller, callee in sorted(found - set(traced)):
            wrong += 1
            print(f"{where}: not in the trace: {caller} -> {callee} ({edges[caller, callee]} samples)", file=sys.stderr)
        for caller, callee in sorted(must - found):
            wrong += 1
            share = traced[caller, callee] / whole
            print(f"{where}: missing: {caller} -> {callee} ({share:.1%} of the trace)", file=sys.stderr)
    print(
        json.dumps(
            {
                "samples": samples,
                "edges": len(edges),
                "reported": len(graphs[-1][1]),
                "traced": len(traced),
                "of 1 % or more": len(graphs[0][2]),
                "recursive frames": longest,
                "leaves that are inlined": len(inlined),
                "wrong": wrong,
            }
        )
    )
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
