"""The sections of docs/estimates.md, as lines of Markdown."""

import math
import statistics

import estimate_runs as runs
from estimate_printed import CACHES, CPROF, CPROF_OVERHEAD, JP2, OF_THE_PROGRAMS, Timing
from markdown_tables import signed, table

# The parts of an estimate that are printed, by the opcodes that they begin with.
PARTS = {
    "calls": ("invoke", "ireturn", "lreturn", "freturn", "dreturn", "areturn", "return"),
    "objects": ("new", "anewarray", "multianewarray", "getfield", "putfield", "getstatic", "putstatic", "checkcast", "instanceof", "monitor"),
    "arrays": tuple(f"{kind}a{way}" for kind in "ilfdabcs" for way in ("load", "store")) + ("arraylength",),
    "branches": ("if", "goto", "tableswitch", "lookupswitch"),
}


def cache_name(cache):
    size, blocks = cache
    return f"{size // 1024} KB / {blocks}" if size >= 1024 else f"{size} B / {blocks}"


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def head(is_small):
    lines = ["# Estimates, beside the papers'", ""]
    lines += [
        "Written by `make estimate-paper`; do not edit. CProf, a cross-profiler for embedded Java processors, and JP2 (PPPJ 2011, section 5) priced",
        "bytecodes that were counted; *Platform Independent Timing of Java Virtual Machine Bytecode Instructions* (ENTCS 220, 2008) measured what a",
        "bytecode costs. The numbers that their texts print stand here beside ours, with what differs and why.",
        "[Estimates](guide-estimate.md) and [calibration](guide-calibrate.md) have guides.",
        "",
        f"Measured on {runs.machine()}. Counts and cycles do not depend on what else runs there; times do, and say the load.",
        "",
    ]
    if is_small:
        lines += ["**A small run**: it measures times for some seconds only.", ""]
    return lines


def conditions(load):
    """The sentence that stands below measured times."""
    said = f"The load average was {load.before:.1f} before these measurements and {load.after:.1f} after them"
    return [f"{said}: {'other programs ran beside them' if load.is_busy() else 'the machine had nothing else to do'}.", ""]


def accuracy(found):
    """found: {compiler: {program: {cache: cycles}}}"""
    lines = ["## Accuracy (CProf, table 1)", ""]
    lines += [
        "The programs are Pump, Tasks, Sort and Fir of `tests/system/jvm/estimate`; the truth is the simulation of the hardware description of JOP",
        "of October 2011, target `jop-2011`. Errors in percent of the truth. *ecj* is what the simulated programs were compiled by.",
        "",
    ]
    rows = []
    for program, truth in runs.PROGRAMS.items():
        for cache, cycles in truth.items():
            estimates = [found[compiler][program][cache] for compiler in found]
            rows.append([program, cache_name(cache), cycles, *(cell for one in estimates for cell in (one, signed(one / cycles - 1)))])
    lines += table(["program", "size / blocks", "truth", *(title for compiler in found for title in (compiler, "error %"))], rows)
    worst = {compiler: max(abs(found[compiler][p][c] / t - 1) for p, truth in runs.PROGRAMS.items() for c, t in truth.items()) for compiler in found}
    said = ", ".join(f"{100 * error:.2f} % by {compiler}" for compiler, error in worst.items())
    lines += [
        f"The largest error is {said}; CProf prints 3.28 %. JOP's own simulator JopSim was up to 102 % off in the paper; in a run apart from this",
        "one, Pump took 60 % fewer cycles in it than in the truth. The programs of CProf's table are not under a licence that allows them here. A run",
        "apart from this one, of the same method over them, with JOP's table of May 2008 (`jop-2008`), gave the errors *here* against the printed",
        "cycles; *printed* is CProf's own error. CProf divides by its own estimate. Its estimates do not depend on the size of the cache; these do.",
        "",
    ]
    titles = ["size / blocks", *(title for program in CPROF for title in (f"{program}, cycles", "printed %", "here %"))]
    rows = []
    for at, cache in enumerate(CACHES):
        cells = []
        for program, (hardware, estimates) in CPROF.items():
            cells += [hardware[at], signed((estimates[at] - hardware[at]) / estimates[at]), f"{OF_THE_PROGRAMS[program][at]:+.2f}"]
        rows.append([cache_name(cache), *cells])
    return lines + table(titles, rows)


def hit_and_miss(found):
    """found: {compiler: {program: (miss, hit)}}"""
    lines = ["## A cache that always misses, or always hits (JP2, table 1)", ""]
    lines += [
        "Million cycles, with `--assume-cache miss` and `hit`; the truth is that of 4 KB and 16 blocks. JP2 does not know which form of an",
        "instruction a compiler has chosen, so its profiles have a pessimistic and an optimistic pair; here the forms are counted, and two compilers",
        "stand for the two. As printed, always hitting is close to the hardware.",
        "",
    ]
    million = lambda cycles: f"{cycles / 1e6:.4f}"
    rows = []
    for program, truth in runs.PROGRAMS.items():
        pairs = [million(cycles) for compiler in found for cycles in found[compiler][program]]
        rows.append([program, *pairs, million(truth[4096, 16])])
    lines += table(["program", *(f"{compiler}, {of}" for compiler in found for of in ("miss", "hit")), "truth"], rows)
    lines += ["Printed, for programs that are not under a licence that allows them here:", ""]
    titles = ["program", "pessimistic, miss", "hit", "optimistic, miss", "hit", "hardware"]
    return lines + table(titles, [[program, *(f"{number:.2f}" for number in numbers)] for program, numbers in JP2.items()])


def case_study(found):
    """found: {program: {cache: (cycles, misses, hits)}}"""
    lines = ["## What if the cache were smaller?", ""]
    lines += [
        "Cycles with caches of other sizes (down) and blocks (across), more than with the best one, in percent: one recorded order of calls,",
        "`varid estimate --sweep`. More blocks keep more methods, until a block is so small that long methods need many.",
        "",
    ]
    for program, caches in found.items():
        blocks = sorted({of for _, of in caches})
        sizes = sorted({size for size, _ in caches})
        least = min(cycles for cycles, _, _ in caches.values())
        cells = lambda size: [f"{100 * (caches[size, of][0] / least - 1):.2f}" if (size, of) in caches else "–" for of in blocks]
        lines += [f"{program}, {least} cycles at best:", ""]
        lines += table(["bytes", *blocks], [[size, *cells(size)] for size in sizes])
    return lines


def overhead(found, load):
    """found: {how: {kernel: nanoseconds}}"""
    lines = ["## Overhead (CProf, table 2)", ""]
    lines += [
        "The kernels of `tests/system/jvm/estimate` in HotSpot 17 with its JIT, the median of many runs in one VM: without varid in microseconds,",
        "and by how much longer with `varid exact`. The simulation of caches is not in it: it takes place afterwards, for any number of caches.",
        "",
    ]
    ways = list(runs.COUNTED)
    plain = found["none"]
    factors = {way: {name: found[way][name] / time for name, time in plain.items()} for way in ways}
    rows = [[name, f"{time / 1e3:.1f}", *(f"{factors[way][name]:.2f}" for way in ways)] for name, time in plain.items()]
    rows.append(["geometric mean", "", *(f"{geometric_mean(factors[way].values()):.2f}" for way in ways)])
    lines += table(["kernel", "µs", *ways], rows)
    lines += conditions(load)
    lines += ["Printed, of other programs in the JVM and on the machine of the paper:", ""]
    titles = ["program", "contexts and blocks", "with calls and returns", "with the cache"]
    return lines + table(titles, [[program, *(f"{factor:.2f}" for factor in factors)] for program, factors in CPROF_OVERHEAD.items()])


def bernoulli_hours(digits, sequence_ns, clock_ns):
    """How long a sequence has to be repeated until the share of runs in which a coarse clock advances is known to so many digits (equation 5)."""
    share = sequence_ns / clock_ns
    trials = 1.96**2 * (1 - share) / (10 ** (1 - digits)) ** 2 / share
    return trials * sequence_ns / 3.6e12


def timing(vm, fine, coarse, load):
    """fine, coarse: what `varid calibrate` has printed by the nanosecond clock, and by the millisecond one."""
    lines = [f"## What bytecodes cost: {vm}", ""]
    r, slope, intercept, keys = runs.agreement(fine)
    coarse_r, coarse_slope, coarse_intercept, _ = runs.agreement(coarse)
    rows = [
        ["imperative instructions", Timing.INSTRUCTIONS, f"{keys:.0f}"],
        ["r against the counter", Timing.R, f"{r:.4f}; by `currentTimeMillis` {coarse_r:.4f}"],
        ["slope", Timing.SLOPE, f"{slope:.3f}; {coarse_slope:.3f}"],
        ["intercept, ns", Timing.INTERCEPT_NS, f"{intercept:.3f}; {coarse_intercept:.3f}"],
        ["largest residuals", Timing.RESIDUALS, runs.residuals(fine)],
    ]
    outliers = runs.part(fine, "outliers")
    rows.append(["outliers", Timing.OUTLIERS, len(outliers)])
    groups = dict(line.split()[::2] for line in runs.part(fine, "clusters by granularity"))
    rows += [[f"clusters at the {name}", Timing.CLUSTERS.get(name, ""), groups[name]] for name in groups]
    lines += table(["", "printed", "here"], rows)
    lines += conditions(load)
    lines += [
        "The forms are those of the same instructions: `wide`, and branches by their outcome. The paper subtracts the time of an empty sequence and of",
        "`pop`; here all units are solved for together, so that both clocks agree without a factor of 1.232. The paper's minimum is that of its",
        "fastest instruction; here some cost nothing beside others, so that the granularity of the minimum joins only those.",
        "",
    ]
    if load.is_busy():
        lines += [
            "By `currentTimeMillis` a loop takes so long that other programs have the processor within it: on a busy machine its numbers are theirs.",
            "",
        ]
    lines += ["Summary, ns:", "", "```", *fine.partition("# imperative instructions alone, ns\n")[2].partition("\n\n")[0].splitlines(), "```", ""]
    lines += [
        "Outliers by Tukey's rule, ns. The paper's are conversions between floating-point and whole numbers, remainders, `idiv` and `ldiv`, about ten",
        "times as long as others; a processor of today has fast instructions for all of them but `frem` and `drem`. Here they are:",
        "",
        "```",
        *outliers,
        "```",
        "",
        "Clusters at the median. The paper's three largest have "
        f"{Timing.IN_THREE} of {Timing.INSTRUCTIONS} instructions:",
        "",
        "```",
        *runs.part(fine, "clusters at the median"),
        "```",
        "",
    ]
    median = float(fine.partition("# imperative instructions alone, ns\n")[2].splitlines()[1].split()[2])
    hours = bernoulli_hours(4, 1000 * median, 1e6)
    lines += [
        f"By Bernoulli trials a sequence of 10 µs takes {bernoulli_hours(4, 1e4, 1e6):.2f} hours for four digits (printed: {Timing.HOURS_OF_FOUR}) and"
        f" {bernoulli_hours(6, 1e4, 1e6) / 8766:.1f} years for six (printed: {Timing.YEARS_OF_SIX}).",
        f"1,000 of this VM's instructions take {median:.2f} µs: four digits would take {hours:.2f} hours for each, {hours * keys:.0f} hours for all.",
        "Loops that are long enough for the clock, and their slope, take a minute.",
        "",
    ]
    return lines


def part_of(opcode):
    found = [name for name, begins in PARTS.items() if opcode.startswith(begins)]
    return found[0] if found else "the rest"


def prediction(found, load):
    """found: {kernel: Kernel}"""
    lines = ["## Prediction", ""]
    lines += [
        "Kernels and programs that no calibration has seen (Pump, Tasks, Sort and Fir are the programs of above): their bytecodes, counted by",
        "`varid exact --bytecodes` and priced by the table of above, beside what they take under the interpreter. Shares are parts of the estimate.",
        "",
    ]
    rate = statistics.median(kernel.measured / kernel.bytecodes for kernel in found.values())
    uniform = {name: kernel.bytecodes * rate / kernel.measured - 1 for name, kernel in found.items()}
    names = [*PARTS, "the rest"]
    rows = []
    for name, kernel in found.items():
        sums = dict.fromkeys(names, 0.0)
        for opcode, cost in kernel.parts.items():
            sums[part_of(opcode)] += cost
        shares = [f"{100 * cost / sum(sums.values()):.0f}" for cost in sums.values()]
        times = [f"{time / 1e3:.1f}" for time in (kernel.measured, kernel.estimate, kernel.low, kernel.high)]
        rows.append([name, kernel.bytecodes, *times, signed(kernel.error(), 1), signed(uniform[name], 1), *shares])
    titles = ["kernel", "bytecodes", "measured µs", "estimate µs", "low", "high", "error %", "one cost, error %", *(f"{name} %" for name in names)]
    lines += table(titles, rows)
    lines += conditions(load)
    errors = [abs(kernel.error()) for kernel in found.values()]
    uniform = [abs(error) for error in uniform.values()]
    lines += [
        f"The mean error is {100 * statistics.fmean(errors):.1f} %, the largest {100 * max(errors):.1f} %. With one cost for all bytecodes, the best one"
        f" for these programs, it is {100 * statistics.fmean(uniform):.1f} %.",
        "",
    ]
    return lines
