#!/usr/bin/env python3
"""What is lost of a program of many threads, and how much memory does a recorder take? Each recorder starts the same program, whose threads
compute all the time.

usage: bench_threads.py RELEASE-FOLDER OUTPUT-FOLDER [quick]

quick: few threads for a short time, which shows that the benchmark runs and measures little.
there: samples of the CPU time that the program itself says it had, at RATE a second. lost: what is missing of these, whether the recorder
counts it as lost, or the kernel has throttled the event. counted: what the recorder says that it has lost. peak: the largest resident set
of the recorder and of its helper. The daemon's is that after a session of every process has ended, and its peak. Recorders take turns;
the medians count.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import bench_measure

QUICK = sys.argv[3:] == ["quick"]
RATE = 997
ROUNDS = 1 if QUICK else 3
SECONDS = 1 if QUICK else 5
THREADS = (20,) if QUICK else (1, 10, 100, 500)
# Seconds of a session of every process.
ALL = 1 if QUICK else 5
HERE = pathlib.Path(__file__).resolve().parent


def recorded(command, program, out):
    """CPU seconds of the program, and peak MB, of a recorder that starts it."""
    peaks = {}

    def look(pid):
        # The program is a child, too.
        for process in [pid, *bench_measure.helpers(pid, "varid")]:
            peaks[process] = max(peaks.get(process, 0), bench_measure.resident(process))

    said = out / "spin.said"
    bench_measure.watched([*command, *program, said], look)
    return float(said.read_text()), sum(peaks.values())


def varid(options):
    """varid with options, as a recorder."""
    def record(release, out, program):
        session = out / "session"
        seconds, peak = recorded([release / "varid", "record", "-q", "-F", str(RATE), "-e", "cpu-clock", *options, "-o", session, "--"], program, out)
        counts = json.loads((session / "session.json").read_text())["counts"]
        return counts["samples"], counts["lost"], seconds, peak
    return record


def perf(options):
    """`perf record` with options, as a recorder."""
    def record(_release, out, program):
        data = out / "perf.data"
        command = ["perf", "record", "-q", "--no-buildid-cache", "-F", str(RATE), "-e", "cpu-clock", *options, "-o", data, "--"]
        seconds, peak = recorded(command, program, out)
        report = subprocess.run(["perf", "report", "-i", data, "--stats"], capture_output=True, text=True, check=True).stdout
        samples = re.search(r"SAMPLE events:\s+(\d+)", report)
        lost = re.findall(r"LOST_SAMPLES events:\s+(\d+)", report)
        return int(samples[1]), sum(map(int, lost)), seconds, peak
    return record


RECORDERS = {
    "varid": varid([]),
    "varid --shim perf": varid(["--shim", "perf"]),
    "perf record": perf([]),
    "perf record -g": perf(["-g"]),
    "perf record --call-graph dwarf": perf(["--call-graph", "dwarf"]),
}


def threads(release, out, count):
    """Prints the rows of a program of so many threads."""
    program = [out / "spin", "threads", count, SECONDS]
    runs = bench_measure.in_turns(ROUNDS, {name: lambda recorder=recorder: recorder(release, out, program) for name, recorder in RECORDERS.items()})
    for name, rounds in runs.items():
        there = [RATE * seconds for _, _, seconds, _ in rounds]
        shares = [100 * max(0, 1 - samples / expected) for (samples, *_), expected in zip(rounds, there)]
        share, spread = bench_measure.middle(shares)
        lost, _ = bench_measure.middle(lost for _, lost, _, _ in rounds)
        peak, _ = bench_measure.middle(peak for *_, peak in rounds)
        print(f"{name:32}{count:8}{there[0]:9.0f}{share:8.1f}{spread:>16}{lost:9.0f}{peak:9.0f}", flush=True)
        bench_measure.note(f"lost {count} {name}", share)
        bench_measure.note(f"memory {count} {name}", peak)


@contextlib.contextmanager
def daemon(release, home):
    """A daemon of its own, whose sessions and socket are in a folder."""
    environment = {**os.environ, "VARID_HOME": str(home)}
    process = subprocess.Popen([release / "varid", "daemon"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 10
        while not (home / "run" / "control.sock").exists() and time.monotonic() < until:
            time.sleep(0.05)
        yield process, lambda *arguments: subprocess.run([release / "varid", *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)
    finally:
        process.terminate()
        process.wait()


def of_daemon(release, out):
    """Prints what a daemon holds after a session of every process."""
    home = out / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True, mode=0o700)
    with daemon(release, home) as (process, verb):
        before = bench_measure.resident(process.pid, "VmRSS")
        verb("start", "--all", "-F", str(RATE), "-e", "cpu-clock", "-o", str(out / "all"))
        time.sleep(ALL)
        verb("stop")
        time.sleep(0.2)
        after, peak = bench_measure.resident(process.pid, "VmRSS"), bench_measure.resident(process.pid)
    print(f"\nvarid daemon, MB: {before:.0f} before a session, {after:.0f} after one of every process, at most {peak:.0f}")
    bench_measure.note("daemon after", after)
    bench_measure.note("daemon peak", peak)


def main():
    if len(sys.argv) != 3 and not QUICK:
        sys.exit(__doc__)
    release, out = (pathlib.Path(argument) for argument in sys.argv[1:3])
    out = out / "threads"
    out.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-O2", "-pthread", "-o", out / "spin", HERE / "bench" / "spin.c"], check=True)
    print(f"{'':32}{'threads':>8}{'there':>9}{'lost %':>8}{'range':>16}{'counted':>9}{'peak MB':>9}   ({RATE} Hz of cpu-clock)")
    for count in THREADS:
        threads(release, out, count)
    of_daemon(release, out)


main()
