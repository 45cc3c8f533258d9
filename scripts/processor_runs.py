"""Runs what `make estimate-study` prints: programs on simulated processors, and estimates of them. Prints nothing itself."""

import json
import math
import resource
import subprocess
import sys
import typing
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RTL = ROOT / "tests/rtl"
GUEST = ROOT / "tests/guest"

sys.path.insert(0, str(RTL))
import riscv  # noqa: E402
import truth  # noqa: E402

# The builds of each program that are compared: compiler, level, machine. All cores execute the first one.
BUILDS = ("gcc-O2-rv32im", "clang-Os-rv32imc")


class Guest(typing.NamedTuple):
    """A program in one build."""

    program: str
    build: str
    path: Path
    # Others have written it, and no processor's description was made with it.
    is_foreign: bool


class Configuration(typing.NamedTuple):
    """A line of configurations.tsv."""

    name: str
    core: str
    # Of `varid estimate`.
    options: tuple

    def settings(self):
        """The values that differ from the target's own."""
        return [word for word in self.options if "=" in word]


class Pair(typing.NamedTuple):
    """A program on a processor: what it took and what varid says, with the seconds of processor time of each."""

    guest: Guest
    truth: dict
    estimate: dict
    truth_seconds: float
    estimate_seconds: float

    def off(self):
        """The estimate's cycles beyond the true ones."""
        return self.estimate["cycles"] - self.truth["cycles"]

    def error(self):
        """The same as a part of the true ones."""
        return self.off() / self.truth["cycles"]


class Tools:
    """The programs that are run, and the folder of what is built."""

    def __init__(self, release, build):
        self.varid = release / "varid"
        self.build = build

    def prepare(self):
        """Builds the simulators and the programs."""
        for command in (
            [RTL / "build.sh", self.build],
            [GUEST / "build.sh", self.build / "elf", *(f"*-{build}" for build in BUILDS)],
            [GUEST / "registries.sh", self.build / "crates", self.build / "registries"],
        ):
            subprocess.run(command, check=True)

    def guests(self):
        """All programs, by name."""
        found = []
        for folder, is_foreign in ((self.build / "elf", False), (self.build / "registries", True)):
            for build in BUILDS:
                suffix = f"-{build}.elf"
                found += [Guest(path.name.removesuffix(suffix), build, path, is_foreign) for path in folder.glob(f"*{suffix}")]
        return sorted(found, key=lambda guest: (guest.is_foreign, guest.program, BUILDS.index(guest.build)))

    def estimate(self, guest, options):
        """What varid says of a program, and the seconds that it takes."""
        output, seconds = timed([self.varid, "estimate", *options, "--summary", "json", guest.path])
        return json.loads(output), seconds

    def simulate(self, guest, configuration):
        """What a program takes in the simulator, and the seconds that it takes."""
        profile = self.build / "study.tsv"
        _, seconds = timed([self.build / configuration.name, guest.path, profile])
        totals, rows = truth.read_profile(profile)
        return truth.summarize(riscv.Program(guest.path), totals, rows, None), seconds

    def compare(self, configuration, guests):
        """Each program that a processor executes, in both ways."""
        pairs = []
        for guest in guests:
            if not truth.executes(configuration.core, guest.path.stem):
                continue
            actual, truth_seconds = self.simulate(guest, configuration)
            estimate, estimate_seconds = self.estimate(guest, configuration.options)
            pairs.append(Pair(guest, actual, estimate, truth_seconds, estimate_seconds))
        return pairs


def timed(command):
    """What a program prints, and its seconds of processor time. No other may run beside it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"estimate-study: {command[0]} has failed:\n{done.stderr}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def configurations():
    """The processors that are simulated, in the order of the file."""
    return [Configuration(name, core, tuple(options)) for name, (core, options) in truth.configurations().items()]


def code_size(guest):
    """Bytes of a program's instructions."""
    output, _ = timed(["riscv64-unknown-elf-size", "-A", guest.path])
    return next(int(line.split()[1]) for line in output.splitlines() if line.startswith(".text "))


def deviation(errors):
    """The root of the mean square of errors: what the paper calls the average error."""
    return math.sqrt(sum(error * error for error in errors) / len(errors))
