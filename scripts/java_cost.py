#!/usr/bin/env python3
"""What does it cost a database to be profiled by varid, by JFR and by perf? Prints rounds of work beside those without a profiler.

usage: java_cost.py RELEASE-FOLDER [REPETITIONS [SECONDS]]      after make build, as root
H2 works for SECONDS [default: 10] in JDK 17: without a profiler, with `varid record -F 997`, with JFR's profile settings, with
`perf record -g -F 997` and -XX:+PreserveFramePointer; all of them in turn, REPETITIONS times [default: 5]. The second half of a run is
counted, in which the code is compiled. Each figure is the median of the ratios to the run without a profiler in the same repetition.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JAVA = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"


def rounds(before, java_options, programs, seconds):
    """The rounds of work in the second half of a run."""
    classes = ["-cp", f"{programs}/classes:{programs}/root/usr/share/java/*", "org.example.programs.SqlLoad"]
    command = [*before, JAVA, *java_options, *classes, str(seconds)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
    return int(next(line for line in printed.splitlines() if "rounds" in line).split()[-1])


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__.split("\n\n")[1])
    release = Path(sys.argv[1]).resolve()
    repetitions, seconds = [int(value) for value in (sys.argv[2:] + ["5", "10"][len(sys.argv) - 2 :])]
    subprocess.run([ROOT / "tests/jvm/programs/build.sh", release], check=True)
    programs = release / "jvm/programs"
    with tempfile.TemporaryDirectory() as folder:
        session, jfr, data = (os.path.join(folder, name) for name in ("session", "x.jfr", "perf.data"))
        profilers = {
            "varid record": ([release / "varid", "record", "-q", "-F", "997", "-o", session, "--"], []),
            "JFR, settings=profile": ([], [f"-XX:StartFlightRecording=filename={jfr},settings=profile"]),
            "perf record -g": (["perf", "record", "-q", "-g", "-F", "997", "-o", data, "--"], ["-XX:+PreserveFramePointer"]),
        }
        ratios = {name: [] for name in profilers}
        for _ in range(repetitions):
            alone = rounds([], [], programs, seconds)
            for name, (before, options) in profilers.items():
                subprocess.run(["rm", "-rf", session, jfr, data], check=True)
                ratios[name].append(rounds(before, options, programs, seconds) / alone)
            print(f"alone: {alone} rounds; " + "; ".join(f"{name} {of[-1]:.3f}" for name, of in ratios.items()), flush=True)
    for name, of in ratios.items():
        print(f"{name}: {statistics.median(of):.3f} of the rounds without a profiler ({min(of):.3f} to {max(of):.3f})")


main()
