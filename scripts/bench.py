#!/usr/bin/env python3
"""What does a sample cost? Profiles an app in ART whose stack is 4, 16 and 64 managed frames deep, with varid and with perf.

usage: bench.py RELEASE-FOLDER OUTPUT-FOLDER [quick]

quick: one depth for a short time, which shows that the benchmark runs and measures little.
Each recorder is attached to the running app twice, for a short and a long time: the differences are what samples cost, without
starting up. kernel: run time of the BPF program, as the kernel counts it (root only). user: CPU time of the recorder, its
writing included, and of the helper through which it reads processes. perf walks no managed frames: its columns are what the same
rate costs there. The rows of a JIT are of the same app compiled, where make art-compiler has built ART's JIT.
"""

import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import time

RATE = 4000
# Seconds of both runs, and frames.
SHORT, LONG, DEPTHS = (1, 2, (4,)) if sys.argv[3:] == ["quick"] else (1, 4, (4, 16, 64))
STATISTICS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
HERE = pathlib.Path(__file__).resolve().parent


def cpu_time(command, look=lambda pid: None):
    """Runs a command to its end: its user and system seconds. `look` is called with its pid while it runs."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        look(process.pid)
        time.sleep(0.05)
    if status:
        sys.exit(f"{' '.join(map(str, command))}: {process.stderr.read().decode()}")
    process.stderr.close()
    return usage.ru_utime + usage.ru_stime


def helpers_time(pid):
    """CPU seconds of the processes that a process has started."""
    seconds = 0
    for children in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            for child in pathlib.Path(children).read_text().split():
                seconds += int(pathlib.Path(f"/proc/{child}/schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue
    return seconds


def bpf_run_time(pid):
    """Nanoseconds and runs of the BPF programs that a process holds."""
    total = {"run_time_ns": 0, "run_cnt": 0}
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            fields = dict(re.findall(r"^(run_time_ns|run_cnt):\s+(\d+)", open(path).read(), re.MULTILINE))
        except OSError:
            continue
        for name in fields:
            total[name] = max(total[name], int(fields[name]))
    return (total["run_time_ns"], total["run_cnt"]) if total["run_cnt"] else None


def varid(release, out, pid, seconds):
    """Samples, CPU seconds, bytes, BPF run time of a session."""
    session = out / "session"
    command = [release / "varid", "record", "-F", str(RATE), "-e", "cpu-clock", "-o", session, "--pid", str(pid),
               "--duration", str(seconds)]
    bpf, helpers = None, 0

    def look(pid):
        nonlocal bpf, helpers
        bpf, helpers = bpf_run_time(pid) or bpf, max(helpers, helpers_time(pid))

    cpu = cpu_time(command, look)
    counts = json.loads((session / "session.json").read_text())["counts"]
    if counts["attributed"] < counts["samples"]:
        print(f"note: unattributed: {counts['unattributed']}")
    return counts["samples"], cpu + helpers, (session / "perf.data").stat().st_size, bpf


def perf(options):
    """The same of `perf record`."""
    def record(_release, out, pid, seconds):
        data = out / "perf.data"
        command = ["perf", "record", "-q", "--no-buildid-cache", "-F", str(RATE), "-e", "cpu-clock", *options, "-o", data, "-p", str(pid),
                   "--", "sleep", str(seconds)]
        cpu = cpu_time(command)
        report = subprocess.run(["perf", "report", "-i", data, "--stats"], capture_output=True, text=True, check=True).stdout
        samples = re.search(r"SAMPLE events:\s+(\d+)", report)
        return int(samples[1]), cpu, data.stat().st_size, None
    return record


RECORDERS = {
    "varid": varid,
    "perf record": perf([]),
    "perf record -g": perf(["-g"]),
    "perf record --call-graph dwarf": perf(["--call-graph", "dwarf"]),
}


def measure(release, out):
    """Prints a row per depth and recorder."""
    print(f"{'':32}{'depth':>6}{'samples':>9}{'kernel ns':>11}{'user us':>9}{'bytes':>8}   (per sample, {RATE} Hz of cpu-clock)")
    for depth in DEPTHS:
        measure_app(release, out, depth, RECORDERS, [])
    if not (release / "libart-compiler.so").exists():
        print("there is no JIT: make art-compiler builds it")
        return
    for depth in DEPTHS:
        measure_app(release, out, depth, {"varid, JIT": varid}, ["--jit"])


def measure_app(release, out, depth, recorders, options):
    """Prints the rows of an app whose stack is so deep."""
    app = subprocess.Popen(
        [release / "artvm", *options, "--dex", out / "depth.dex", "--name", "org.example.depth", "org.example.depth.Depth",
         f"of{depth}", "1000000"], stdout=subprocess.DEVNULL)
    try:
        # The app's own start falls into the first short session.
        for name, recorder in recorders.items():
            short = recorder(release, out, app.pid, SHORT)
            long = recorder(release, out, app.pid, LONG)
            samples = long[0] - short[0]
            user = (long[1] - short[1]) / samples * 1e6
            size = (long[2] - short[2]) / samples
            bpf = "-" if not long[3] else f"{long[3][0] / long[3][1]:.0f}"
            print(f"{name:32}{depth:6}{samples:9}{bpf:>11}{user:9.1f}{size:8.0f}", flush=True)
    finally:
        app.kill()
        app.wait()


def main():
    if len(sys.argv) != 3 and sys.argv[3:] != ["quick"]:
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
