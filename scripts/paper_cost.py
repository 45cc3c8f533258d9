"""What does profiling cost? The evaluation's figures 15 and 16."""

import statistics
import sys

from paper_figures import WORKLOADS, table

NANOSECONDS_PER_INSTRUCTION = 2  # -icount shift=1
LATER = 4  # calls
SHADOW_CALLS = 10_000  # in each time of tests/shadowvm
RECORDERS = {
    "none": "nobody profiles",
    "load-from-dex": "load-from-dex alone: dim in the VM, nobody samples",
    "perf": "plain sampling (`perf record`)",
    "varid": "`varid record`, load-from-dex",
    "tunnel": "`varid record --tactic method-invoke`: each invoke's remapped address looked up and counted in shared memory",
    "method-invoke": "the same and `--log-calls`: a line in a log for each event",
}
# What nobody's command of as few calls took.
SHORT = {"tunnel": "none-for-short", "method-invoke": "none-for-short"}
# The interpreter that calls dim itself.
SHADOW_RECORDERS = {
    "none": "no dim in it",
    "off": "dim in it, switched off",
    "own": "each invoke stores the method's own address: what varid uses (R_original, H0 = A0)",
    "hash": "each invoke looks R = i + H0 up in the hash table and stores it (R_dummy_hash)",
    "perf": "no dim in it, plain sampling",
    "varid": "own address, and varid samples",
    "varid-hash": "R = i + H0, and varid samples",
    "counted": "method-invoke, counted in shared memory, and varid samples",
    "logged": "method-invoke, a line in a log for each event, and varid samples",
}


def more(found, workload, recorder, beside="none"):
    """How many percent of nobody's time a call takes longer than beside something; of as many calls, from the same one on."""
    times_of = [found[workload, each].calls for each in (recorder, beside, "none")]
    count = min(map(len, times_of))
    longer, other, nobody = (sum(calls[:count]) for calls in times_of)
    return 100 * (longer - other) / nobody


def noise(found, workload, recorder):
    """Two standard errors of that, as the calls' differences differ among themselves."""
    nobody = found[workload, "none"].calls
    more_each = [longer - other for longer, other in zip(found[workload, recorder].calls, nobody)]
    return 200 * statistics.stdev(more_each) / len(more_each) ** 0.5 / statistics.fmean(nobody)


def digits(number):
    """As many as say something."""
    return 2 if abs(number) >= 0.1 else 4


def signed(number):
    """A percentage with its sign."""
    return f"{number:+.{digits(number)}f} %"


def seconds(found):
    """Figures 15 and 16."""
    text = """## Run time and overhead (figures 15 and 16)

Each row is a command of its own on the board: `artvm --timed 9` (3 for the last two rows: calls take long there) by itself, or behind
`perf record -e cycles -F 997 --` or `varid record -e cycles -F 997 --`. perf and varid write what they sample on the one CPU that the app has, so their
own work is in these figures, too. Percentages are of nobody's time.

The app's own time: the mean of its method's calls, the first one left out:

"""
    own, whole = [], []
    for recorder, name in RECORDERS.items():
        beside = SHORT.get(recorder, "none")
        of = [(found[workload, recorder], found[workload, beside], workload) for workload in WORKLOADS]
        if recorder == "none":
            own.append([name, *(f"{time.mean() / 1e6:,.1f} ms" for time, _, _ in of)])
            whole.append([name, *(f"{time.whole / 1e6:,.0f} ms" for time, _, _ in of)])
            continue
        own.append([name, *(f"{time.mean() / 1e6:,.1f} ms, {signed(more(found, workload, recorder))}" for time, _, workload in of)])
        if recorder == "varid":
            later = [[statistics.fmean(each.calls[-LATER:]) for each in (time, none)] for time, none, _ in of]
            cells = (f"{longer / 1e6:,.1f} ms, {signed(100 * (longer / nobody - 1))}" for longer, nobody in later)
            own.append([f"the same, the last {LATER} calls: when varid has read what it has to read once", *cells])
        whole.append([name, *(f"{time.whole / 1e6:,.0f} ms, {signed(100 * (time.whole / none.whole - 1))}" for time, none, _ in of)])
    whole.insert(-2, ["nobody profiles, 3 calls, for the next two", *(f"{found[workload, 'none-for-short'].whole / 1e6:,.0f} ms" for workload in WORKLOADS)])
    text += table(["", *WORKLOADS.values()], own)
    text += "\nThe whole command, the VM's start included, and perf's or varid's own start and end (varid reads the kernel's symbols, for one):\n\n"
    text += table(["", *WORKLOADS.values()], whole)
    alike = ", ".join(f"{name} {noise(found, workload, 'load-from-dex'):.4f} %" for workload, name in WORKLOADS.items())
    return text + f"""
Calls are compared one by one. Where what they differ by is no more than its two standard errors, nothing was measured: for load-from-dex beside
nobody {alike}. VM's collector runs beside the app when it will.

Printed, beside OProfile's own time of about 25 s: load-from-dex at most 0.32 % (0.08 s), the tunnel less than 0.02 s (0.08 %), method-invoke at least 35 % (8 s).

"""


def instructions(found, workload, recorder, beside="none"):
    """How many instructions more a call of a method is in the interpreter that calls dim itself."""
    return more(found, workload, recorder, beside) / 100 * found[workload, "none"].mean() / SHADOW_CALLS / NANOSECONDS_PER_INSTRUCTION


def densities(found, shadow, called):
    """{workload: instructions for each call of a method, of the app and of the interpreter}; raises SystemExit where they are far apart."""
    of = {}
    for workload in WORKLOADS:
        app = found[workload, "none"].mean() / called[workload] / NANOSECONDS_PER_INSTRUCTION
        vm = shadow[workload, "none"].mean() / SHADOW_CALLS / NANOSECONDS_PER_INSTRUCTION
        if not 0.95 < vm / app <= 1.02:
            sys.exit(f"paper: {workload} calls a method each {app:.0f} instructions, the interpreter each {vm:.0f}: other steps in scripts/paper.sh")
        of[workload] = app, vm
    return of


def tunnel(found, shadow, called):
    """The tunnel that the paper had in Dalvik."""
    rows = [
        ["instructions for each call of a method, in the app (ART)"],
        ["the same, in the interpreter, no dim in it"],
    ]
    for app, vm in densities(found, shadow, called).values():
        rows[0].append(f"{app:,.0f}")
        rows[1].append(f"{vm:,.0f}")
    for recorder, name in SHADOW_RECORDERS.items():
        if recorder == "none":
            continue
        cells = [name]
        for workload in WORKLOADS:
            cell = signed(more(shadow, workload, recorder))
            if recorder in ("off", "own", "hash"):
                cell += f", {instructions(shadow, workload, recorder):.0f} instructions"
            cells.append(cell)
        rows.append(cells)
    parts = ", ".join(
        f"{name} {more(shadow, workload, 'counted', 'varid'):.1f} of {more(found, workload, 'tunnel', 'varid'):.0f} %" for workload, name in WORKLOADS.items()
    )
    return f"""## The tunnel in an interpreter that calls dim itself (figures 15 and 16)

The paper's Dalvik stores an address at each invoke. ART has no place for that store: it tells of calls through its own instrumentation
(`dvm-patch/art/invokes.c`), for which it leaves its fast interpreter, and the two last rows above are that. What the store itself costs is measured in
`tests/shadowvm`, an interpreter that calls dim at each invoke and each return. Each of its methods does so many steps of work (`--work`) that
there are as many instructions for each call as in the app. Beside it stands the same interpreter compiled without dim. A call of dim here is an invoke
and its return: a record on the thread's shadow stack and its depth, so that after a return a sample belongs to the caller again (the paper has one slot
and says nothing of returns). Only a VM whose frames cannot be walked needs these calls: by default neither ART nor Dalvik has any.

{table(["", *WORKLOADS.values()], rows)}
Switched off, dim is asked at the invoke and at the return whether it is on; three of those instructions are the test's own question whether to remap.
Calls go at random there, up to 60 deep, so nearly each sample has callers that varid has not seen before: it costs more than in the apps above.
So of what ART's rows cost beside varid with load-from-dex, looking up and counting is about: {parts}. The rest is ART's slow interpreter and its instrumentation.

"""
