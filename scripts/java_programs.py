#!/usr/bin/env python3
"""What does varid say of real Java programs? Records them and writes a table for each into a document.

usage: java_programs.py RELEASE-FOLDER DOCUMENT [SECONDS]      after make build, as root
Each program works for SECONDS [default: 12] in each JVM: Debian 12's 17 at 1 and at 10 kHz, Debian 13's 21, and 25 for one of them.
The programs and the JVMs are put below RELEASE-FOLDER/jvm by tests/jvm/build.sh and tests/jvm/programs/build.sh.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Of the stacks with Java code: more incomplete ones fail the script.
MOST_INCOMPLETE = 0.005
SHOWN = 10
# At more, the JVM has one processor only, so that one is left for varid.
MOST_BESIDE = 5000
LAYERS = ("app", "framework", "vm", "native", "kernel")


@dataclass(frozen=True)
class Program:
    name: str
    main: str
    does: str
    # Of the programs' folder.
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    version: int
    hertz: int


PROGRAMS = (
    Program("ecj", "CompileTree", "Eclipse's compiler compiles the sources of commons-collections", ("sources",)),
    Program("H2", "SqlLoad", "transactions and joins in a database in memory"),
    Program("Lucene", "Indexing", "texts are indexed and searched"),
    Program("Jython", "Script", "a Python program that counts primes and words"),
    Program("FOP", "Documents", "a document of fifty pages is formatted as PDF"),
)
RUNS = (Run(17, 997), Run(17, 9973), Run(21, 997))
NEWEST = Run(25, 997)


@dataclass
class Counts:
    """What the samples of a recording say."""

    samples: int = 0
    java: int = 0
    incomplete: int = 0
    unattributed: int = 0
    lost: int = 0
    layers: Counter = field(default_factory=Counter)
    methods: Counter = field(default_factory=Counter)
    reasons: Counter = field(default_factory=Counter)


def is_reason(frame):
    """Whether a frame stands for something that varid does not know."""
    return frame["symbol"].startswith("[") and frame["symbol"] not in ("[native]", "[unknown]")


def is_java(frame):
    return frame["image"].startswith("remap") and not frame["image"].startswith("remap-vm") and not frame["symbol"].startswith("[")


def count(varid, session):
    counts = Counts()
    exported = subprocess.run([varid, "export", "-f", "jsonl", "--no-inline", session], stdout=subprocess.PIPE, check=True, text=True)
    _, *samples = map(json.loads, exported.stdout.splitlines())
    of_recorder = json.loads((session / "session.json").read_text())["counts"]
    counts.lost = of_recorder["lost"]
    counts.unattributed = of_recorder["samples"] - of_recorder["attributed"]
    for sample in samples:
        frames = sample["frames"]
        counts.samples += 1
        counts.layers[sample["layer"]] += 1
        if any(map(is_java, frames)):
            counts.java += 1
            counts.methods[next(frame["symbol"] for frame in frames if is_java(frame))] += 1
            if reasons := [frame["symbol"] for frame in frames if is_reason(frame)]:
                counts.incomplete += 1
                counts.reasons[reasons[-1]] += 1
    return counts


def java(release, version):
    """The command that starts a JVM. None if it cannot be fetched."""
    if version == 17:
        return ["/usr/lib/jvm/java-17-openjdk-amd64/bin/java"]
    built = subprocess.run([ROOT / "tests/jvm/build.sh", release, str(version)])
    if built.returncode == 3:
        return None
    built.check_returncode()
    root = release / f"jvm/{version}"
    # The programs are where they are outside.
    subprocess.run(["mkdir", "-p", root / "programs"], check=True)
    mounts = 'mount --bind "$1" "$2/programs" && mount -t proc proc "$2/proc" && root=$2 && shift 2 && cd "$root/programs" && exec chroot "$root" "$@"'
    home = f"/usr/lib/jvm/java-{version}-openjdk-amd64/bin/java"
    return ["unshare", "--mount", "sh", "-c", mounts, "sh", str(release / "jvm/programs"), str(root), home]


def record(varid, release, program, run, seconds):
    """Records a program. None if there is no such JVM here."""
    command = java(release, run.version)
    if command is None:
        return None
    home = release / "jvm/programs" if run.version == 17 else Path("/programs")
    arguments = [str(home / file) for file in program.files]
    if run.hertz > MOST_BESIDE:
        command = ["taskset", "-c", "0", *command]
    classes = ["-cp", f"{home}/classes:{home}/root/usr/share/java/*", f"org.example.programs.{program.main}"]
    with tempfile.TemporaryDirectory() as folder:
        session = Path(folder) / "session"
        options = ["record", "-q", "-F", str(run.hertz), "--ring-pages", "8192", "-o", session, "--"]
        subprocess.run([varid, *options, *command, *classes, str(seconds), *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return count(varid, session)


def percent(part, whole):
    return f"{100 * part / whole:.1f}" if whole else "–"


def row(run, counts):
    layers = " | ".join(percent(counts.layers[layer], counts.samples) for layer in LAYERS)
    unattributed = percent(counts.unattributed, counts.samples)
    reasons = ", ".join(f"`{name}` {number}" for name, number in counts.reasons.most_common(3))
    incomplete = f"{counts.incomplete} ({100 * counts.incomplete / max(counts.java, 1):.2f} %) {reasons}".rstrip()
    return f"| {run.version} | {run.hertz} | {counts.samples} | {layers} | {unattributed} | {counts.java} | {incomplete} | {counts.lost} |"


def section(program, found):
    lines = [f"## {program.name}: {program.does}", ""]
    lines.append("| JDK | Hz | samples | " + " | ".join(f"{layer} %" for layer in LAYERS) + " | unattributed % | with Java | of these incomplete | lost |")
    lines.append("|---|---|" + "---|" * (len(LAYERS) + 5))
    lines += [row(run, counts) for run, counts in found]
    run, counts = found[0]
    lines += ["", f"The innermost Java method of most samples, JDK {run.version} at {run.hertz} Hz:", ""]
    lines += ["| % | method |", "|---|---|"]
    lines += [f"| {percent(number, counts.samples)} | `{name}` |" for name, number in counts.methods.most_common(SHOWN)]
    return lines + [""]


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__.split("\n\n")[1])
    release, document = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    seconds = int(sys.argv[3]) if len(sys.argv) == 4 else 12
    built = subprocess.run([ROOT / "tests/jvm/programs/build.sh", release])
    if built.returncode == 3:
        print(f"java_programs: skipped: the programs cannot be fetched: {document} stays as it is", file=sys.stderr)
        return
    built.check_returncode()
    varid = release / "varid"
    lines = ["# Real Java programs", ""]
    lines += [
        "What varid names of programs of Debian on an unmodified JVM, without an option of the JVM. `scripts/java_programs.py` writes this.",
        "A stack is incomplete where a marker stands in it for callers that are not known. At 10 kHz the JVM has one processor.",
        "`[unknown-method]` is code, or a method, that others replaced before it was read: Jython's program makes its classes anew all the time.",
        "",
    ]
    incomplete = []
    for number, program in enumerate(PROGRAMS):
        found = []
        for run in (*RUNS, *([NEWEST] if number == 1 else [])):
            if counts := record(varid, release, program, run, seconds):
                print(f"{program.name}: {row(run, counts)}", flush=True)
                found.append((run, counts))
                if counts.incomplete > MOST_INCOMPLETE * counts.java:
                    incomplete.append(f"{program.name} in {run.version} at {run.hertz} Hz: {counts.incomplete} of {counts.java}")
        lines += section(program, found)
    document.write_text("\n".join(lines))
    if incomplete:
        sys.exit("java_programs: too many stacks are incomplete: " + "; ".join(incomplete))


main()
