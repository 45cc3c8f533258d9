#!/usr/bin/env -S python3 -B
"""What does it cost to count exactly, and how large are the trees? Runs Debian's Java programs and writes docs/exact-costs.md.

usage: exact_paper.py RELEASE-FOLDER DOCUMENT [small]      after make build
Takes half an hour, best on a machine with nothing else to do; `small` shows in some minutes that all of it runs, and measures little.
The programs are put below RELEASE-FOLDER/jvm by tests/jvm/programs/build.sh.
"""

import math
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from estimate_runs import machine, under_load
from markdown_tables import table

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/oracle"))
from metrics import Contexts  # noqa: E402

JAVA = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"


@dataclass(frozen=True)
class Effort:
    seconds: int
    repetitions: int


FULL = Effort(60, 2)
SMALL = Effort(6, 1)


@dataclass(frozen=True)
class Program:
    """A program, and the benchmark of DaCapo 9.12 that does the same kind of work."""

    name: str
    main: str
    benchmark: str
    # Of the programs' folder.
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Printed:
    """What JP2's tables 2 and 3 print of a benchmark."""

    # Nodes of the tree: without call sites, with them, with native methods, too.
    nodes: tuple[int, int, int]
    # Times of the run: without call sites, with them, with native methods, with basic blocks, too.
    overhead: tuple[float, float, float, float]


PROGRAMS = (
    Program("ecj", "CompileTree", "eclipse", ("sources",)),
    Program("H2", "SqlLoad", "h2"),
    Program("Lucene", "Indexing", "luindex"),
    Program("Jython", "Script", "jython"),
    Program("FOP", "Documents", "fop"),
)
PRINTED = {
    "eclipse": Printed((13_667_546, 20_941_526, 21_709_963), (4.73, 5.51, 13.51, 25.94)),
    "h2": Printed((142_569, 328_960, 354_491), (10.63, 11.91, 37.46, 71.14)),
    "luindex": Printed((77_963, 235_326, 250_349), (9.60, 10.14, 28.59, 59.81)),
    "jython": Printed((10_481_382, 21_147_785, 23_167_434), (10.02, 17.38, 68.12, 94.44)),
    "fop": Printed((263_951, 602_522, 667_264), (6.34, 8.31, 15.77, 31.04)),
}
# Over all of DaCapo's benchmarks.
PRINTED_MEANS = (8.55, 9.63, 20.55, 34.21)


@dataclass(frozen=True)
class Trees:
    """The nodes of a program's trees, those of its threads made one, after so many rounds of work."""

    rounds: int
    without_sites: int
    with_sites: int
    with_natives: int


class Tools:
    def __init__(self, release, folder):
        self.varid, self.folder = release / "varid", folder
        self.programs = release / "jvm/programs"

    def run(self, program, seconds, options=None):
        """Runs a program, counted if there are options. Returns how many rounds it had in all, and in the second half."""
        before = [] if options is None else [self.varid, "exact", "-q", *options, "-o", self.session(), "--"]
        subprocess.run(["rm", "-rf", self.session()], check=True)
        classes = f"{self.programs}/classes:{self.programs}/root/usr/share/java/*"
        files = [self.programs / name for name in program.files]
        command = [*before, JAVA, "-Xmx1g", "-cp", classes, f"org.example.programs.{program.main}", str(seconds), *files]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        lines = [line.split() for line in run.stdout.splitlines() if " rounds, in the second half " in line]
        if run.returncode != 0 or not lines:
            sys.exit(f"{program.name}: exit status {run.returncode}\n{run.stderr}")
        return int(lines[-1][0]), int(lines[-1][-1])

    def session(self):
        return self.folder / "session"

    def nodes(self):
        """Returns the nodes of the last session: by callers and methods, and with call sites, of all threads together."""
        contexts = Contexts((self.session() / "contexts.data").read_bytes())
        sites, plain, by_site, by_method = {}, {}, [], []
        for parent, site, method in contexts.nodes:
            place = None if site is None else contexts.sites[site][:2]
            above = (None, None) if parent is None else (by_site[parent], by_method[parent])
            by_site.append(sites.setdefault((above[0], place, method), len(sites)))
            by_method.append(plain.setdefault((above[1], method), len(plain)))
        return len(plain), len(sites)


def trees(tools, program):
    """Counts some rounds of a program."""
    rounds, _ = tools.run(program, 1, [])
    without_sites, with_sites = tools.nodes()
    tools.run(program, 1, ["--bytecodes"])
    _, with_natives = tools.nodes()
    return Trees(rounds, without_sites, with_sites, with_natives)


def overhead(tools, program, effort):
    """Returns the seconds of a round without counting, and how many times longer it takes with calls and with blocks, too."""
    variants = (None, [], ["--bytecodes"])
    best = [0] * len(variants)
    for _ in range(effort.repetitions):
        for index, options in enumerate(variants):
            best[index] = max(best[index], tools.run(program, effort.seconds, options)[1])
    return effort.seconds / 2 / best[0], best[0] / best[1], best[0] / best[2]


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def head(is_small):
    lines = ["# What exact counts cost", "", "Written by `make exact-paper`; do not edit."]
    lines += [
        "JP2 (Sarimbekov, Sewe, Binder, Moret, Mezini: PPPJ 2011) counts calls by calling context in rewritten classes, as",
        "[`varid exact`](guide-exact.md) does. Tables 2 and 3 of the paper on it print the sizes of its trees and the times of DaCapo 9.12 on a",
        "HotSpot of 2006 and twelve cores. That suite is not in Debian: here are programs of Debian that do the same kind of work, beside the printed",
        "figures of the benchmark of that kind. The programs and the work differ, so figures beside each other tell an order of magnitude.",
        "",
        f"Measured on {machine()}, with OpenJDK 17.",
        "",
    ]
    return lines + (["**A small run**: it shows that all of it runs; what it measures is rough.", ""] if is_small else [])


def tree_table(found):
    lines = ["## Nodes of the trees (table 2)", ""]
    lines += [
        "Native methods are nodes with `--bytecodes`, if their call site names them for certain; JP2 wraps each of them. Trees of threads are made one.",
        "JP2 counts one iteration; here it is what the program does in a second, a round at least.",
        "",
    ]
    rows = []
    for program, of in found.items():
        jp2 = PRINTED[program.benchmark].nodes
        ours = (of.without_sites, of.with_sites, of.with_natives)
        rows.append((program.name, program.benchmark, of.rounds, *(f"{value:,}" for pair in zip(ours, jp2, strict=True) for value in pair)))
    kinds = [title for kind in ("by method", "with call sites", "with natives") for title in (kind, "JP2")]
    return lines + table(("program", "DaCapo", "rounds", *kinds), rows, 2)


def overhead_table(found, load):
    lines = ["## Overhead (table 3)", ""]
    lines += [
        "How many times longer a round of work takes: in the second half of a run, in which most code is compiled, at its fastest in interleaved",
        "runs. `calls` has call sites: there is no mode without them. `--bytecodes` adds native methods and basic blocks.",
        "",
    ]
    rows = []
    for program, (seconds, calls, blocks) in found.items():
        jp2 = PRINTED[program.benchmark].overhead
        rows.append((program.name, program.benchmark, f"{seconds:.3f}", f"{calls:.2f}", f"{jp2[1]:.2f}", f"{blocks:.2f}", f"{jp2[2]:.2f}", f"{jp2[3]:.2f}"))
    of_same = [PRINTED[program.benchmark].overhead for program in found]
    ours = [mean([of[index] for of in found.values()]) for index in (1, 2)]
    jp2 = [mean([of[index] for of in of_same]) for index in (1, 2, 3)]
    rows.append(("geometric mean", "these", "", f"{ours[0]:.2f}", f"{jp2[0]:.2f}", f"{ours[1]:.2f}", f"{jp2[1]:.2f}", f"{jp2[2]:.2f}"))
    rows.append(("", "all 13", "", "", *(f"{value:.2f}" for value in (PRINTED_MEANS[1],)), "", *(f"{value:.2f}" for value in PRINTED_MEANS[2:])))
    titles = ("program", "DaCapo", "round, s", "calls", "JP2, call sites", "`--bytecodes`", "JP2, natives", "JP2, natives and blocks")
    lines += table(titles, rows, 2)
    said = f"The load average was {load.before:.1f} before these measurements and {load.after:.1f} after them"
    return lines + [f"{said}: {'other programs ran beside them' if load.is_busy() else 'the machine had nothing else to do'}.", ""]


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["small"]):
        sys.exit(__doc__.split("\n\n")[1])
    release, document = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    effort = SMALL if sys.argv[3:] else FULL
    subprocess.run([ROOT / "tests/jvm/programs/build.sh", release], check=True)
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(release, Path(folder))
        found, load = under_load(lambda: {program: overhead(tools, program, effort) for program in PROGRAMS})
        pages = head(effort == SMALL) + tree_table({program: trees(tools, program) for program in PROGRAMS}) + overhead_table(found, load)
    document.write_text("\n".join(pages).rstrip() + "\n")
    print(f"exact-paper: {document}")


if __name__ == "__main__":
    main()
