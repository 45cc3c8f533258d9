#!/usr/bin/env python3
"""Which instructions does a sample cost on the board? Makes a table of what QEMU counted.

usage: board_instructions.py FOLDER VARID [FUNCTIONS]

FOLDER/RECORDER.DEPTH.CALLS/{console,counts} are those of tests/board/instructions.sh: each recorder's boots with few and with many
calls, whose difference has nothing of the start and of the end. VARID is its program with symbols. Prints the part of
docs/board-cost.md that lists groups of functions; FUNCTIONS: to a file, all functions.
"""

import bisect
import collections
import pathlib
import re
import subprocess
import sys

DEPTHS = (4, 64)
RECORDERS = {"varid": "dim", "perf": "nothing"}  # and the run without it
KERNEL = 1 << 63
VARID_ENDS = 1 << 32  # it is not relocated; everything else in user space lies above
USER = None  # the app, and perf, which reads at its end once more what it has recorded
# By the first pattern that a function's name begins with.
GROUPS = [
    ("the interrupt: entry, controller, return", r"el0|el1|vectors|ret_to_|gic_|handle_(irq|percpu|domain)|generic_handle|__?irq_|irq_|do_interrupt"
     r"|__radix|radix_|idle_cpu|call_on_irq|do_notify|__el0|rcu_irq|rcu_nmi|enter_from|exit_to|irqentry|preempt_count|domain_"),
    ("the PMU's driver", r"armv8pmu|armpmu|kvm_.*pmu|perf_adjust|perf_pmu|read_pmev|write_pmev|pmu_|perf_event_task_tick|perf_ctx|__sw_hweight|_find_"),
    ("the event's page for readers in user space", r"perf_event_update_userpage|arch_perf_update|calc_timer|arch_counter|sched_clock|local_clock"),
    ("perf's sample, its callchain and its ring", r"perf_|__perf_|get_perf_callchain|get_callchain|put_callchain|__output|__task_pid|unwind_|bsearch"),
    ("varid's BPF program", r"bpf_prog_"),
    ("reads of the app's memory", r"__arch_copy_from|copy_from_user|__check_object|check_stack_object|is_vmalloc|__check_heap|bpf_probe_read|check_heap"),
    ("BPF's ring", r"__bpf_ringbuf|bpf_ringbuf"),
    ("BPF's maps and helpers", r"bpf_|jhash|__htab|lookup_nulls|percpu_array|array_map|ktime_get_mono|htab_|__bpf|memcmp|__pi_memcmp"),
    ("memory copied and cleared by the kernel", r"(__pi_|__)?mem(move|cpy|set)|copy_page|clear_page|copy_to|__arch_copy_to|_copy_to"),
    ("varid: records decoded", r"u .*varid_sampler|u .*varid_shim"),
    ("varid: samples attributed", r"u .*varid_(vm|unwind|process|symbolizer|dex)"),
    ("varid: the recording written", r"u .*varid_recording"),
    ("varid: the session around both", r"u .*varid"),
    ("varid: memory copied and allocated", r"u "),
    (USER, r"user$"),
    ("system calls, switches, faults, the files written", r""),
]


def counts_of(folder):
    """How often the instruction at each address was executed."""
    lines = (folder / "counts").read_text().split("\n")
    return {int(address, 16): int(count) for address, count in (line.split() for line in lines if line)}


def samples_of(folder):
    found = re.search(r"^SAMPLES (\d+)", (folder / "console").read_text(errors="replace"), re.MULTILINE)
    if not found:
        sys.exit(f"board_instructions: {folder}/console does not say how many samples there were")
    return int(found[1])


class Symbols:
    """The function at an address."""

    def __init__(self, console, varid):
        listed = re.search(r"^SYMBOLS\s(.*?)^END", console.read_text(errors="replace"), re.MULTILINE | re.DOTALL)
        if not listed:
            sys.exit(f"board_instructions: {console} has no symbols of the kernel")
        symbols = [line.split() for line in listed[1].splitlines()]
        found = [(int(one[0], 16), one[2]) for one in symbols if len(one) >= 3 and one[1] in "tTwW" and not one[2].startswith("$")]
        demangled = subprocess.run(["nm", "-C", "--defined-only", varid], check=True, capture_output=True, text=True).stdout
        symbols = [line.split(" ", 2) for line in demangled.splitlines()]
        found += [(int(address, 16), f"u {name}") for address, kind, name in symbols if kind in "tTwW" and not name.startswith("$")]
        self.found = sorted(found)
        self.addresses = [address for address, _ in self.found]

    def name(self, address):
        if VARID_ENDS <= address < KERNEL:
            return "user"
        at = bisect.bisect_right(self.addresses, address) - 1
        return self.found[at][1] if at >= 0 else "unknown"


def per_sample(folder, recorder, depth, symbols):
    """The instructions of each function that one more sample costs."""
    found = collections.Counter()
    for name, sign in ((recorder, 1), (RECORDERS[recorder], -1)):
        runs = sorted(folder.glob(f"{name}.{depth}.*"), key=lambda run: int(run.suffix[1:]))
        for run, side in zip(runs, (-sign, sign), strict=True):
            for address, count in counts_of(run).items():
                found[address] += side * count
        if sign == 1:
            few, many = map(samples_of, runs)
    functions = collections.Counter()
    for address, count in found.items():
        if count and group_of(symbols.name(address)):
            functions[symbols.name(address)] += count / (many - few)
    return functions


def group_of(name):
    return next(title for title, pattern in GROUPS if re.match(pattern, name))


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    console = next(folder.glob(f"varid.{DEPTHS[0]}.*")) / "console"
    symbols = Symbols(console, sys.argv[2])
    costs = {(recorder, depth): per_sample(folder, recorder, depth, symbols) for depth in DEPTHS for recorder in RECORDERS}
    columns = [(recorder, depth) for depth in DEPTHS for recorder in RECORDERS]
    sums = {column: collections.Counter() for column in columns}
    for column in columns:
        for name, cost in costs[column].items():
            sums[column][group_of(name)] += cost
    print("| instructions a sample | varid, 4 frames | perf -g | varid, 64 frames | perf -g |\n|---|---|---|---|---|")
    for title in filter(None, dict(GROUPS)):
        cells = [f"{sums[column][title]:,.0f}" for column in columns]
        if any(cell not in ("0", "-0") for cell in cells):
            print(f"| {title} | " + " | ".join(cells) + " |")
    print("| **all** | " + " | ".join(f"{sum(sums[column].values()):,.0f}" for column in columns) + " |")
    if len(sys.argv) == 4:
        with open(sys.argv[3], "w", encoding="utf-8") as out:
            names = sorted({name for column in columns for name in costs[column]}, key=lambda name: -costs[columns[0]][name])
            for name in names:
                cells = [f"{costs[column][name]:9.1f}" for column in columns]
                if any(abs(costs[column][name]) >= 1 for column in columns):
                    out.write(" ".join(cells) + f"  {group_of(name)}: {name}\n")


if __name__ == "__main__":
    main()
