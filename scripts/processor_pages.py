"""The sections of docs/processor-study.md, as lines of Markdown."""

import statistics
from itertools import groupby

import processor_runs as runs
from markdown_tables import signed, table

# Counts that are the same on each core.
COUNTS = ("instructions", "loads", "stores", "stack_accesses", "branches", "taken")


def name_of(guest):
    return f"{guest.program} \\*" if guest.is_foreign else guest.program


def head(compared):
    pairs = next(iter(compared.values()))
    foreign = sorted({pair.guest.program for pair in pairs if pair.guest.is_foreign})
    own = {pair.guest.program for pair in pairs if not pair.guest.is_foreign}
    return [
        "# Estimates of processors, beside their RTL and the paper",
        "",
        "Written by `make estimate-study`; do not edit. [Firmware without the board](guide-firmware.md) is the guide to what is measured here. *The",
        "paper* is TotalProf, a source code cross profiler (CODES+ISSS 2009).",
        "",
        "The truth is each core's own hardware description (RTL), simulated by Verilator with the same ELF file: cycles from the entry to the exit's",
        f"call. The programs are {len(own)} of `tests/guest/programs`, and {len(foreign)} that others have written: {', '.join(foreign)}, of crates of",
        "crates.io, with picolibc. No description of a processor was made with these, which are marked by \\*. One had an error that they showed, too:",
        "Lua's build for size was 0.045 % off on CV32E40P, which fetches a jump's target while a division before it is executed. Each program is compiled by",
        f"{' and '.join(f'`{build}`' for build in runs.BUILDS)} (compiler, level, machine). VexRiscv's configuration executes no compressed code. Programs are",
        "small: RTL sets the pace. Seconds are of processor time, of a machine that may have had other things to do.",
        "",
    ]


def accuracy(compared):
    """compared: {Configuration: [Pair]}"""
    rows = []
    for configuration, pairs in compared.items():
        foreign = [abs(pair.error()) for pair in pairs if pair.guest.is_foreign]
        errors = [abs(pair.error()) for pair in pairs]
        offs = [pair.off() for pair in pairs]
        rows.append(
            [
                configuration.name,
                len(pairs),
                f"{min(offs):+} … {max(offs):+}",
                *(f"{100 * part:.3f}" for part in (statistics.fmean(errors), max(errors), statistics.fmean(foreign), max(foreign))),
            ]
        )
    unequal = [
        f"{configuration.name} {pair.guest.program}"
        for configuration, pairs in compared.items()
        for pair in pairs
        if any(pair.estimate[count] != pair.truth[count] for count in COUNTS)
    ]
    counts = sum(map(len, compared.values()))
    equal = f"in all {counts} runs" if not unequal else f"but in {', '.join(unequal)}"
    return [
        "## Accuracy, by configuration",
        "",
        f"Executed instructions, loads, stores, accesses through the stack pointer, branches and taken branches are equal {equal}.",
        "*Off* is how many cycles the estimate has more than the RTL; errors are in percent of the RTL's cycles.",
        "",
        *table(["processor", "programs", "off", "mean error", "largest", "mean, programs \\*", "largest, programs \\*"], rows),
    ]


def each_program(compared):
    """The cores' defaults, program by program."""
    defaults = {configuration: pairs for configuration, pairs in compared.items() if not configuration.settings()}
    found = {(pair.guest, configuration): pair for configuration, pairs in defaults.items() for pair in pairs}
    guests = sorted({guest for guest, _ in found}, key=lambda guest: (guest.is_foreign, guest.program, runs.BUILDS.index(guest.build)))
    rows = []
    for guest in guests:
        cells = [found.get((guest, configuration)) for configuration in defaults]
        rows.append([name_of(guest), guest.build, *(f"{pair.off():+} ({signed(pair.error(), 3)} %)" if pair else "" for pair in cells)])
    return [
        "## Accuracy, by program",
        "",
        "Cycles that the estimate has more than the RTL, each core with its default parameters.",
        "",
        *table(["program", "build", *(configuration.name for configuration in defaults)], rows, texts=2),
    ]


def memory(pairs, sizes):
    """pairs: of Ibex; sizes: {Guest: bytes}"""
    rows = []
    for (_, program), group in groupby(pairs, key=lambda pair: (pair.guest.is_foreign, pair.guest.program)):
        by_build = {pair.guest.build: pair for pair in group}
        row = [name_of(next(iter(by_build.values())).guest)]
        for build in runs.BUILDS:
            estimate = by_build[build].estimate
            local = estimate["stack_accesses"]
            accesses = estimate["loads"] + estimate["stores"]
            row += [sizes[by_build[build].guest], *(round(1000 * part / estimate["cycles"]) for part in (local, accesses - local))]
        rows.append(row)
    titles = [f"{what}, {build}" for build in runs.BUILDS for what in ("code", "local", "global")]
    return [
        "## Memory accesses and code size",
        "",
        "Bytes of instructions; accesses to the stack (local) and others (global) per 1000 cycles of Ibex, as the paper's figure 6.b has them. *Local* is",
        "what has the stack pointer as its base. All are equal to the RTL's, see above.",
        "",
        *table(["program", *titles], rows),
    ]


def caches(pairs):
    """pairs: of VexRiscv"""
    rows = []
    for pair in pairs:
        row = [name_of(pair.guest)]
        for cache in ("icache_misses", "dcache_misses"):
            row += [pair.estimate[cache], pair.truth[cache]]
        rows.append([*row, signed(pair.error())])
    return [
        "## Caches",
        "",
        "VexRiscv's caches of 4 KiB, direct mapped. The core fetches lines of paths that it does not take; a description has how many bytes those are,",
        "not when they come: so misses of the instruction cache differ, and cycles with them.",
        "",
        *table(["program", "I$ misses", "RTL", "D$ misses", "RTL", "error of cycles, %"], rows),
    ]


def design_space(compared):
    """Each core's parameters, against its defaults."""
    rows = []
    bases = {}
    for configuration, pairs in compared.items():
        # A core's first configuration has its defaults.
        bases.setdefault(configuration.core, pairs)
        totals = total_cycles(pairs)
        base = total_cycles(bases[configuration.core])
        changes = [100 * (mine / default - 1) for mine, default in zip(totals, base, strict=True)]
        seconds = sum(pair.estimate_seconds for pair in pairs), sum(pair.truth_seconds for pair in pairs)
        rows.append(
            [
                configuration.name,
                "<br>".join(f"`{value}`" for value in configuration.settings()) or "the defaults",
                len(configuration.settings()),
                *totals,
                signed(totals[0] / totals[1] - 1, 3),
                *(f"{change:+.2f}" for change in changes),
                *(f"{value:.1f}" for value in seconds),
                f"{seconds[1] / seconds[0]:.0f}",
            ]
        )
    titles = ["processor", "values", "changed", "cycles", "RTL", "error, %", "change, %", "RTL, %", "seconds", "RTL's seconds", "ratio"]
    return [
        "## Design space",
        "",
        "Each parameter of a core that the RTL has, too: the cycles of all programs together, and what changes against the core's defaults. *Changed* is how",
        "many values of the description are others: a line each in its file, or an option `--set`. The RTL is simulated at its own parameter.",
        "",
        *table(titles, rows, texts=2),
    ]


def total_cycles(pairs):
    """Of the estimates and of the truth."""
    return sum(pair.estimate["cycles"] for pair in pairs), sum(pair.truth["cycles"] for pair in pairs)


def cache_sizes(found, true, seconds):
    """found: {(cache, size): [summary]}; true: the RTL's cycles at 4K"""
    rows = []
    sizes = list(dict.fromkeys(size for _, size in found))
    for size in sizes:
        row = [size]
        for cache in ("icache", "dcache"):
            summaries = found[cache, size]
            row += [sum(summary["cycles"] for summary in summaries), sum(summary[f"{cache}_misses"] for summary in summaries)]
        rows.append([*row, true if size == "4K" else ""])
    return [
        "### VexRiscv's caches",
        "",
        f"One value changed, `icache.size` or `dcache.size`; the other cache has 4 KiB. The package has the RTL of one size, so only that row has a truth.",
        f"{len(found)} designs took {seconds:.1f} seconds.",
        "",
        *table(["size", "cycles by icache.size", "I$ misses", "cycles by dcache.size", "D$ misses", "RTL's cycles"], rows),
    ]
