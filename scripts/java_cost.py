#!/usr/bin/env python3
"""What does it cost a database to be profiled by varid, by JFR and by perf? Prints rounds of work beside those without a profiler.

usage: java_cost.py RELEASE-FOLDER [REPETITIONS [SECONDS]]      after make build, as root
H2 works for SECONDS [default: 10] in JDK 17: without a profiler, with `varid record -F 997`, with JFR's profile settings, with
`perf record -g -F 997` and -XX:+PreserveFramePointer; all of them in turn, REPETITIONS times [default: 5]. The second half of a run is
counted, in which the code is compiled. Each figure is the median of the ratios to the run without a profiler in the same repetition.
Then H2 is recorded from the start and once its code is compiled: what varid's own processes take for it.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JAVA = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"


def workload(before, java_options, programs, seconds):
    """The command that works for so many seconds."""
    classes = ["-cp", f"{programs}/classes:{programs}/root/usr/share/java/*", "org.example.programs.SqlLoad"]
    return [*before, JAVA, *java_options, *classes, str(seconds)]


def rounds(before, java_options, programs, seconds):
    """The rounds of work in the second half of a run."""
    command = workload(before, java_options, programs, seconds)
    printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
    return int(next(line for line in printed.splitlines() if "rounds" in line).split()[-1])


def processor_seconds(pid):
    """What a process and its children have taken: varid reads the JVM's memory by a helper."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    fields = [Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split() for each in (pid, *children)]
    return sum(int(user) + int(system) for user, system in (of[11:13] for of in fields)) / os.sysconf("SC_CLK_TCK")


def own_cost(varid, programs, session, before, seconds):
    """What varid itself takes for a recording of H2 that starts `before` seconds after it, without its own start."""
    work = workload([], [], programs, before + seconds + 20)
    with subprocess.Popen(work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as java:
        time.sleep(before)
        record = [varid, "record", "-q", "-F", "997", "-o", session, "-p", str(java.pid)]
        with subprocess.Popen(record) as recorder:
            # The kernel verifies the programs that sample.
            while not Path(session, "perf.data").exists() and recorder.poll() is None:
                time.sleep(0.1)
            pids, start = (recorder.pid, java.pid), time.monotonic()
            first = [processor_seconds(pid) for pid in pids]
            time.sleep(seconds)
            own, of_java = (processor_seconds(pid) - earlier for pid, earlier in zip(pids, first))
            took = time.monotonic() - start
            peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{recorder.pid}/status").read_text())[1]
            java.kill()
    return f"{100 * own / took:.1f} % of a processor, {100 * own / of_java:.1f} % of the JVM's processor time, {int(peak) / 1024:.0f} MB"


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
        for name, before in {"from the start": 0, "compiled": 2 * seconds}.items():
            subprocess.run(["rm", "-rf", session], check=True)
            print(f"varid itself, {name}: {own_cost(release / 'varid', programs, session, before, seconds)}", flush=True)
    for name, of in ratios.items():
        print(f"{name}: {statistics.median(of):.3f} of the rounds without a profiler ({min(of):.3f} to {max(of):.3f})")


main()
