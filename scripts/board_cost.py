#!/usr/bin/env python3
"""What do the recorders cost the app on the board? Makes the table of two boots' COST lines.

usage: board_cost.py CONSOLE CONSOLE KERNEL-RELEASE

Prints docs/board-cost.md. Fails if the boots differ, or if a recorder is missing.
"""

import pathlib
import sys

NANOSECONDS_PER_INSTRUCTION = 2  # -icount shift=1
DEPTHS = (4, 16, 64)
NAMES = {
    "dim": "dim in the VM, nobody profiles",
    "varid-bpf": "varid, BPF program",
    "varid-bpf-nterp": "varid, BPF program, app in nterp",
    "varid-bpf-compiled": "varid, BPF program, app in compiled code",
    "varid-module": "varid, kernel module",
    "varid-perf": "varid, copies of the stack",
    "perf": "perf record",
    "perf-g": "perf record -g",
    "perf-g-compiled": "perf record -g, app in compiled code",
    "perf-dwarf": "perf record --call-graph dwarf",
}
HEAD = """# What profiling costs on the board

Written by `make board-cost`; do not edit. The board is QEMU's Cortex-A57 with Debian's kernel {release}, one CPU. Its clocks count
instructions, 2 ns each, and two boots gave the same {lines} lines to the nanosecond. So a percentage is of *instructions*: a real
processor has caches to be disturbed, and more than one core to write the session on.

The app is a loop under 4, 16 and 64 managed frames in ART 11's interpreter, in code of an ART 11 boot image, where the compiler has inlined some of the
frames, or in ART 14's nterp; `cycles` is the event. Its time without a recorder is
{milliseconds:.1f} ms of CLOCK_MONOTONIC, measured when it has run as long already; what the recorder does meanwhile, writing included,
is in the percentages, because there is one CPU. What it does once, when it starts and sees the app for the first time, is a column of its own.

"""


def cost_lines(console):
    """{(recorder, rate, depth): (samples a second, nanoseconds of the first half, of the second)}, and the lines."""
    lines = [line for line in pathlib.Path(console).read_text(errors="replace").splitlines() if line.startswith("COST ")]
    found = {}
    for line in lines:
        _, recorder, rate, depth, samples, *times = line.split()
        times = [int(time) for time in times]
        first, second = sum(times[: len(times) // 2]), sum(times[len(times) // 2 :])
        found[recorder, int(rate), int(depth)] = int(samples) / (first + second) * 1e9, first, second
    return found, lines


def straight_line(points):
    """The constant and the slope of the line through points that is wrong least (in squares)."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return mean_y - slope * mean_x, slope


def row(found, recorder, rate):
    """A row of the table; None: it was not tried."""
    if (recorder, rate, DEPTHS[0]) not in found:
        return None
    percentages, once, per_sample, rates = [], [], [], []
    for depth in DEPTHS:
        kind = next((kind for kind in ("-nterp", "-compiled") if recorder.endswith(kind)), "")
        _, start_alone, alone = found[f"nothing{kind}", 0, depth]
        real_rate, start, time = found[recorder, rate, depth]
        percentages.append(100 * (time - alone) / alone)
        once.append((start - start_alone * time / alone) / 1e6)
        if rate:
            rates.append(real_rate)
            samples = alone / 1e9 * rate
            per_sample.append((depth, (time - alone) / NANOSECONDS_PER_INSTRUCTION / samples))
    digits = 2 if rate else 4
    cells = [NAMES[recorder], f"{rate:,}" if rate else "", *(f"{percentage:.{digits}f} %" for percentage in percentages)]
    if rate and min(rates) > 0.9 * rate:
        fixed, per_frame = straight_line(per_sample)
        cells += [f"{fixed:,.0f}", f"{abs(per_frame):,.0f}" if abs(per_frame) < 0.5 else f"{per_frame:,.0f}"]
    else:
        cells += ["", ""]
    # A recorder that the rate overwhelms never gets beyond its start.
    cells.append(f"{max(once):,.0f} ms" if cells[-1] else "")
    cells.append(f"{min(rates):,.0f}" if rate else "")
    return "| " + " | ".join(cells) + " |"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    (found, lines), (_, again) = cost_lines(sys.argv[1]), cost_lines(sys.argv[2])
    if lines != again:
        sys.exit("board-cost: the two boots differ:\n" + "\n".join(f"{a}\n{b}" for a, b in zip(lines, again) if a != b))
    *_, alone = found["nothing", 0, DEPTHS[0]]
    print(HEAD.format(release=sys.argv[3], lines=len(lines), milliseconds=alone / 1e6), end="")
    print("| recorder | Hz | " + " | ".join(f"{depth} frames" for depth in DEPTHS)
          + " | instructions a sample, fixed | and a frame | once, at most | samples a second, at least |")
    print("|---" * (len(DEPTHS) + 6) + "|")
    rows = [row(found, recorder, rate) for recorder in NAMES for rate in (0, 100, 997, 10000)]
    for text in filter(None, rows):
        print(text)
    print("""
The fixed part and the part of each managed frame are those of the straight line through the three depths, where the recorder kept
its rate. perf walks no managed frames: its rows are what the same rate costs there. Samples a second are of the app's time with
the recorder: where it is much less than the rate, the recorder took the CPU, or samples were lost.""")


if __name__ == "__main__":
    main()
