#!/usr/bin/env python3
"""What does a sample cost? Profiles an app in ART whose stack is 4, 16 and 64 managed frames deep, with varid and with other recorders.

usage: bench.py RELEASE-FOLDER OUTPUT-FOLDER [quick]

quick: one depth for a short time, which shows that the benchmark runs and measures little.
Each recorder is attached to the running app twice, for a short and a long time: the differences are what samples cost, without
starting up. The recorders take turns; the median of all rounds counts, and their range stands beside it. kernel: run time of the BPF
program, as the kernel counts it (root only). user: CPU time of the recorder, its writing included, and of the helper through which it
reads processes. perf and samply walk no managed frames: their columns are what the same rate costs there. The rows of a JIT are of the
same app compiled, where make art-compiler has built ART's JIT. samply is there where target/bench/peers has it: see bench_peers.sh.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import bench_measure

QUICK = sys.argv[3:] == ["quick"]
# Seconds of both runs.
SHORT, LONG = (0.5, 1) if QUICK else (1, 4)
ROUNDS = 1 if QUICK else 3
# Samples a second and frames: growth with both.
SETTINGS = [(4000, 4)] if QUICK else [(997, 16), (4000, 16), (10_000, 4), (10_000, 16), (10_000, 64)]
JIT_SETTINGS = [(10_000, 4)] if QUICK else [(10_000, 4), (10_000, 16), (10_000, 64)]
# That of the table of goals.
NOTED = SETTINGS[0] if QUICK else (10_000, 16)
STATISTICS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
HERE = pathlib.Path(__file__).resolve().parent

# What a recorder has taken so far. bpf: nanoseconds and runs, or None.
Taken = collections.namedtuple("Taken", "samples cpu bytes bpf")
# What a sample takes.
Sample = collections.namedtuple("Sample", "user bytes kernel samples")


def bpf_run_time(pid):
    """Nanoseconds and runs of the BPF programs that a process holds."""
    total = {"run_time_ns": 0, "run_cnt": 0}
    for path in pathlib.Path(f"/proc/{pid}/fdinfo").glob("*"):
        try:
            fields = dict(re.findall(r"^(run_time_ns|run_cnt):\s+(\d+)", path.read_text(), re.MULTILINE))
        except OSError:
            continue
        for name in fields:
            total[name] = max(total[name], int(fields[name]))
    return (total["run_time_ns"], total["run_cnt"]) if total["run_cnt"] else None


def varid(options):
    """varid with options, as a recorder."""
    def record(release, out, pid, rate, seconds):
        session = out / "session"
        command = [release / "varid", "record", "-F", str(rate), "-e", "cpu-clock", *options, "-o", session, "--pid", str(pid),
                   "--duration", f"{int(seconds * 1000)}ms"]
        bpf, helpers = None, 0

        def look(pid):
            nonlocal bpf, helpers
            bpf = bpf_run_time(pid) or bpf
            helpers = max(helpers, sum(map(bench_measure.cpu_of, bench_measure.helpers(pid))))

        cpu = bench_measure.watched(command, look)
        counts = json.loads((session / "session.json").read_text())["counts"]
        return Taken(counts["samples"], cpu + helpers, (session / "perf.data").stat().st_size, bpf)
    return record


def perf(options):
    """`perf record` with options, as a recorder."""
    def record(_release, out, pid, rate, seconds):
        data = out / "perf.data"
        command = ["perf", "record", "-q", "--no-buildid-cache", "-F", str(rate), "-e", "cpu-clock", *options, "-o", data, "-p", str(pid),
                   "--", "sleep", str(seconds)]
        cpu = bench_measure.watched(command, lambda pid: None)
        report = subprocess.run(["perf", "report", "-i", data, "--stats"], capture_output=True, text=True, check=True).stdout
        samples = re.search(r"SAMPLE events:\s+(\d+)", report)
        return Taken(int(samples[1]), cpu, data.stat().st_size, None)
    return record


def samply(program):
    """samply, as a recorder: it unwinds while it records, and writes at its end."""
    def record(_release, out, pid, rate, seconds):
        profile = out / "samply.json"
        command = [program, "record", "--save-only", "--rate", str(rate), "-o", profile, "-p", str(pid), "--duration", str(seconds)]
        cpu = bench_measure.watched(command, lambda pid: None)
        threads = json.loads(profile.read_text())["threads"]
        return Taken(sum(thread["samples"]["length"] for thread in threads), cpu, profile.stat().st_size, None)
    return record


def recorders(out):
    """All that are here, by name."""
    found = {
        "varid": varid([]),
        "varid --shim perf": varid(["--shim", "perf"]),
        "perf record": perf([]),
        "perf record -g": perf(["-g"]),
        "perf record --call-graph dwarf": perf(["--call-graph", "dwarf"]),
    }
    program = shutil.which("samply", path=f"{out / 'peers' / 'bin'}:{os.environ['PATH']}")
    if program:
        found["samply record"] = samply(program)
    return found


def cost(recorder, release, out, pid, rate):
    """What a sample takes, by a short and a long run; None: the app had so little time that the long run has no more samples."""
    short = recorder(release, out, pid, rate, SHORT)
    long = recorder(release, out, pid, rate, LONG)
    samples = long.samples - short.samples
    if samples <= 0:
        return None
    kernel = long.bpf[0] / long.bpf[1] if long.bpf else None
    return Sample((long.cpu - short.cpu) / samples * 1e6, (long.bytes - short.bytes) / samples, kernel, samples)


def measure_app(release, out, rate, depth, recorders, options):
    """Prints the rows of an app whose stack is so deep."""
    app = subprocess.Popen(
        [release / "artvm", *options, "--dex", out / "depth.dex", "--name", "org.example.depth", "org.example.depth.Depth",
         f"of{depth}", "1000000"], stdout=subprocess.DEVNULL)
    try:
        # The app's own start falls into this, and is measured for nobody.
        next(iter(recorders.values()))(release, out, app.pid, rate, SHORT)
        costs = bench_measure.in_turns(ROUNDS, {
            name: lambda recorder=recorder: cost(recorder, release, out, app.pid, rate) for name, recorder in recorders.items()})
    finally:
        app.kill()
        app.wait()
    for name, rounds in costs.items():
        rounds = [sample for sample in rounds if sample]
        if not rounds:
            print(f"{name:32}{rate:7}{depth:6}  not measured: the machine is busy", flush=True)
            continue
        user, spread = bench_measure.middle(sample.user for sample in rounds)
        size, _ = bench_measure.middle(sample.bytes for sample in rounds)
        kernel = "-" if rounds[0].kernel is None else f"{bench_measure.middle(sample.kernel for sample in rounds)[0]:.0f}"
        print(f"{name:32}{rate:7}{depth:6}{sum(sample.samples for sample in rounds):9}{kernel:>11}{user:9.2f}{spread:>14}{size:8.0f}", flush=True)
        if (rate, depth) == NOTED or (options and depth == NOTED[1]):
            bench_measure.note(f"sample us {name}", user)
            if kernel != "-":
                bench_measure.note(f"sample kernel ns {name}", float(kernel))


def measure(release, out):
    """Prints a row per rate, depth and recorder."""
    print(f"{'':32}{'Hz':>7}{'depth':>6}{'samples':>9}{'kernel ns':>11}{'user us':>9}{'range':>14}{'bytes':>8}   (per sample, cpu-clock)")
    for rate, depth in SETTINGS:
        measure_app(release, out, rate, depth, recorders(out), [])
    if not (release / "libart-compiler.so").exists():
        print("there is no JIT: make art-compiler builds it")
        return
    for rate, depth in JIT_SETTINGS:
        measure_app(release, out, rate, depth, {"varid, JIT": varid([]), "perf record -g, JIT": perf(["-g"])}, ["--jit"])


def main():
    if len(sys.argv) != 3 and not QUICK:
        sys.exit(__doc__)
    release, out = (pathlib.Path(argument) for argument in sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    subprocess.run(["smali", "assemble", "--api", "29", "-o", out / "depth.dex", HERE / "bench" / "Depth.smali"], check=True)
    counted = os.access(STATISTICS, os.W_OK)
    before = STATISTICS.read_text() if counted else None
    try:
        if counted:
            STATISTICS.write_text("1")
        else:
            print("not root: the BPF program's run time is not counted")
        measure(release, out)
    finally:
        if counted:
            STATISTICS.write_text(before)


if __name__ == "__main__":
    main()
