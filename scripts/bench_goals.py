#!/usr/bin/env python3
"""Which goals does varid meet? Prints them as a table, from the results of this run's benchmarks and from the exact counts of the board.

usage: bench_goals.py RESULTS BOARD-COST

RESULTS: lines of JSON, a name and a value each. A goal is a bound for a ratio of two results of the same run, or for a size. What was
not measured, as in the shortest form of the benchmarks, says so.
"""

import collections
import json
import pathlib
import re
import sys

import markdown_tables

# What a row says. value and beside: numbers, or None. most: the largest ratio, or the largest value where `beside` is missing.
Goal = collections.namedtuple("Goal", "work unit value peer beside most floor")

MILLION = 1_000_000
QUARTER = MILLION // 4
EXPORTS = "folded flamegraph html pprof firefox speedscope callgrind dot chrome perfetto otlp".split()


class Results:
    """Results by their names."""

    def __init__(self, path):
        lines = pathlib.Path(path).read_text().splitlines() if pathlib.Path(path).exists() else []
        self.values = dict(json.loads(line) for line in lines)

    def get(self, name):
        """A result, or None."""
        value = self.values.get(name)
        return None if value in (None, "-") else float(value)

    def largest(self, names):
        """The largest of some results, or None."""
        found = [value for value in map(self.get, names) if value is not None]
        return max(found, default=None)


def on_board(path):
    """Percent of the app by recorder, for 4, 16 and 64 frames, at 997 Hz."""
    found = {}
    for line in pathlib.Path(path).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > 4 and cells[1] == "997":
            found[cells[0]] = [float(cell.split()[0]) for cell in cells[2:5] if re.match("[0-9.]+ %", cell)]
    return found


def board_goals(board):
    """The goals whose figures are exact counts."""
    depths = (4, 16, 64)
    ours, theirs = board["varid, BPF program"], board["perf record -g"]
    compiled, copies = board["varid, BPF program, app in compiled code"], board["varid, copies of the stack"]
    for at, depth in enumerate(depths):
        yield Goal(f"app on the board, 997 Hz, depth {depth}", "%", ours[at], "perf record -g", theirs[at], 1.3 if depth == 64 else 1.2, BOARD)
    for at, depth in enumerate(depths):
        yield Goal(f"the same in compiled code, depth {depth}", "%", compiled[at], "varid, interpreter", ours[at], 1, BOARD)
    for at, depth in enumerate(depths):
        dwarf = board["perf record --call-graph dwarf"][at]
        yield Goal(f"the same by copies of the stack, depth {depth}", "%", copies[at], "perf record --call-graph dwarf", dwarf, 1.1, BOARD)


BOARD = "[exact counts](board-cost.md)"


def goals(results, board):
    """All goals."""
    get = results.get
    bpf = [get(name) for name in ("floor interrupt ns", "floor bpf ns")]
    interrupt = None if None in bpf else f"in the kernel: an interrupt {bpf[0]:.0f} ns, a bare BPF program {bpf[1]:.0f} ns, varid's {get('sample kernel ns varid') or 0:.0f} ns"
    copied = None
    if get("floor copy ns a MB") and get("recording MB"):
        copied = f"a copy of the recording: {get('floor copy ns a MB') * get('recording MB') / 1e9:.2f} s"
    yield Goal("recorder, interpreter, 10 kHz, depth 16", "us a sample", get("sample us varid"), "perf record -g", get("sample us perf record -g"), 1, interrupt)
    yield Goal("recorder, JIT", "us a sample", get("sample us varid, JIT"), "varid, interpreter", get("sample us varid"), 1.5, None)
    yield Goal("recorder, copies of the stack", "us a sample", get("sample us varid --shim perf"), "perf record --call-graph dwarf",
               get("sample us perf record --call-graph dwarf"), 1, None)
    yield from board_goals(board)
    cheapest = get(f"cpu perf report --no-children -g none {MILLION}")
    yield Goal("report of a million samples", "s", get(f"cpu report {MILLION}"), "perf report --no-children -g none", cheapest, 0.4, copied)
    yield Goal("", "MB", get(f"peak report {MILLION}"), None, None, 64, None)
    yield Goal("report of 250,000 samples", "s", get(f"cpu report {QUARTER}"), "perf report --children", get(f"cpu perf report --children {QUARTER}"), 0.4, None)
    yield Goal("slowest export but JSON Lines", "s", results.largest(f"cpu export -f {name} {MILLION}" for name in EXPORTS),
               "perf report --no-children -g none", cheapest, 0.6, copied)
    yield Goal("export as JSON Lines", "s", get(f"cpu export -f jsonl {MILLION}"), "perf report --no-children -g none", cheapest, 1, copied)
    yield Goal("flame graph of 250,000 samples", "s", get(f"cpu export -f flamegraph {QUARTER}"), "perf script, inferno",
               get(f"cpu perf script, inferno {QUARTER}"), 0.2, None)
    yield Goal("call graph", "MB", get(f"peak report --callgraph {MILLION}"), None, None, 150, None)
    for kind in ("math", "python", "merged"):
        compressed = get(f"bytes compressed {kind}")
        beside = f"compressed, for perf, too: {compressed:.1f}" if compressed else None
        yield Goal(f"recording, compact: {kind}", "bytes a sample", get(f"bytes compact {kind}"), None, None, 12, beside)
    yield Goal("memory of a session, a program of 10 threads", "MB", get("memory 10 varid"), None, None, 32,
               f"perf record -g: {get('memory 10 perf record -g'):.0f} MB" if get("memory 10 perf record -g") else None)
    yield Goal("memory of the daemon after a session of every process", "MB", get("daemon after"), None, None, 64, None)
    yield Goal("lost of 500 threads that compute, 997 Hz", "%", get("lost 500 varid"), "perf record -g", get("lost 500 perf record -g"), 1, None)


def number(value):
    """With three digits."""
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def row(goal):
    """The cells of a goal."""
    floor = goal.floor or ""
    bound = f"≤ {number(goal.most)} {'x' if goal.peer else goal.unit}"
    peer = goal.peer or ""
    if goal.value is None or (goal.peer and goal.beside is None):
        return [goal.work, "not measured", peer, "", bound, "", floor]
    if not goal.peer:
        return [goal.work, f"{number(goal.value)} {goal.unit}", "", "", bound, "yes" if goal.value <= goal.most else "**no**", floor]
    ratio = goal.value / goal.beside if goal.beside else float(goal.value > 0)
    # The table rounds: what is not more than the bound there is not called more.
    met = round(ratio, 2) <= goal.most
    return [goal.work, f"{number(goal.value)} {goal.unit}", f"{peer}: {number(goal.beside)}", f"{ratio:.2f}", bound, "yes" if met else "**no**", floor]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    rows = [row(goal) for goal in goals(Results(sys.argv[1]), on_board(sys.argv[2]))]
    titles = ["work", "varid", "beside", "ratio", "goal", "met", "floor"]
    print("\n".join(markdown_tables.table(titles, rows, texts=len(titles))))
    met = sum(cells[5] == "yes" for cells in rows)
    print(f"Met: {met} of {sum(bool(cells[5]) for cells in rows)} that were measured, {len(rows)} in all.")


main()
