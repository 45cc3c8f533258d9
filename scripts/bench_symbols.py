#!/usr/bin/env python3
"""What does a name cost? Names 100,000 distinct addresses of libart, of libc and of a dex file of 50,000 methods with lines, with varid and
with the tools that others use, and compares what they say.

At the end: what a dex file costs to open, and what the names of methods cost that a recording finds one by one.

usage: bench_symbols.py RELEASE-FOLDER OUTPUT-FOLDER [quick]

quick: 1,000 addresses and 1,000 methods, which shows that the benchmark runs and measures little.
cold: a process that is started, opens the file and answers all. warm: what the same answers cost once more in that process, the difference
to one that is given the addresses twice. CPU seconds, user and system: the tools here run on one processor. peak: the process's largest
resident set, at least this script's own. differing: answers whose innermost function or line is another one than varid's; notation: the
same function, demangled otherwise.
The addresses are drawn from the whole of the code, with a seed. A tool that takes longer than LIMIT is ended, its time is a lower bound.
"""

import collections
import glob
import os
import pathlib
import random
import re
import resource
import signal
import statistics
import subprocess
import sys

QUICK = sys.argv[3:] == ["quick"]
ADDRESSES = 1000 if QUICK else 100_000
# Of the dex file, a hundred methods each.
CLASSES = 10 if QUICK else 500
SEED = 4
LIMIT = 300
# perf finds source lines so slowly that only those of some samples are asked for.
PERF_LINES = 10 if QUICK else 1000
HERE = pathlib.Path(__file__).resolve().parent

Run = collections.namedtuple("Run", "seconds peak ended")


def run(command, given, answers):
    """CPU seconds and peak of a command, its input and output files."""
    with open(given, "rb") as stdin, open(answers, "wb") as stdout:
        # Debug information comes from here, not from servers.
        environment = {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}
        process = subprocess.Popen(list(map(str, command)), stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL, env=environment,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT)))
        _, status, usage = os.wait4(process.pid, 0)
    ended = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
    if status and not ended:
        sys.exit(f"{' '.join(map(str, command))} failed")
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, ended)


def answer(function, place):
    """A function and a line as all tools can say them: without folders, without what only tells that there is none."""
    name, _, line = place.partition(":")
    line = line.split(":")[0].split(" ")[0]
    place = f"{name.rsplit('/', 1)[-1]}:{line}" if line not in ("", "0", "?") else ""
    # Functions without a symbol: varid names them by their place.
    return "" if function == "??" or re.fullmatch(r"[^ ]+\+0x[0-9a-f]+", function) else function, place


def answers_of_varid(text):
    """Innermost function and line of each answer."""
    for line in text:
        if line.startswith("0x"):
            function, _, place = line.rstrip("\n").split(": ", 1)[1].rpartition(" at ")
            yield answer(function, place) if function else answer(place, "")


def answers_of_llvm(text):
    """The same of llvm-symbolizer: a function, a place, and so on, and an empty line."""
    function, place, at = "", "", 0
    for line in text:
        line = line.rstrip("\n")
        if not line:
            yield answer(function, place)
            at = 0
            continue
        if at == 0:
            function = line
        elif at == 1:
            place = line
        at += 1


def answers_of_addr2line(text):
    """The same of addr2line -a: the address, a function, a place, and so on."""
    function, place, at = None, "", 0
    for line in text:
        line = line.rstrip("\n")
        if re.fullmatch("0x[0-9a-f]{16}", line):
            if function is not None:
                yield answer(function, place)
            at = 0
        elif at == 1:
            function = line
        elif at == 2:
            place = line
        at += 1
    if function is not None:
        yield answer(function, place)


def differences(ours, theirs, read):
    """How many answers have another function, the same one in another notation, another line; and examples.

    Names that differ are one function's in two notations where each of them stands for the other throughout.
    """
    functions, notations, lines, examples = 0, 0, 0, {}
    there, back = {"": ""}, {"": ""}
    with open(ours, errors="replace") as our_text, open(theirs, errors="replace") as their_text:
        for (function, place), (their_function, their_place) in zip(answers_of_varid(our_text), read(their_text)):
            if function != their_function:
                if there.setdefault(function, their_function) == their_function and back.setdefault(their_function, function) == function:
                    notations += 1
                else:
                    functions += 1
                    examples.setdefault("function", f"{function or '-'} / {their_function or '-'}")
            if place != their_place:
                lines += 1
                examples.setdefault("line", f"{place or '-'} / {their_place or '-'}")
    return functions, notations, lines, examples.values()


def draw(out, name, start, end, step):
    """Files with the addresses once and twice."""
    count = min(ADDRESSES, (end - start) // step)
    addresses = [start + step * at for at in random.Random(SEED).sample(range((end - start) // step), count)]
    once, twice = out / f"{name}.addresses", out / f"{name}.addresses.twice"
    text = "".join(f"{address:#x}\n" for address in addresses)
    once.write_text(text)
    twice.write_text(text * 2)
    return once, twice


def compare(out, name, once, twice, tools):
    """Prints a row per tool; the first is varid. Tools: name, command, how its answers are read."""
    base, ours = None, None
    for tool, command, read in tools:
        answers = out / f"{name}.{tool.split()[0]}"
        cold = run(command, once, answers)
        both = run(command, twice, out / "twice") if not cold.ended else cold
        warm = max(both.seconds - cold.seconds, 0.01)
        row = f"{name:8}{tool:32}{'>' if cold.ended else '':1}{cold.seconds:8.2f}{warm:8.2f}{cold.peak:8.0f}"
        if base is None:
            base, ours = (cold.seconds, warm), answers
            print(row, flush=True)
            continue
        functions, notations, lines, examples = differences(ours, answers, read)
        print(f"{row}{cold.seconds / base[0]:8.1f}{warm / base[1]:8.1f}{functions:9}{notations:9}{lines:7}  {'; '.join(examples)[:150]}", flush=True)


def sections(path):
    """Address, offset and size of .text."""
    text = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    found = re.search(r" \.text\s+PROGBITS\s+([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", text)
    return tuple(int(number, 16) for number in found.groups())


def build_id(path):
    """As readelf has it."""
    text = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True, check=True).stdout
    return re.search("Build ID: ([0-9a-f]+)", text)[1]


def reports(release, out, name, image, once, start, offset, size):
    """perf report and varid report on a recording of samples at the same addresses."""
    def session(folder, addresses):
        folder = out / folder
        subprocess.run(["rm", "-rf", folder], check=True)
        given = "".join(f"{int(line, 16) - start + offset:#x}\n" for line in addresses)
        subprocess.run([release / "examples" / "samples", folder, image, build_id(image), hex(offset), hex(size)], input=given, text=True, check=True)
        return folder

    addresses = once.read_text().split()
    whole, some = session(f"{name}.session", addresses), session(f"{name}.some", addresses[:PERF_LINES])
    perf = lambda folder, keys: ["perf", "report", "-i", folder / "perf.data", "--stdio", "--no-children", "-g", "none", "--sort", keys]
    varid = lambda folder, by: [release / "varid", "report", "-i", folder, "--by", by, "--format", "csv"]
    for title, ours, theirs, folder in (
        ("symbol", varid(whole, "symbol"), perf(whole, "sym"), whole),
        ("line", varid(whole, "line"), None, whole),
        (f"line, {PERF_LINES} samples", varid(some, "line"), perf(some, "srcline"), some),
    ):
        mine = run(ours, os.devnull, out / f"{name}.report.varid")
        print(f"{name:8}{'varid report, by ' + title:40}{mine.seconds:9.2f}{'':8}{mine.peak:8.0f}", flush=True)
        if theirs:
            other = run(theirs, os.devnull, out / f"{name}.report.perf")
            print(f"{name:8}{'perf report, by ' + title:40}{'>' if other.ended else '':1}{other.seconds:8.2f}{'':8}{other.peak:8.0f}{other.seconds / mine.seconds:8.1f}", flush=True)


def opening(release, dex):
    """Opening a dex file beside copying it: the median of some processes."""
    runs = [subprocess.run([release / "examples" / "open_dex", dex], capture_output=True, text=True, check=True).stdout.split() for _ in range(3 if QUICK else 21)]
    copied, opened = (statistics.median(int(row[at]) for row in runs) / 1e6 for at in (0, 1))
    size = dex.stat().st_size / 1e6
    print(f"\nopening {dex.name}, {size:.1f} MB, {runs[0][2]} methods, index included: {opened:.2f} ms; a copy of its bytes: {copied:.2f} ms;"
          f" {opened / copied:.1f} copies")


def growing(release, out):
    """The names of a large Java program's methods, which a recording writes in parts, beside those of the complete file."""
    methods, writes = (5000, 500) if QUICK else (50_000, 5000)
    command = [release / "examples" / "growing_names", out / "growing.elf", str(methods), str(writes)]
    times = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    microseconds, size, whole, whole_size = map(int, times)
    print(f"\nnames of {methods} methods with lines, written in {writes} parts: {microseconds / 1e6:.2f} s, {size / 1e6:.0f} MB;"
          f" the complete file: {whole / 1e6:.2f} s, {whole_size / 1e6:.0f} MB")


def big_dex(out):
    """The dex file of many methods: assembled once."""
    dex = out / f"big{CLASSES}.dex"
    if not dex.exists():
        sources, new = out / f"smali{CLASSES}", dex.with_suffix(".tmp")
        subprocess.run([HERE / "bench" / "big_dex.py", sources, str(CLASSES)], check=True)
        subprocess.run(["smali", "assemble", "--api", "29", "-o", new, sources], check=True)
        new.rename(dex)
    return dex


def main():
    if len(sys.argv) != 3 and not QUICK:
        sys.exit(__doc__)
    release, out = (pathlib.Path(argument).absolute() for argument in sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    varid = release / "varid"
    dex = big_dex(out)
    substitute = out / "big.elf"
    subprocess.run([varid, "symbols", dex, "--elf", substitute], check=True)
    libraries = {"libart": "/usr/lib/*/android/libart.so.0", "libc": "/lib/*/libc.so.6"}
    found = {name: path for name, pattern in libraries.items() for path in glob.glob(pattern)[:1]}
    print(f"{ADDRESSES} distinct addresses; this script's own peak is {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB\n")
    print(f"{'':41}{'CPU seconds':>16}{'peak':>8}{'times varid':>16}{'differing':>25}")
    print(f"{'':41}{'cold':>8}{'warm':>8}{'MB':>8}{'cold':>8}{'warm':>8}{'function':>9}{'notation':>9}{'line':>7}")

    def tools(path, of_varid):
        return [
            ("varid symbols --at -", [varid, "symbols", of_varid, "--at", "-"], None),
            ("llvm-symbolizer-16", ["llvm-symbolizer-16", "-e", path], answers_of_llvm),
            ("addr2line -afieC", ["addr2line", "-afiCe", path], answers_of_addr2line),
        ]

    for name, path in found.items():
        start, offset, size = sections(path)
        once, twice = draw(out, name, start, start + size, 1)
        compare(out, name, once, twice, tools(path, path))
        reports(release, out, name, path, once, start, offset, size)
    listed = subprocess.run([varid, "symbols", dex], capture_output=True, text=True, check=True).stdout.splitlines()
    first, last = (int(line.split()[0], 16) for line in (listed[2], listed[-1]))
    once, twice = draw(out, "dex", first, last, 2)
    compare(out, "dex", once, twice, tools(substitute, dex))
    reports(release, out, "dex", substitute, once, first, first, last - first)
    opening(release, dex)
    growing(release, out)


if __name__ == "__main__":
    main()
