"""How a command is measured, and how a result reaches the table of goals.

CPU seconds are user and system time of the command and of what it has waited for. A command that is compared with others runs in turns with
them, several rounds: of each the median counts, and the range of all rounds stands beside it.
"""

import collections
import glob
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

Run = collections.namedtuple("Run", "cpu wall peak ended")


def run(command, limit=None, room=None, expected=True):
    """Runs a command to its end, or for `limit` CPU seconds and in `room` bytes. A failure ends the benchmark, unless it is not `expected` to
    succeed or was ended by its limits. `peak`: the largest resident set in MB, at least this program's own."""
    def limits():
        for kind, value in ((resource.RLIMIT_CPU, limit), (resource.RLIMIT_AS, room)):
            if value:
                resource.setrlimit(kind, (value, value))

    start = time.monotonic()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=limits)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    ended = bool(status)
    if ended and expected:
        sys.exit(f"{' '.join(map(str, command))} failed: {said.decode(errors='replace')[-2000:]}")
    return Run(usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss / 1024, ended)


def watched(command, look, every=0.05):
    """CPU seconds of a command. `look` is called with its pid while it runs."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        look(process.pid)
        time.sleep(every)
    said = process.stderr.read().decode(errors="replace")
    process.stderr.close()
    if status:
        sys.exit(f"{' '.join(map(str, command))}: {said}")
    return usage.ru_utime + usage.ru_stime


def helpers(pid, name=None):
    """The processes that a process has started, those called `name` only."""
    found = []
    for children in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            for child in pathlib.Path(children).read_text().split():
                if name is None or pathlib.Path(f"/proc/{child}/comm").read_text().strip() == name:
                    found.append(int(child))
        except OSError:
            continue
    return found


def cpu_of(pid):
    """CPU seconds of a process's main thread so far; 0 if it has gone."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0


def resident(pid, field="VmHWM"):
    """The resident set of a process in MB, its largest so far (VmHWM) or the present one (VmRSS); 0 if it has gone."""
    try:
        found = re.search(rf"^{field}:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) / 1024 if found else 0


def in_turns(rounds, measures):
    """Calls each of the named functions in turn, `rounds` times. Returns their results by name, in order."""
    results = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            results[name].append(measure())
    return results


def middle(values):
    """The median, and the range as text; none of a single value."""
    values = list(values)
    spread = f"{min(values):.4g}-{max(values):.4g}" if len(values) > 1 else ""
    return statistics.median(values), spread


def note(name, value):
    """Keeps a result for the table of goals: bench.sh says where."""
    path = os.environ.get("VARID_BENCH_RESULTS")
    if path:
        with open(path, "a", encoding="utf-8") as results:
            results.write(json.dumps([name, value]) + "\n")
