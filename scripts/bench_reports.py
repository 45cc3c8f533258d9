#!/usr/bin/env python3
"""What does a report or an export of a long recording cost? Records an app in ART, Python and the C++ compiler with all their frames, merges
the recordings into one of a million samples, and measures varid's reports and exports of it beside perf's report.

usage: bench_reports.py RELEASE-FOLDER OUTPUT-FOLDER [quick]

quick: 20,000 samples of few programs, which shows that the benchmark runs and measures little.
cpu: user and system seconds, the best of three runs, of perf's of one. wall: of the same run. peak: the largest resident set. What is
written goes to /dev/null. perf may take LIMIT seconds of its time and ROOM bytes of address space; where it is ended by that, marked with >,
what it took is a lower bound.
"""

import os
import pathlib
import resource
import subprocess
import sys
import time

QUICK = sys.argv[3:] == ["quick"]
SAMPLES = 20_000 if QUICK else 1_000_000
RUNS = 1 if QUICK else 3
RATE = 10_000
LIMIT = 600
ROOM = 12 << 30
FORMATS = "folded flamegraph html pprof firefox speedscope jsonl callgrind dot chrome perfetto otlp".split()
REPORTS = {
    "report": [],
    "report --by symbol": ["--by", "symbol"],
    "report --by line": ["--by", "line"],
    "report --by thread": ["--by", "thread"],
    "report --tree": ["--tree"],
    "report --callgraph": ["--callgraph"],
}
SOURCE = """#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <unordered_map>
#include <variant>
int main() {
    std::map<std::string, std::vector<std::pair<int, std::string>>> map;
    std::unordered_map<int, std::function<int(int)>> functions;
    functions[1] = [](int number) { return number; };
    std::variant<int, std::string, double> variant;
    std::visit([](auto&& value) { std::cout << value; }, variant);
    std::sort(map["a"].begin(), map["a"].end());
    std::cout << std::regex_match("abc", std::regex("a(b|c)*")) << functions[1](2);
}
"""
PYTHON = """import ast, glob, json, re
for name in sorted(glob.glob('/usr/lib/python3*/*.py'))[:150]:
    text = open(name, errors='replace').read()
    json.dumps(ast.dump(ast.parse(text)))
    re.findall(r'(\\w+)\\(', text)
"""


def programs(release, out):
    """Name and command of what is recorded."""
    source = out / "many.cc"
    source.write_text(SOURCE)
    math = release.parent / "testbed" / "workloads" / "math.dex"
    yield "math", [release / "artvm", "--dex", math, "--name", "org.example.math", "org.example.math.Main", "run", "60"]
    if QUICK:
        return
    yield "python", ["python3", "-c", PYTHON]
    # With the others 200,000 different stacks.
    for number, options in enumerate(["-O0 -g", "-O1", "-O2 -g"]):
        yield f"gcc{number}", ["g++", "-std=c++17", *options.split(), "-c", source, "-o", out / "many.o"]


def record(release, out):
    """Sessions of all programs."""
    for name, command in programs(release, out):
        session = out / name
        subprocess.run([release / "varid", "record", "-q", "-F", str(RATE), "-e", "cpu-clock", "--stack", "full", "-o", session, "--",
                        *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        yield session


def limit():
    """In a process that is started: what it may take."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))


def measured(command):
    """CPU seconds, wall seconds, peak in MB, and whether it was ended."""
    start = time.monotonic()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit)
    _, status, usage = os.wait4(process.pid, 0)
    ended = bool(status) and command[0] == "perf"
    if status and not ended:
        sys.exit(f"{' '.join(map(str, command))} failed")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss / 1024, ended


def row(name, command, runs=RUNS):
    """Measures a command and prints what it took."""
    seconds, wall, peak, ended = min(measured(command) for _ in range(runs))
    print(f"{name:24}{'>' if ended else '':>1}{seconds:7.2f}{wall:8.2f}{peak:9.0f}", flush=True)


def main():
    if len(sys.argv) != 3 and not QUICK:
        sys.exit(__doc__)
    release, out = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    out = out / "reports"
    out.mkdir(parents=True, exist_ok=True)
    merged = out / "merged"
    subprocess.run([release / "examples" / "merge_recordings", merged, str(SAMPLES), *record(release, out)], check=True)
    size = (merged / "perf.data").stat().st_size
    print(f"{SAMPLES} samples, {size / 1e6:.0f} MB")
    print(f"{'':24}{'cpu s':>8}{'wall s':>8}{'peak MB':>9}")
    for name, options in REPORTS.items():
        row(name, [release / "varid", "report", "-i", merged, *options])
    for name in FORMATS:
        row(f"export -f {name}", [release / "varid", "export", "-i", merged, "-f", name, "--no-lines", "-o", "/dev/null"])
    row("perf report --stdio", ["perf", "report", "--stdio", "-i", merged / "perf.data"], runs=1)


main()
