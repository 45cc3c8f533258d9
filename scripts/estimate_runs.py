"""Runs what `make estimate-paper` prints: counts programs, estimates them, times them, calibrates a VM. Prints nothing itself."""

import json
import math
import os
import re
import statistics
import subprocess
import typing
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "tests/system/jvm/estimate"
JDK = Path("/usr/lib/jvm/java-17-openjdk-amd64/bin")
ECJ = "org.eclipse.jdt.internal.compiler.batch.Main"
# The programs whose cycles in the simulation of the hardware description are known, and their method caches: size, blocks.
PROGRAMS = {
    "Pump": {(4096, 16): 372_882, (2048, 16): 372_908, (1024, 16): 383_015, (1024, 4): 387_614},
    "Tasks": {(4096, 16): 103_541, (2048, 16): 103_597, (1024, 16): 103_861, (1024, 4): 108_039},
    "Sort": {(4096, 16): 305_612, (2048, 16): 305_612, (1024, 16): 305_651, (1024, 4): 306_138},
    "Fir": {(4096, 16): 684_198, (2048, 16): 684_267, (1024, 16): 684_267, (1024, 4): 690_512},
}
# How `varid exact` counts, by what is printed about it.
COUNTED = {"calls": [], "bytecodes": ["--bytecodes"], "order of calls": ["--call-order"]}
TARGET = "jop-2011"


class Effort(typing.NamedTuple):
    """How much is measured."""

    # Of each kernel in a VM without a JIT, and in one with it.
    interpreted: int
    compiled: int
    launches: int
    calibration: str


FULL = Effort(interpreted=101, compiled=3000, launches=5, calibration="60s")
SMALL = Effort(interpreted=15, compiled=100, launches=2, calibration="8s")


class Kernel(typing.NamedTuple):
    """A kernel under the interpreter: nanoseconds, and the parts of the estimate by opcode."""

    measured: float
    estimate: float
    low: float
    high: float
    bytecodes: int
    parts: dict

    def error(self):
        """Of the estimate, as a part of what was measured."""
        return self.estimate / self.measured - 1


class Load(typing.NamedTuple):
    """The machine's load averages of a minute, before and after a measurement. The measurement itself is about 1 of them."""

    before: float
    after: float

    def is_busy(self):
        """Whether other programs took a part of the processors that the measurement can have noticed."""
        return max(self) > 2.0


def under_load(measure):
    """Measures, and returns what was found and the load."""
    before = os.getloadavg()[0]
    found = measure()
    return found, Load(before, os.getloadavg()[0])


def machine():
    """The processor's name, and how many there are."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else os.uname().machine}, {os.cpu_count()} processors"


class Tools:
    """The programs that are run, and the folder for what they write."""

    def __init__(self, release, folder):
        self.varid = release / "varid"
        self.release = release
        self.folder = folder

    def run(self, *command):
        """Runs a program and returns what it prints."""
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"estimate-paper: {command[0]} has failed:\n{done.stderr}")
        return done.stdout

    def compile(self, compiler):
        """Compiles the sources and returns the folder of the classes. None: the compiler cannot be fetched."""
        classes = self.folder / compiler
        classes.mkdir()
        if compiler == "javac":
            mains = [SOURCES / "Embedded.java", SOURCES / "Kernels.java"]
            self.run(JDK / "javac", "--release", "8", "-Xlint:-options", "-sourcepath", SOURCES, "-d", classes, *mains)
            return classes
        fetched = subprocess.run(
            [ROOT / "tests/board/packages.sh", "amd64", "bookworm", "libeclipse-jdt-core-java"],
            stdout=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "CARGO_TARGET_DIR": str(self.release.parent)},
            text=True,
        )
        if fetched.returncode:
            return None
        packages = self.folder / "packages"
        for package in fetched.stdout.split():
            self.run("dpkg-deb", "-x", package, packages)
        jar = packages / "usr/share/java/eclipse-jdt-core.jar"
        self.run(JDK / "java", "-cp", jar, ECJ, "-source", "1.5", "-target", "1.5", "-nowarn", "-g", "-d", classes, SOURCES)
        return classes

    def count(self, session, options, classes, *main):
        """Counts a program into a session of this name, and returns the session."""
        session = self.folder / session
        self.run(self.varid, "exact", *options, "-o", session, "--", JDK / "java", "-cp", classes, *main)
        return session

    def estimate(self, session, target, method, *options):
        """Returns the summary of an estimate."""
        text = self.run(self.varid, "estimate", "--target", target, "--within", method, "--summary", "json", *options, session)
        return json.loads(text)

    def times(self, options, classes, runs, before=()):
        """{kernel: nanoseconds} of a VM."""
        printed = self.run(*before, JDK / "java", *options, "-cp", classes, "Kernels", runs)
        rows = (line.split(" ") for line in printed.splitlines())
        return {name: float(time) for name, _, time in rows}


def medians(runs):
    """{name: median} of several {name: value}."""
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def accuracy(tools, session):
    """{program: {cache: cycles}} for all caches of PROGRAMS, in one pass over the order of calls each."""
    sweep = ["--sweep", "method_cache.size=1K,2K,4K", "--sweep", "method_cache.blocks=4,16"]
    found = {}
    for program in PROGRAMS:
        caches = tools.estimate(session, TARGET, f"emb.{program}.run", *sweep)["sweep"]
        found[program] = {(cache["size"], cache["blocks"]): cache["cycles"] for cache in caches}
    return found


def assumed(tools, session):
    """{program: (cycles if each access misses, if each hits)}"""
    both = lambda program: tuple(
        tools.estimate(session, TARGET, f"emb.{program}.run", "--assume-cache", cache)["cycles"] for cache in ("miss", "hit")
    )
    return {program: both(program) for program in PROGRAMS}


def case_study(tools, session, sizes, blocks):
    """{program: {cache: (cycles, misses, hits)}}"""
    sweep = ["--sweep", f"method_cache.size={','.join(map(str, sizes))}", "--sweep", f"method_cache.blocks={','.join(map(str, blocks))}"]
    found = {}
    for program in PROGRAMS:
        caches = tools.estimate(session, TARGET, f"emb.{program}.run", *sweep)["sweep"]
        found[program] = {(cache["size"], cache["blocks"]): (cache["cycles"], cache["misses"], cache["hits"]) for cache in caches}
    return found


def overhead(tools, classes, effort):
    """{how it is counted, and "none": {kernel: nanoseconds}}, with the JIT."""
    found = {"none": medians([tools.times([], classes, effort.compiled) for _ in range(effort.launches)])}
    for name, options in COUNTED.items():
        runs = []
        for launch in range(effort.launches):
            session = tools.folder / f"overhead-{name.replace(' ', '-')}-{launch}"
            runs.append(tools.times([], classes, effort.compiled, before=[tools.varid, "exact", "-q", *options, "-o", session, "--"]))
        found[name] = medians(runs)
    return found


def calibrate(tools, vm, clock, effort):
    """Measures the costs of a VM: the path of its table, and what varid has printed."""
    table = tools.folder / f"{clock}.toml"
    return table, tools.run(tools.varid, "calibrate", "--vm", vm, "--clock", clock, "--time", effort.calibration, "-o", table)


def agreement(printed):
    """r, slope and intercept of two clocks, and the number of instructions, of what `varid calibrate` has printed."""
    found = re.search(r"r = (\S+), slope (\S+), intercept (\S+) ns, (\d+)", printed)
    return tuple(map(float, found.groups())) if found else (math.nan,) * 4


def residuals(printed):
    """The largest residuals of the line of two clocks, as `varid calibrate` has printed them."""
    found = re.search(r"^largest residuals +(.*)$", printed, re.MULTILINE)
    return found[1] if found else "–"


def part(printed, title):
    """The lines below a title of what `varid calibrate` has printed, without the head of the table."""
    _, _, rest = printed.partition(f"# {title}")
    return rest.partition("\n\n")[0].splitlines()[2:]


def predict(tools, table, session, classes, effort):
    """{kernel: what was measured and estimated}"""
    measured = medians([tools.times(["-Xint"], classes, effort.interpreted) for _ in range(effort.launches)])
    found = {}
    for name, time in measured.items():
        summary = tools.estimate(session, table, f"Kernels.{name}", "--opcodes", "--measured", f"{time / 1e6:.6f}ms")
        parts = {one["opcode"]: one["cycles"] for one in summary["opcodes"]}
        found[name] = Kernel(time, summary["cycles"], summary["low"], summary["high"], summary["instructions"], parts)
    return found
