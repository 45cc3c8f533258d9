#!/usr/bin/env python3
"""What does a report or an export of a long recording cost, and how many bytes has a sample? Records an app in ART, Python and the C++ compiler
with all their frames, merges the recordings into one of a million samples, and measures varid's reports and exports of it beside perf's
reports, and beside perf script with inferno.

usage: bench_reports.py RELEASE-FOLDER OUTPUT-FOLDER [quick]

quick: 20,000 samples of few programs, which shows that the benchmark runs and measures little.
cpu: user and system seconds, the median of the rounds, with their range. us: of that, a sample. wall: of the first round. peak: the largest
resident set. What is written goes to /dev/null. What perf does slowly is measured on the first quarter of the recording. It may take LIMIT
seconds and ROOM bytes of address space; where it is ended by that, marked with >, what it took is a lower bound. few stacks: as many
samples of the app in ART alone.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import bench_measure

QUICK = sys.argv[3:] == ["quick"]
SAMPLES = 20_000 if QUICK else 1_000_000
ROUNDS = 1 if QUICK else 3
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
# perf's cheapest report has no totals and no callers.
CHEAPEST = ["--no-children", "-g", "none"]
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
    yield "math", [release / "artvm", "--dex", math, "--name", "org.example.math", "org.example.math.Main", "run", "6" if QUICK else "60"]
    if QUICK:
        return
    yield "python", ["python3", "-c", PYTHON]
    # With the others 200,000 different stacks.
    for number, options in enumerate(["-O0 -g", "-O1", "-O2 -g"]):
        yield f"gcc{number}", ["g++", "-std=c++17", *options.split(), "-c", source, "-o", out / "many.o"]


def record(release, out, name, command):
    """A session of a program."""
    session = out / name
    subprocess.run([release / "varid", "record", "-q", "-F", str(RATE), "-e", "cpu-clock", "--stack", "full", "-o", session, "--",
                    *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return session


def merge(release, merged, samples, sessions):
    """A session of so many samples of others."""
    subprocess.run([release / "examples" / "merge_recordings", merged, str(samples), *sessions], check=True)
    return merged


def row(name, samples, runs):
    """Prints what the rounds of a command took; returns the CPU seconds."""
    seconds, spread = bench_measure.middle(run.cpu for run in runs)
    peak, _ = bench_measure.middle(run.peak for run in runs)
    ended = ">" if any(run.ended for run in runs) else ""
    print(f"{name:44}{samples:9}{ended:>1}{seconds:8.2f}{spread:>14}{seconds / samples * 1e6:7.2f}{runs[0].wall:8.2f}{peak:9.0f}", flush=True)
    bench_measure.note(f"cpu {name} {samples}", seconds)
    bench_measure.note(f"peak {name} {samples}", peak)


def compare(samples, commands, **limits):
    """Measures commands in turns and prints their rows."""
    rounds = 1 if limits else ROUNDS
    runs = bench_measure.in_turns(rounds, {name: lambda command=command: bench_measure.run(command, **limits) for name, command in commands.items()})
    for name, these in runs.items():
        row(name, samples, these)


def inferno(out):
    """The folder of inferno's programs, or None."""
    program = shutil.which("inferno-collapse-perf", path=f"{out.parent / 'peers' / 'bin'}:{os.environ['PATH']}")
    return program and pathlib.Path(program).parent


def reports(release, out, sessions):
    """Prints what reports and exports of a long recording cost."""
    quarter = SAMPLES // 4
    whole = merge(release, out / "merged", SAMPLES, sessions)
    part = merge(release, out / "quarter", quarter, sessions)
    few = merge(release, out / "few", SAMPLES, sessions[:1])
    size = (whole / "perf.data").stat().st_size
    bench_measure.note("recording MB", size / 1e6)
    print(f"{SAMPLES} samples, {size / 1e6:.0f} MB")
    print(f"{'':44}{'samples':>9}{'cpu s':>9}{'range':>14}{'us':>7}{'wall s':>8}{'peak MB':>9}")
    varid, perf = release / "varid", lambda session, *options: ["perf", "report", "--stdio", "-i", session / "perf.data", *options]
    mine = {name: [varid, "report", "-i", whole, *options] for name, options in REPORTS.items()}
    mine |= {f"export -f {name}": [varid, "export", "-i", whole, "-f", name, "--no-lines", "-o", "/dev/null"] for name in FORMATS}
    compare(SAMPLES, {**mine, "perf report --no-children -g none": perf(whole, *CHEAPEST)})
    compare(SAMPLES, {"report, few stacks": [varid, "report", "-i", few], "perf report --no-children, few stacks": perf(few, *CHEAPEST)})
    compare(quarter, {
        "report": [varid, "report", "-i", part],
        "export -f flamegraph": [varid, "export", "-i", part, "-f", "flamegraph", "--no-lines", "-o", "/dev/null"],
        "perf report --no-children -g none": perf(part, *CHEAPEST),
    })
    slow = {"perf report --children": perf(part, "--children")}
    folder = inferno(out)
    if folder:
        pipe = f"set -o pipefail; perf script -i '{part}/perf.data' | '{folder}/inferno-collapse-perf' | '{folder}/inferno-flamegraph' >/dev/null"
        slow["perf script, inferno"] = ["bash", "-c", pipe]
    else:
        slow["perf script"] = ["bash", "-c", f"perf script -i '{part}/perf.data' >/dev/null"]
    compare(quarter, slow, limit=LIMIT, room=ROOM, expected=False)


def in_perf(out, command, options):
    """Bytes a sample of `perf record` of a program, and its samples."""
    data = out / "perf.data"
    subprocess.run(["perf", "record", "-q", "--no-buildid-cache", "-F", str(RATE), "-e", "cpu-clock", *options, "-o", data, "--", *command],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    said = subprocess.run(["perf", "report", "-i", data, "--stats"], capture_output=True, text=True, check=True).stdout
    samples = [int(line.split(":")[1].split()[0]) for line in said.splitlines() if " SAMPLE events:" in line]
    return data.stat().st_size / samples[0]


def sizes(release, out, kinds):
    """Prints the bytes a sample of recordings in each form, and what it takes to give them that form and to report them in it."""
    forms = {"plain": ["--undo"], "compressed": [], "compact": ["--compact"]}
    print(f"\n{'bytes a sample':16}{'samples':>9}{'form':>12}{'bytes':>8}{'us':>8}{'report us':>11}{'perf -g':>9}{'perf -g -z':>12}")
    for name, (session, command) in kinds.items():
        copy = out / "compressed"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(session, copy)
        samples = json.loads((copy / "session.json").read_text())["counts"]["samples"]
        theirs = [f"{in_perf(out, command, options):.0f}" if command else "-" for options in (["-g"], ["-g", "-z"])]
        for form, options in forms.items():
            made = bench_measure.run([release / "varid", "compress", "-i", copy, *options])
            size = sum((copy / file).stat().st_size for file in ("perf.data", "records.data") if (copy / file).exists()) / samples
            read = bench_measure.run([release / "varid", "report", "-i", copy])
            print(f"{name:16}{samples:9}{form:>12}{size:8.1f}{made.cpu / samples * 1e6:8.2f}{read.cpu / samples * 1e6:11.2f}"
                  f"{theirs[0]:>9}{theirs[1]:>12}", flush=True)
            bench_measure.note(f"bytes {form} {name}", size)
        bench_measure.note(f"bytes perf -g -z {name}", theirs[1])


def main():
    if len(sys.argv) != 3 and not QUICK:
        sys.exit(__doc__)
    release, out = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    out = out / "reports"
    out.mkdir(parents=True, exist_ok=True)
    commands = dict(programs(release, out))
    sessions = {name: record(release, out, name, command) for name, command in commands.items()}
    reports(release, out, list(sessions.values()))
    kinds = {name: (sessions[name], commands[name]) for name in ("math", "python") if name in sessions}
    sizes(release, out, {**kinds, "merged": (out / "quarter", None)})


main()
