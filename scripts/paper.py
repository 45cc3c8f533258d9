#!/usr/bin/env -S python3 -B
"""What did the paper measure, and what is it here? Makes docs/evaluation.md of the PAPER lines of three boots.

usage: paper.py TIMES TIMES-AGAIN LAYERS KERNEL-RELEASE      each a console of tests/board/paper.sh

Fails if the two boots that measured times differ, or if a figure is missing.
"""

import sys

from paper_cost import (
    NANOSECONDS_PER_INSTRUCTION, RECORDERS, SHADOW_CALLS, SHADOW_RECORDERS, SHORT,
    digits, more, noise, seconds, tunnel,
)
from paper_figures import WORKLOADS, Figures, Time, calls, invokes, plain, sizes, table, tables, times
from paper_profiles import SIZES, graph, layers, logs, mapped

PRINTED_LIMIT = {"load-from-dex": 0.32, "tunnel": 0.08, "method-invoke": 35.0}  # percent, the paper's section 6.4.2: 0.08 s, 0.02 s and 8 s of 25
OUR_LIMIT = {"load-from-dex": 0.1, "tunnel": 1.0}


def verdicts(found, shadow, logged, code):
    """What was said, and what is."""
    rows = []

    def say(said, figures, is_met):
        """figures: {workload: percent}; the largest and the smallest are told."""
        low, high = min(figures, key=figures.get), max(figures, key=figures.get)
        told = [f"{figures[workload]:.{digits(figures[workload])}f} % ({WORKLOADS[workload]})" for workload in dict.fromkeys((high, low))]
        rows.append([said, " to ".join(told), is_met])

    def met(is_met):
        return "yes" if is_met else "no"

    def at_most(limit, figures, said):
        of = sum(figure <= limit for figure in figures.values())
        say(f"{said}: at most {limit} %", figures, met(of) if of in (0, len(figures)) else f"by {of} of {len(figures)}")

    limit = OUR_LIMIT["load-from-dex"]
    told = {workload: more(found, workload, "load-from-dex") for workload in WORKLOADS}
    exact = {workload: figure for workload, figure in told.items() if noise(found, workload, "load-from-dex") <= limit}
    if exact:
        at_most(limit, exact, "load-from-dex, of the app's instructions")
    for workload in (each for each in told if each not in exact):
        within = noise(found, workload, "load-from-dex")
        verdict = f"not told: calls differ by ±{within:.2f} %" if abs(told[workload]) <= within + limit else met(told[workload] <= limit)
        say(f"load-from-dex, of the app's instructions, where calls differ: at most {limit} %", {workload: told[workload]}, verdict)
    longer = {workload: found[workload, "load-from-dex"].whole - found[workload, "none"].whole for workload in WORKLOADS}
    worst = max(longer, key=longer.get)
    rows.append(["load-from-dex, of the whole command: at most 0.08 s (printed)", f"{longer[worst] / 1e9:.4f} s ({WORKLOADS[worst]})", met(longer[worst] <= 0.08e9)])
    at_most(
        PRINTED_LIMIT["load-from-dex"],
        {workload: 100 * longer[workload] / found[workload, "none"].whole for workload in WORKLOADS},
        "the same (printed, of 25 s; here of {:.0f} to {:.0f} s)".format(*(f(found[w, "none"].whole for w in WORKLOADS) / 1e9 for f in (min, max))),
    )
    limit = OUR_LIMIT["tunnel"]
    for recorder, beside, said in (
        ("own", "off", "tunnel, the method's own address, beside dim switched off"),
        ("own", "none", "tunnel, the method's own address, beside no dim"),
        ("hash", "off", "tunnel, R = i + H0, beside dim switched off"),
        ("hash", "none", "tunnel, R = i + H0, beside no dim"),
    ):
        at_most(limit, {workload: more(shadow, workload, recorder, beside) for workload in WORKLOADS}, said)
    at_most(limit, {workload: more(found, workload, "tunnel", "varid") for workload in WORKLOADS}, "tunnel by ART's instrumentation, beside load-from-dex")
    at_most(PRINTED_LIMIT["tunnel"], {workload: more(shadow, workload, "own", "off") for workload in WORKLOADS}, "tunnel, the method's own address, beside dim switched off: 0.02 s of 25 s (printed)")
    limit_of_calls = shadow["vm", "none"].mean() / SHADOW_CALLS / NANOSECONDS_PER_INSTRUCTION / 100
    limit = PRINTED_LIMIT["method-invoke"]
    cost = {workload: more(found, workload, "method-invoke", "varid") for workload in WORKLOADS}
    say(f"method-invoke with its log: at least {limit:.0f} % (printed)", cost, met(min(cost.values()) >= limit))
    of = {workload: logged[workload, "load-from-dex"] for workload in WORKLOADS}
    growth = max(max(size for _, size in each) / min(size for _, size in each) for each in of.values())
    rows.append(["load-from-dex, log after a run ten times as long: as large (samples are apart)", f"{growth:.4f} times at most", met(growth == 1)])
    shares = [each[0][1] / code[workload] for workload, each in of.items()]
    rows.append(
        ["load-from-dex, log proportional to the code (printed)", f"{min(shares):.2f} to {max(shares):.2f} bytes for each of code", met(max(shares) <= 2 * min(shares))]
    )
    return f"""## Said and done

Said without "printed" is what this project set itself. The tunnel is shadowvm's, but for the one by ART's instrumentation.

{table(["said", "measured", "met"], rows)}
So varid takes the tunnel only where it must: for a VM whose frames it cannot walk, or where calls are to be counted. Of an app that calls as often as
VM does, {limit_of_calls:.0f} instructions for an invoke and its return would be 1 %: to find the thread's own memory takes more.
"""


HEAD = """# The paper's evaluation, done again

Written by `make paper`; do not edit. Section 6 of *Reconfigurable Vertical Profiling Framework for the Android Runtime System* (ACM TECS 13, 2s, 2014)
had a BeagleBoard and Dalvik of Android 2.3 with its compiler; what is printed there stands beside what is measured here. The workloads are those of
`tests/workloads`, written anew after the paper's four, run by ART's interpreter (`artvm`). The board is QEMU's Cortex-A57 with Debian's
kernel {release}, one CPU; `tests/board/paper.sh` is what runs there. Its clocks count instructions, {ns} ns each, and two boots gave the same times
to the nanosecond: percentages of time are percentages of *instructions*. A real processor has caches, too. [Said and done](#said-and-done) sums up.

The words are the paper's: *dim* is what is put into the VM; the *tunnel* is memory that the VM shares, in which dim says what the VM is doing;
*load-from-dex* is the tactic (the default) in which dim does nothing while the app runs: varid walks the VM's own frames at each sample; *method-invoke* is the
traditional one: dim hears of each invoke, return and unwind, counts it, and writes a line for it into a log if that is asked for.

"""


def document(first, again, third, release):
    """The document; raises SystemExit if the boots differ or something is missing."""
    for kind in ("time", "tunnel"):
        if first.of(kind) != again.of(kind):
            pairs = zip(first.of(kind), again.of(kind))
            sys.exit("paper: the two boots differ:\n" + "\n".join(f"{a}\n{b}" for a, b in pairs if a != b))
    found, shadow, perf, varid, edges = times(first, "time"), times(first, "tunnel"), plain(third), tables(third), calls(third)
    logged, code, framework = sizes(third)
    called = invokes(third)
    none = Time(0, [])
    wanted = [*RECORDERS, *set(SHORT.values())]
    missing = [(w, r) for w in WORKLOADS for r in wanted if len(found.get((w, r), none).calls) < 2]
    missing += [(w, r) for w in WORKLOADS for r in SHADOW_RECORDERS if len(shadow.get((w, r), none).calls) < 2]
    missing += [w for w in WORKLOADS if not perf.get(w) or not varid.get((w, "layer")) or not varid.get((w, "dim")) or w not in code or not called.get(w)]
    missing += [(w, what) for w in WORKLOADS for what in SIZES if not logged.get((w, what))]
    if missing:
        sys.exit(f"paper: no figures of {missing}")
    return (
        HEAD.format(release=release, ns=NANOSECONDS_PER_INSTRUCTION)
        + layers(perf, varid)
        + mapped(varid["cradle", "dim"])
        + graph(edges["scene"])
        + logs(logged, code, framework)
        + seconds(found)
        + tunnel(found, shadow, called)
        + verdicts(found, shadow, logged, code)
    )


def main():
    """Prints the document."""
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    print(document(*map(Figures, sys.argv[1:4]), sys.argv[4]), end="")


if __name__ == "__main__":
    main()
