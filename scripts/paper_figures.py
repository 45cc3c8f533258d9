"""What did the boots of `make paper` print? Reads the PAPER lines of their consoles; tests/board/paper.sh and scripts/paper.sh say what is in them."""

import csv
import pathlib
import statistics
import typing
from collections import defaultdict

WORKLOADS = {
    "math": "0xBench Math",
    "cradle": "Newton's Cradle",
    "vm": "0xBench VM",
    "scene": "0xBench 3D",
}


class Figures:
    """What a boot has printed."""

    def __init__(self, console):
        self.lines = []
        for line in pathlib.Path(console).read_text(errors="replace").splitlines():
            if line.startswith("PAPER "):
                self.lines.append(line.strip().split(" ", 2)[1:])

    def of(self, kind):
        """What follows the kind in its lines."""
        return [rest for each, rest in self.lines if each == kind]


class Time(typing.NamedTuple):
    """What a run took: nanoseconds of the whole command, and of each call behind the warm-up."""

    whole: int
    calls: list

    def mean(self):
        """Of a call."""
        return statistics.fmean(self.calls)


def times(figures, kind):
    """{(workload, recorder): its time}"""
    found = {}
    for line in figures.of(kind):
        workload, recorder, _, total, _, *calls = line.split()
        found[workload, recorder] = Time(int(total), [int(call) for call in calls])
    return found


def invokes(figures):
    """{workload: how many calls of methods a run makes, the VM's start left out}"""
    found = defaultdict(dict)
    for line in figures.of("invokes"):
        workload, length, count = line.split()
        found[workload][int(length)] = int(count)
    return {workload: of[2] - of[1] for workload, of in found.items() if 1 in of and 2 in of}


def sizes(figures):
    """{(workload, what): [(length, bytes)]}, {workload: bytes of its dex}, bytes of the framework's log."""
    found = defaultdict(list)
    for line in figures.of("size"):
        workload, what, length, size = line.split()
        found[workload, what].append((int(length), int(size)))
    code = {line.split()[0]: int(line.split()[1]) for line in figures.of("code")}
    return found, code, max((int(line.split()[1]) for line in figures.of("framework")), default=0)


def plain(figures):
    """{workload: {image: samples}} of plain perf."""
    found = defaultdict(dict)
    for line in figures.of("perf"):
        workload, samples, image = line.split()
        # As varid calls it.
        found[workload]["[kernel]" if image.startswith("[kernel") else image] = int(samples)
    return found


def tables(figures):
    """{(workload, table): [row of the CSV]} of varid."""
    found = defaultdict(list)
    for line in figures.of("varid"):
        workload, table, text = line.split(" ", 2)
        found[workload, table].append(text)
    return {key: list(csv.DictReader(lines)) for key, lines in found.items()}


def calls(figures):
    """{workload: [row of the CSV]} of varid's call graphs."""
    found = defaultdict(list)
    for line in figures.of("calls"):
        workload, text = line.split(" ", 1)
        found[workload].append(text)
    return {workload: list(csv.DictReader(lines)) for workload, lines in found.items()}


def table(header, rows):
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def percent(part, whole, digits=1):
    """How many percent; a dash of nothing."""
    return f"{100 * part / whole:.{digits}f} %" if whole else "-"
