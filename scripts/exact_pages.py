"""The sections of docs/exact-costs.md, as lines of Markdown."""

import math
import statistics

import exact_runs as runs
from exact_printed import MEAN, NODES, OVERHEADS
from markdown_tables import table


def head(machine, load, effort, is_small):
    lines = ["# What exact calling contexts cost, beside JP2's", ""]
    lines += [
        "Written by `make exact-paper`; do not edit. JP2 (PPPJ 2011) counts each call of Java programs by its calling context; its section 6 prints how",
        "many contexts there are and how much slower programs run. Its programs, DaCapo 9.12, are not to be had here: programs of Debian that do",
        "similar work stand beside them. [Exact calling contexts](guide-exact.md) have a guide.",
        "",
        f"Measured on {machine}, OpenJDK 17: {effort.rounds} rounds in one VM; repetitions, in turn: {effort.repetitions}. The time is the median of the last",
        f"{min(runs.LAST, effort.rounds)} rounds, the least of the repetitions; JP2's is the mean of the first 5, with the start of its VM's compilers. The load average was",
        f"{load.before:.1f} before and {load.after:.1f} after: {'other programs ran beside them' if load.is_busy() else 'the machine had nothing else to do'}.",
        "",
    ]
    if is_small:
        lines += ["**A small run**: the code is not compiled yet, so its times say nothing about programs.", ""]
    return lines


def factor(value):
    return f"{value:.2f} x"


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def overhead(found):
    """found: {program: cost}"""
    lines = ["## Time (JP2, table 3)", ""]
    lines += [
        "*sites*: calls by context with call sites. *blocks*: also each bytecode, and the calls of native methods whose sites name them, with",
        "`--bytecodes`. varid has no mode without call sites. A program has converged if the last rounds of a run without varid differ by",
        f"{100 * runs.CONVERGED:.0f} % at most; others are not in the means.",
        "",
    ]
    rows = []
    for program, cost in found.items():
        printed = OVERHEADS.get(program.like)
        theirs = [factor(value) for value in printed] if printed else ["–"] * len(MEAN)
        converged = "yes" if cost.alone.has_converged() else f"no, {100 * cost.alone.spread:.0f} %"
        ours = [factor(cost.overhead(mode)) for mode in runs.MODES]
        rows.append([program.name, converged, f"{cost.alone.time:.1f}", *ours, program.like or "–", *theirs])
    converged = [cost for cost in found.values() if cost.alone.has_converged()]
    means = [factor(geometric_mean([cost.overhead(mode) for cost in converged])) if converged else "–" for mode in runs.MODES]
    rows.append(["geometric mean", f"{len(converged)} of {len(found)}", "", *means, "all 13", *map(factor, MEAN)])
    titles = ["program", "converged", "ms a round", *runs.MODES, "JP2's program", "tree", "+ sites", "+ natives", "+ blocks"]
    return lines + table(titles, rows)


def nodes(found):
    """found: {program: cost}"""
    lines = ["## Contexts (JP2, table 2)", ""]
    lines += [
        "Of one round, with the VM's work from the main method on. Equal contexts of several threads are one, as JP2 has them. *natives* are those",
        "whose call sites name them. The size is that of a session's `contexts.data` with the counts of single bytecodes.",
        "",
    ]
    rows = []
    for program, cost in found.items():
        ours = cost.nodes
        size = f"{ours.bytes / 1e6:.1f} MB"
        each = f"{ours.bytes / max(ours.natives, 1):.0f}"
        printed = NODES.get(program.like)
        theirs = [f"{value:,}" for value in printed[:3]] if printed else ["–"] * 3
        rows.append([program.name, f"{ours.tree:,}", f"{ours.sites:,}", f"{ours.natives:,}", size, each, program.like or "–", *theirs])
    titles = ["program", "tree", "+ sites", "+ natives", "size", "bytes each", "JP2's program", "tree", "+ sites", "+ natives"]
    lines += table(titles, rows)
    for program, cost in found.items():
        lines += [f"- {program.name}: {sentence}." for sentence in cost.incomplete]
    return [*lines, ""]


def others(found):
    """The benchmarks of the paper that are like none of the programs."""
    known = {program.like for program in found}
    rows = []
    for name, overheads in OVERHEADS.items():
        if name not in known:
            rows.append([name, *(f"{value:,}" for value in NODES[name][:3]), *map(factor, overheads)])
    titles = ["JP2", "tree", "+ sites", "+ natives", "tree", "+ sites", "+ natives", "+ blocks"]
    return ["## The paper's other programs", "", "Contexts, and times as multiples.", "", *table(titles, rows)]
