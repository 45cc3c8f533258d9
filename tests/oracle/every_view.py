#!/usr/bin/env python3
"""Do all views of a session show the same samples?

usage: every_view.py views VARID SESSION       each view of each event, against the samples
       every_view.py diff VARID A B            the comparison of two sessions, against both

The samples are those that `varid export -f jsonl` writes, one a line. They are checked against an unmodified perf's reading of perf.data: as
many of each event, with the same threads, times and weights, and the same leaves of the app's methods. What each view must show is added
up from them here. Prints what was compared as JSON; exit status 1 if a view shows something else, a number that is none, or an empty name.
"""

import collections
import concurrent.futures
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

WORKERS = 2
LONGEST = 700  # characters of what is found and expected: a stack may have a hundred names
# Names that a row must have; a method that no class file names has none that is empty.
NAMES = {"symbol", "image", "layer", "thread", "process", "event", "name"}
# Numbers that may be negative: differences.
SIGNED = {"points", "absolute_change", "change_percent"}
HEAD = re.compile(r"^ *(-?\d+) +(\d+)\.(\d+): +(\d+) +(\S.*?): *(?:([0-9a-f]+) (.*))?$")
APP = "org.example."


class Failed(Exception):
    """A view shows something else than the samples."""


def expect(what, found, expected):
    if found != expected:
        if isinstance(found, dict) and isinstance(expected, dict):
            keys = [key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)]
            found, expected = ({key: which.get(key) for key in keys[:5]} for which in (found, expected))
        raise Failed(f"{what}: {str(found)[:LONGEST]}, not {str(expected)[:LONGEST]}")


def printed(*command):
    ran = subprocess.run(command, capture_output=True, text=True)
    if "-q" in command and ran.stderr:
        raise Failed(f"{' '.join(map(str, command))}: is not quiet: {ran.stderr}")
    if ran.returncode:
        raise Failed(f"{' '.join(map(str, command))}: exit status {ran.returncode}: {ran.stderr}")
    return ran.stdout


def sane(what, value, key=""):
    """All numbers are numbers, none but differences is negative, shares are shares, and all names are there."""
    if isinstance(value, dict):
        for name, part in value.items():
            sane(f"{what} {name}", part, name)
    elif isinstance(value, list):
        for part in value:
            sane(what, part, key)
    elif isinstance(value, str):
        if key in NAMES and not value.strip():
            raise Failed(f"{what}: an empty name")
    elif isinstance(value, (int, float)):
        if not math.isfinite(value) or (value < 0 and key not in SIGNED):
            raise Failed(f"{what}: {value}")
        if key.endswith("percent") and key not in SIGNED and value > 100.0001:
            raise Failed(f"{what}: {value} percent")


class Weights:
    """Samples and the sum of their periods, by key."""

    def __init__(self):
        self.samples, self.period = collections.Counter(), collections.Counter()

    def add(self, keys, period):
        for key in keys:
            self.samples[key] += 1
            self.period[key] += period

    def of(self, key):
        return self.samples[key], self.period[key]


def weigh(samples, keys):
    weights = Weights()
    for sample in samples:
        weights.add(keys(sample), sample["period"])
    return weights


def symbol(frame):
    return frame["layer"], frame["image"], frame["symbol"]


def line(frame):
    return (*symbol(frame), frame.get("file", ""), frame.get("line", 0))


def leaf(of):
    return lambda sample: [of(frame) for frame in sample["frames"][:1]]


def stack(of):
    return lambda sample: {of(frame) for frame in sample["frames"]}


class Session:
    def __init__(self, varid, path):
        self.varid, self.path = varid, path

    def text(self, verb, *options):
        text = printed(self.varid, verb, *options, "-i", self.path)
        # As Rust writes what is no number; instructions have constants of their own.
        if verb != "annotate" and (found := re.search(r"\b(NaN|inf)\b|(?<![\w.~])-\d+\.\d+ *%", text)):
            raise Failed(f"{verb} {' '.join(options)}: {found[0]!r} in its text")
        return text

    def json(self, verb, *options):
        document = json.loads(printed(self.varid, verb, "--format", "json", *options, "-i", self.path))
        sane(f"{verb} {' '.join(options)}", document)
        return document

    def samples(self, *options):
        text = printed(self.varid, "export", "-q", "-f", "jsonl", *options, "-i", self.path)
        head, *samples = map(json.loads, text.splitlines())
        for sample in samples:
            sane("jsonl", sample)
        return head, samples


def several(report, of):
    """What has rows of one name, such as both destructors of a C++ class: their stacks may overlap."""
    names = collections.Counter(of(row) for row in report["rows"])
    return {name for name, count in names.items() if count > 1}


def without(weights, names, of=lambda key: [key]):
    """What is left without some names."""
    for counter in (weights.samples, weights.period):
        for key in [key for key in counter if names.intersection(of(key))]:
            del counter[key]
    return weights


def rows_of(report, *key):
    """Own and total weights of a report's rows by their key, of those that have samples."""
    own, total = Weights(), Weights()
    for row in report["rows"]:
        name = tuple(row.get(part, 0 if part == "line" else "") for part in key)
        for weights, kind in ((own, "self"), (total, "total")):
            if row[kind]:
                weights.samples[name] += row[kind]
            if row[f"{kind}_period"]:
                weights.period[name] += row[f"{kind}_period"]
        whole = report["period_sum"]
        for kind in ("self", "total"):
            share = row[f"{kind}_period"] * 100 / whole if whole else 0
            if abs(row[f"{kind}_percent"] - share) > 1e-5:
                raise Failed(f"{name}: {row[f'{kind}_percent']} percent, not {share}")
    return own, total


def equal(what, found, expected):
    expect(f"{what}, samples", dict(found.samples), dict(+expected.samples))
    expect(f"{what}, periods", dict(+found.period), dict(+expected.period))


class Event:
    """The views of one event of a session."""

    def __init__(self, session, name):
        self.session, self.name = session, name
        self.head, self.plain = session.samples("-e", name, "--no-inline", "--no-lines")
        _, self.inlined = session.samples("-e", name)
        self.period = sum(sample["period"] for sample in self.plain)
        expect(f"{name}: samples with inlined functions", len(self.inlined), len(self.plain))

    def report(self, *options):
        report = self.session.json("report", "-e", self.name, *options)
        expect(f"{options}: event", report["event"], self.name)
        return report

    def whole(self, report, what):
        expect(f"{what}: samples", (report["samples"], report["period_sum"]), (len(self.plain), self.period))
        layers = collections.Counter({row["layer"]: row["self"] for row in report["layers"]})
        expect(f"{what}: layers", dict(+layers), dict(weigh(self.plain, leaf(lambda frame: frame["layer"])).samples))
        totals = {row["layer"]: row["total"] for row in report["layers"] if row["total"]}
        expect(f"{what}: totals of layers", totals, dict(weigh(self.plain, stack(lambda frame: frame["layer"])).samples))

    def tables(self):
        tables = {
            "layer": (("layer",), lambda frame: (frame["layer"],), self.plain),
            "image": (("layer", "image"), lambda frame: (frame["layer"], frame["image"]), self.plain),
            "symbol": (("layer", "image", "symbol"), symbol, self.plain),
            "line": (("layer", "image", "symbol", "file", "line"), line, self.inlined),
        }
        for by, (key, of, samples) in tables.items():
            report = self.report("--by", by)
            self.whole(report, f"--by {by}") if by != "line" else None
            if by == "image":
                # A file's row has one layer, whatever the layers of its functions are.
                key, of = ("image",), lambda frame: (frame["image"],)
            own, total = rows_of(report, *key)
            equal(f"{self.name} --by {by}", own, weigh(samples, leaf(of)))
            expected = weigh(samples, stack(of))
            if by == "image":
                # Markers say what is missing from a stack: they are in no file.
                expected = without(expected, {("[marker]",)})
            names = several(report, of) if by in ("symbol", "line") else set()
            equal(f"{self.name} --by {by}, total", without(total, names), without(expected, names))
        tasks = {"thread": ("pid", "process", "tid", "thread"), "process": ("pid", "process")}
        for by, key in tasks.items():
            own, _ = rows_of(self.report("--by", by), *key)
            equal(f"{self.name} --by {by}", own, weigh(self.plain, lambda sample: [tuple(sample[part] for part in key)]))
        rows = {row["event"]: row for row in self.report("--by", "event")["rows"]}
        row = rows[self.name]
        expect(f"{self.name} --by event", (row["samples"], row["period"]), (len(self.plain), self.period))

    def text(self):
        """The first table by symbol in text has the samples of JSON, with their shares."""
        rows = self.report("--by", "symbol")["rows"][:10]
        text = self.session.text("report", "-e", self.name, "--by", "symbol", "-n", "10")
        table = text.split(" symbol name\n")[1].split("\n\n")[0].splitlines()
        shown = [re.split(r"  +", line.strip(), maxsplit=5) for line in table if not line.startswith("(")]
        shown = [(int(own), percent, int(total), of_total, image, name) for own, percent, total, of_total, image, name in shown]
        expected = [
            (row["self"], f"{row['self_percent']:.2f}", row["total"], f"{row['total_percent']:.2f}", row["image"], row["symbol"])
            for row in rows
        ]
        # Two decimals of six.
        for one, other in zip(shown, expected):
            close = all(abs(float(one[at]) - float(other[at])) < 0.011 for at in (1, 3))
            expect(f"{self.name} in text", one if not close else (one[0], one[2], *one[4:]), other if not close else (other[0], other[2], *other[4:]))
        expect(f"{self.name} in text: rows", len(shown), len(expected))
        for options in ([], ["--tree"], ["--tree=bottom-up"], ["--callgraph", "-n", "20"], ["--by", "line"], ["--group"]):
            self.session.text("report", "-e", self.name, *options)

    def trees(self):
        # A function that calls itself is one node, and two functions of one name look like one.
        key = lambda frames: tuple(name for at, name in enumerate(frames) if not at or frames[at - 1] != name)
        paths = lambda way: lambda sample: [key([symbol(frame) for frame in sample["frames"][::way]])]
        for option, way, ends in (("--tree", -1, "self"), ("--tree=bottom-up", 1, "outermost")):
            report = self.report(option, "--min-percent", "0")
            path, nodes, roots = [], Weights(), Weights()
            open_nodes = []

            def close(depth):
                while len(open_nodes) > depth:
                    row, below = open_nodes.pop()
                    expect(f"{option} at {row['symbol']}", row["total"], row[ends] + below + row["hidden_total"])

            for row in report["rows"]:
                depth = row["depth"]
                close(depth)
                path[depth:] = [symbol(row)]
                if depth == 0:
                    roots.samples["all"] += row["total"]
                    roots.period["all"] += row["total_period"]
                else:
                    open_nodes[-1] = (open_nodes[-1][0], open_nodes[-1][1] + row["total"])
                open_nodes.append((row, 0))
                if row[ends]:
                    nodes.samples[key(path)] += row[ends]
                    nodes.period[key(path)] += row[f"{ends}_period"]
            close(0)
            with_frames = [sample for sample in self.inlined if sample["frames"]]
            equal(f"{self.name} {option}: roots", roots, weigh(with_frames, lambda _: ["all"]))
            equal(f"{self.name} {option}", nodes, weigh(with_frames, paths(way)))
            names = collections.Counter()
            for row in report["rows"]:
                if row["depth"] == 0:
                    names[symbol(row)] += row["total"]
            first = weigh(with_frames, lambda sample: [symbol(sample["frames"][::way][0])])
            expect(f"{self.name} {option}: roots", dict(names), dict(first.samples))

    def callgraph(self):
        edges = Weights()
        for sample in self.inlined:
            frames = [symbol(frame) for frame in sample["frames"]]
            edges.add(set(zip(frames[1:], frames)), sample["period"])
        report = self.report("--callgraph")
        own, total = rows_of(report, "layer", "image", "symbol")
        equal(f"{self.name} --callgraph", own, weigh(self.inlined, leaf(symbol)))
        names = several(report, symbol)
        equal(f"{self.name} --callgraph, total", without(total, names), without(weigh(self.inlined, stack(symbol)), names))
        for kind, at in (("callers", 0), ("callees", 1)):
            found = Weights()
            for row in report["rows"]:
                for other in row[kind]:
                    edge = (symbol(other), symbol(row))[:: 1 if at == 0 else -1]
                    found.samples[edge] += other["samples"]
                    found.period[edge] += other["period"]
            ends = lambda edge: edge
            equal(f"{self.name} {kind}", without(found, names, ends), without(edges, names, ends))

    def part(self, *options):
        """Samples and period of what options leave, by the rows of threads: each sample is in one."""
        report = self.report("--by", "thread", *options)
        own, _ = rows_of(report, "tid")
        return own.samples.total(), own.period.total()

    def filters(self):
        chosen = lambda keep: (sum(map(keep, self.plain)), sum(sample["period"] for sample in self.plain if keep(sample)))
        whole = len(self.plain), self.period
        together = lambda parts: tuple(map(sum, zip(*parts)))

        def compare(options, keep):
            found = self.part(*options)
            expect(f"{self.name} {' '.join(options)}", found, chosen(keep))
            return found

        layers = ("app", "framework", "vm", "native", "kernel")
        parts = [compare(["--layer", layer], lambda sample: sample["layer"] == layer) for layer in layers]
        expect(f"{self.name}: the layers together", together(parts), whole)
        tids = sorted({sample["tid"] for sample in self.plain})
        parts = [compare(["--tid", str(tid)], lambda sample: sample["tid"] == tid) for tid in tids[:6]]
        if len(tids) <= 6:
            expect(f"{self.name}: the threads together", together(parts), whole)
        names = collections.Counter(sample["thread"] for sample in self.plain)
        for name, _ in names.most_common(2):
            compare(["--thread", name], lambda sample: name in sample["thread"])
        times = sorted(sample["time_ns"] for sample in self.plain)
        middle = times[len(times) // 2] // 1_000_000
        before = compare(["--time", f"..{middle}ms"], lambda sample: sample["time_ns"] < middle * 1_000_000)
        after = compare(["--time", f"{middle}ms.."], lambda sample: sample["time_ns"] >= middle * 1_000_000)
        expect(f"{self.name}: both times together", together((before, after)), whole)
        third = self.part("--time", f"0..{middle / 3000:.6f}"), self.part("--time", f"{middle / 3000:.6f}..{middle / 1000:.6f}")
        expect(f"{self.name}: two windows together", together(third), before)
        for pattern in (r"^org\.example\.", r"^libart\.so", r"Main\.run$"):
            has = lambda sample: any(re.search(pattern, frame[key]) for frame in sample["frames"] for key in ("symbol", "image"))
            focus = compare(["--focus", pattern], has)
            ignore = compare(["--ignore", pattern], lambda sample: not has(sample))
            expect(f"{self.name} --focus and --ignore {pattern}", together((focus, ignore)), whole)
        hottest = weigh(self.plain, leaf(lambda frame: frame["symbol"])).samples.most_common(1)
        for name, _ in hottest:
            pattern = f"^{re.escape(name)}$"
            compare(["--symbol", pattern], lambda sample: sample["frames"][0]["symbol"] == name if sample["frames"] else False)
        both = ["--layer", "app", "--focus", r"^org\.example\.", "--time", f"{middle}ms.."]
        compare(both, lambda sample: sample["layer"] == "app" and sample["time_ns"] >= middle * 1_000_000
                and any(frame["symbol"].startswith(APP) for frame in sample["frames"]))

    def annotate(self):
        """The hottest methods of the app, and the hottest function of anything else."""
        own = weigh(self.plain, leaf(symbol))
        app = [key for key, _ in own.samples.most_common() if key[0] == "app" and key[2].startswith(APP)][:2]
        other = [key for key, _ in own.samples.most_common() if key[0] in ("native", "vm") and "+0x" not in key[2]][:1]
        for key in app + other:
            arguments = ["-e", self.name, "--image", key[1], f"^{re.escape(key[2])}$"]
            method = self.session.json("annotate", *arguments)
            found = method["method"]
            expect(f"annotate {key[2]}", (found["self"], found["self_period"]), own.of(key))
            lines = [line for file in method["files"] for line in file["lines"]]
            # Code that was made at run time has none. Samples without a line are in a line without a number.
            if lines:
                expect(f"annotate {key[2]}: its lines", sum(line["self"] for line in lines), found["self"])
            self.session.text("annotate", *arguments)

    def views(self):
        """What is wrong with any view."""
        wrong = []
        for view in (self.tables, self.text, self.trees, self.callgraph, self.filters, self.annotate):
            try:
                view()
            except Failed as failed:
                wrong.append(str(failed))
        return wrong


def perf_samples(path):
    """Samples by perf script: by event, (thread, time, weight) and the leaf's name."""
    found = collections.defaultdict(list)
    text = printed("perf", "script", "-i", path, "--ns", "-G", "-F", "tid,time,period,event,ip,sym")
    for row in text.splitlines():
        head = HEAD.match(row)
        if not head:
            raise Failed(f"perf script printed {row!r}")
        tid, seconds, nanoseconds, period, event, _, name = head.groups()
        time = int(seconds) * 1_000_000_000 + int(nanoseconds)
        found[event].append((int(tid), time, int(period), name or ""))
    return found


def as_perf_reads_it(session, events):
    found = perf_samples(f"{session.path}/perf.data")
    expect("events", sorted(event.name for event in events), sorted(found))
    for event in events:
        theirs, ours = found[event.name], event.plain
        expect(f"{event.name}: samples by perf", len(theirs), len(ours))
        # Times count from the start of the session, which every sample is as far from.
        theirs_by = sorted((time, tid, period) for tid, time, period, _ in theirs)
        ours_by = sorted((sample["time_ns"], sample["tid"], sample["period"]) for sample in ours)
        start = theirs_by[0][0] - ours_by[0][0]
        expect(f"{event.name}: by perf", [(time - start, tid, period) for time, tid, period in theirs_by], ours_by)
        leaves = collections.Counter(name for *_, name in theirs if name.startswith(APP) and name.isascii())
        own = weigh(ours, leaf(lambda frame: frame["symbol"])).samples
        expect(f"{event.name}: methods by perf", dict(leaves), {name: own[name] for name in leaves})
        if event.name == events[0].name and leaves:
            rows = printed("perf", "report", "-i", f"{session.path}/perf.data", "--stdio", "--no-children", "-g", "none", "-n", "-t", "|", "--sort", "symbol")
            first = re.split(r"^# Samples", rows, flags=re.M)[1]
            shown = collections.Counter()
            for row in first.splitlines():
                fields = [field.strip() for field in row.split("|")]
                if len(fields) >= 3 and APP in row and row.isascii():
                    shown[fields[2].split(" ", 1)[1].strip()] += int(fields[1])
            expect("perf report", dict(shown), {name: own[name] for name in shown})
            expect("perf report: methods", shown.total(), leaves.total())


def compressed(session, event):
    """The same recording compressed, compact and plain again, to the byte; a report of each."""
    files = [Path(session.path) / name for name in ("perf.data", "records.data")]
    before, report = files[0].read_bytes(), event.report("--by", "symbol")
    size = len(before)
    for options in ([], ["--compact"], ["--undo"]):
        printed(session.varid, "compress", "-q", *options, "-i", session.path)
        expect(f"compress {' '.join(options)}", event.report("--by", "symbol"), report)
        after = sum(file.stat().st_size for file in files if file.exists())
        if options != ["--undo"] and after >= size:
            raise Failed(f"compress {' '.join(options)} makes a recording no smaller")
        size = after
    if files[0].read_bytes() != before:
        raise Failed("compress --undo does not give the recording back")


def imported(session, events):
    """A session of what perf script prints of the recording has as many samples of the app's methods."""
    with tempfile.TemporaryDirectory() as folder:
        file, path = f"{folder}/text", f"{folder}/session"
        fields = "comm,pid,tid,time,period,event,ip,sym,dso"
        Path(file).write_text(printed("perf", "script", "--header", "--no-inline", "-F", fields, "-i", f"{session.path}/perf.data"))
        printed(session.varid, "import", "-q", file, "-o", path)
        other = Session(session.varid, path)
        for event in events:
            report = other.json("report", "--by", "symbol", "-e", event.name)
            expect(f"imported {event.name}", (report["samples"], report["period_sum"]), (len(event.plain), event.period))
            own = collections.Counter()
            for row in report["rows"]:
                own[row["symbol"]] += row["self"]
            expected = weigh(event.plain, leaf(lambda frame: frame["symbol"])).samples
            methods = {name: count for name, count in expected.items() if name.startswith(APP) and name.isascii() and " " not in name}
            expect(f"imported {event.name}", {name: own[name] for name in methods}, methods)


def views(varid, path):
    session = Session(varid, path)
    names = [row["event"] for row in session.json("report", "--by", "event")["rows"] if row["samples"]]
    events = [Event(session, name) for name in names]
    as_perf_reads_it(session, events)
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        wrong = sum(pool.map(Event.views, events), [])
    if wrong:
        raise Failed("\n".join(wrong))
    session.text("report")
    imported(session, events)
    compressed(session, events[0])
    return {event.name: len(event.plain) for event in events}


def difference(varid, a, b):
    sides = {}
    for side, path in (("a", a), ("b", b)):
        _, samples = Session(varid, path).samples("--no-inline", "--no-lines")
        sides[side] = samples
    compared = json.loads(printed(varid, "diff", "--format", "json", a, b))
    sane("diff", compared)
    text = printed(varid, "diff", a, b)
    if found := re.search(r"\b(NaN|inf)\b", text):
        raise Failed(f"diff: {found[0]} in its text")
    for side, samples in sides.items():
        expect(f"diff: samples of {side}", compared[side][0]["samples"], len(samples))
        for rows, of in (("layers", lambda frame: (frame["layer"],)), ("rows", symbol)):
            key = ("layer",) if rows == "layers" else ("layer", "image", "symbol")
            own = weigh(samples, leaf(of))
            found = {tuple(row[part] for part in key): row[f"{side}_samples"] for row in compared[rows]}
            expect(f"diff: {rows} of {side}", {name: count for name, count in found.items() if count}, dict(own.samples))
            shares = math.fsum(row[f"{side}_percent"] for row in compared[rows])
            if abs(shares - 100) > 0.01:
                raise Failed(f"diff: {rows} of {side} are {shares} percent together")
    for row in compared["layers"] + compared["rows"]:
        if abs(row["points"] - (row["b_percent"] - row["a_percent"])) > 1e-5:
            raise Failed(f"diff: {row}")
    return {side: len(samples) for side, samples in sides.items()}


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("views", "diff"):
        sys.exit(__doc__)
    try:
        found = views(*sys.argv[2:]) if sys.argv[1] == "views" else difference(*sys.argv[2:])
    except Failed as failed:
        print(f"{' '.join(sys.argv[3:])}: {failed}", file=sys.stderr)
        print("{}")
        return 1
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
