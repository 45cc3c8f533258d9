"""The section of docs/processor-study.md that has what the paper's text prints, beside what is measured here."""

import statistics

import processor_runs as runs
from markdown_tables import table


def beside_the_paper(compared):
    """compared: {Configuration: [Pair]}"""
    defaults = {configuration.core: pairs for configuration, pairs in compared.items() if not configuration.settings()}
    vexriscv = defaults["vexriscv"]
    pairs = [pair for found in compared.values() for pair in found]
    average = {core: 100 * runs.deviation([pair.error() for pair in found]) for core, found in defaults.items()}
    of_all = 100 * runs.deviation([pair.error() for found in defaults.values() for pair in found])
    seconds = sum(pair.estimate_seconds for pair in pairs), sum(pair.truth_seconds for pair in pairs)
    instructions = sum(pair.estimate["instructions"] for pair in pairs)
    rates = [instructions / taken / 1e6 for taken in seconds]
    ratios = [pair.truth_seconds / pair.estimate_seconds for pair in pairs if pair.estimate["instructions"] >= 1_000_000]
    cores = ", ".join(f"{core} {value:.3f} %" for core, value in sorted(average.items()))
    lines_changed = max(len(configuration.settings()) for configuration in compared)
    rows = [
        ["errors of the major metrics", "5 to 15 %", "", "The rows below."],
        ["error of cycles, average", "5.8 % (micro-profiler 29.1 %)", f"{of_all:.3f} %", "The ELF file itself is executed; the paper compiles the source for a virtual processor."],
        ["the same, four processors", "6.1, 5.9, 3.2, 3.3 %", cores, "Truth there: instruction set simulators, programs of the same compiler. Here: RTL. No VLIW processor is here."],
        ["global memory accesses", "15.1 % (13.1 %), without blowfish's 1 instead of 8", f"{access_errors(pairs)[1]:.3f} %", "Counted where the same instructions are executed."],
        ["local memory accesses", "13.1 % (67.9 %)", f"{access_errors(pairs)[0]:.3f} %", "The same; register allocation is the compiler's own."],
        ["misses of the data cache", "9.5 % (52.4 %)", f"{miss_error(vexriscv, 'dcache_misses'):.3f} %", "VexRiscv, 4 KiB, direct mapped."],
        ["misses of the instruction cache", "10.4 %", f"{miss_error(vexriscv, 'icache_misses'):.3f} %", "Lines of paths that are not taken are simulated by number, not by time."],
        [
            "speed",
            "1.35 GIPS; simulators 5.3 MIPS",
            f"{rates[0]:.0f} MIPS; RTL {rates[1]:.2f} MIPS",
            "All runs, with the start of each process. Each instruction is issued to a model of the pipeline, and counted by calling context.",
        ],
        [
            "against the simulator",
            "456.6 times, application level; most simulators 1 to 3 orders of magnitude",
            f"{statistics.median(ratios):.0f} times" if ratios else "",
            "The median of the runs of a million instructions or more. The paper's simulator is of instructions, this one of the hardware description. There is one level here.",
        ],
        ["against the micro-profiler", "1.67 times slower", "–", "No such profiler is here."],
        ["lines of a description", "5; 428 in 5 files of the simulator's", f"{lines_changed} at most", "See *Design space*. The paper's change is the number of execution units, from 4 to 2."],
        [
            "a design",
            "11 to 42 seconds; simulator 12 to 46 minutes",
            "{:.1f} to {:.1f} seconds; RTL {:.0f} to {:.0f} seconds".format(*spread(compared)),
            "All programs on one processor. The paper decodes H.264 on several.",
        ],
        ["the design space", "7 minutes; simulator 8 hours", f"{seconds[0]:.0f} seconds; RTL {seconds[1]:.0f} seconds", f"{len(compared)} processors, {len(pairs)} runs."],
        ["slave processors that help", "2 of up to 6, of 7 processors in all", "–", "Several processors on a bus are not simulated."],
        ["execution units of a VLIW processor", "figure 8, without numbers", "–", "Only processors for RISC-V that issue one instruction at a time are here."],
    ]
    return [
        "## Beside the paper",
        "",
        "What the paper's text prints; its micro-profiler's figure in parentheses. An *average* is, as there, the root of the mean square of the errors, over",
        "the cores with their default parameters.",
        "",
        *table(["", "the paper", "here", "what differs"], rows, texts=4),
    ]


def access_errors(pairs):
    """Average errors in percent of accesses to the stack and of others, of programs that have such."""
    local, others = [], []
    for pair in pairs:
        counts = [(side["stack_accesses"], side["loads"] + side["stores"] - side["stack_accesses"]) for side in (pair.estimate, pair.truth)]
        for errors, found, actual in zip((local, others), *counts, strict=True):
            if actual:
                errors.append(found / actual - 1)
    return [100 * runs.deviation(errors) for errors in (local, others)]


def miss_error(pairs, cache):
    """Average error in percent of a cache's misses."""
    return 100 * runs.deviation([pair.estimate[cache] / pair.truth[cache] - 1 for pair in pairs if pair.truth[cache]])


def spread(compared):
    """The least and the most seconds of a processor's programs, of estimates and of the RTL."""
    estimated = [sum(pair.estimate_seconds for pair in pairs) for pairs in compared.values()]
    simulated = [sum(pair.truth_seconds for pair in pairs) for pairs in compared.values()]
    return min(estimated), max(estimated), min(simulated), max(simulated)
