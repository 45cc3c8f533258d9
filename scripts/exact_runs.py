"""Runs what `make exact-paper` prints: programs in rounds, alone and counted. Prints nothing itself."""

import json
import re
import shutil
import statistics
import subprocess
import typing

JAVA = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"
# A run has converged if the last rounds take the same time, but for this part.
LAST = 5
CONVERGED = 0.05
# How much is counted, by the options of `varid exact`.
MODES = {"sites": [], "blocks": ["--bytecodes"]}


class Program(typing.NamedTuple):
    name: str
    main: str
    # The benchmark of the paper that does similar work, if there is one.
    like: str | None
    # Of the programs' folder.
    files: tuple = ()


PROGRAMS = (
    Program("H2", "SqlLoad", "h2"),
    Program("ecj", "CompileTree", "eclipse", ("sources",)),
    Program("Lucene", "Indexing", "luindex"),
    Program("Xalan", "Transform", "xalan"),
    Program("Rhino", "Browser", None),
    Program("Jython", "Script", "jython"),
)


class Effort(typing.NamedTuple):
    """How much is measured."""

    rounds: int
    repetitions: int


FULL = Effort(rounds=60, repetitions=3)
SMALL = Effort(rounds=2, repetitions=1)


class Rounds(typing.NamedTuple):
    """The last rounds of runs of a program."""

    # Milliseconds of a round: the least median.
    time: float
    # The least part by which the longest round exceeds the shortest.
    spread: float

    def has_converged(self):
        return self.spread <= CONVERGED


class Nodes(typing.NamedTuple):
    """The contexts of a program that works for one round. Those of all threads are merged."""

    tree: int
    sites: int
    natives: int
    # Bytes of the file of contexts, with the counts of single bytecodes.
    bytes: int


class Cost(typing.NamedTuple):
    alone: Rounds
    # By MODES.
    counted: dict
    nodes: Nodes
    # Sentences on what the counts lack.
    incomplete: list

    def overhead(self, mode):
        return self.counted[mode].time / self.alone.time


class Runner:
    """The programs' folder, and the folder for sessions."""

    def __init__(self, release, folder):
        self.varid = release / "varid"
        self.programs = release / "jvm/programs"
        self.folder = folder
        # Sentences on what counts lack.
        self.incomplete = []

    def java(self, program, rounds):
        home = self.programs
        classes = f"{home}/classes:{home}/root/usr/share/java/*:{home}/apart/usr/share/java/*"
        if program.name != "Xalan":
            # It would be found as the transformer of others.
            classes = classes.replace("apart/usr/share/java/*", "apart/usr/share/java/rhino.jar")
        main = f"org.example.programs.{program.main}"
        return [JAVA, "-Xmx2g", "-cp", classes, main, f"{rounds}x", *(str(home / file) for file in program.files)]

    def run(self, command):
        """Runs a program. Returns the milliseconds of its rounds."""
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"exact-paper: {' '.join(map(str, command))} has failed:\n{done.stderr}")
        self.incomplete += re.findall(r"varid: incomplete: process \d+: (.*)", done.stderr)
        line = next(line for line in done.stdout.splitlines() if line.startswith("microseconds"))
        return [int(value) / 1000 for value in line.split()[1:]]

    def count(self, program, options, rounds):
        """Counts a program. Returns the session and the milliseconds of its rounds."""
        session = self.folder / "session"
        shutil.rmtree(session, ignore_errors=True)
        # Room for the trees of all programs.
        command = [self.varid, "exact", *options, "--nodes", "4G", "-o", session, "--", *self.java(program, rounds)]
        return session, self.run(command)

    def contexts(self, session):
        """Returns the contexts of a session as (caller's index, call site, method)."""
        command = [self.varid, "metrics", "--format", "json", "--section", "contexts", "-i", session]
        printed = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=True)
        contexts = json.loads(printed.stdout)["contexts"]
        return [(context.get("caller"), context.get("bci"), context["method"]) for context in contexts]

    def nodes(self, program):
        session, _ = self.count(program, [], 1)
        contexts = self.contexts(session)
        session, _ = self.count(program, MODES["blocks"], 1)
        natives = self.contexts(session)
        size = (session / "contexts.data").stat().st_size
        return Nodes(merged(contexts), len(contexts), len(natives), size)

    def cost(self, program, effort):
        """Measures a program alone and counted, in turn."""
        self.incomplete = []
        times = {mode: [] for mode in ("alone", *MODES)}
        for _ in range(effort.repetitions):
            times["alone"].append(self.run(self.java(program, effort.rounds)))
            for mode, options in MODES.items():
                times[mode].append(self.count(program, options, effort.rounds)[1])
        last = {mode: last_rounds(of) for mode, of in times.items()}
        nodes = self.nodes(program)
        incomplete = list(dict.fromkeys(self.incomplete))
        return Cost(last.pop("alone"), last, nodes, incomplete)


def last_rounds(runs):
    """The last rounds of several runs."""
    ends = [run[-LAST:] for run in runs]
    return Rounds(min(map(statistics.median, ends)), min(max(end) / min(end) - 1 for end in ends))


def merged(contexts):
    """How many contexts there are if call sites do not count."""
    known = {}
    # By the index of a context: the number of the merged one. Callers precede what they call.
    numbers = []
    for caller, _, method in contexts:
        key = (None if caller is None else numbers[caller], method)
        numbers.append(known.setdefault(key, len(known)))
    return len(known)
