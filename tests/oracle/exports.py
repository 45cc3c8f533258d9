#!/usr/bin/env python3
"""Do the exports of a session in all formats name the same methods with the same weights?

usage: exports.py samples|periods FOLDER

FOLDER has a file of each format under the format's name, and `report`: varid report --by symbol --format json. Each file is read by a
reader of its own, which adds up what each name weighs as a leaf. Prints the ten heaviest as JSON; exit status 1 if a format has others
among its ten heaviest, or other weights. A flame graph leaves narrow stacks to what has called them, and is compared to within
a hundredth of the whole; of a DOT graph, which leaves out what has no large share, what it draws is.
"""

import collections
import gzip
import json
import re
import sys
import xml.etree.ElementTree
from pathlib import Path

import html_report

TEN = 10


def fields(message):
    """The fields of a protobuf message: number and value, an int or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at < len(message):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}[kind] if kind != 2 else varint()
            value = message[at : at + size]
            if len(value) != size:
                raise ValueError(f"a field of {size} bytes ends the message after {len(value)}")
            at += size
        yield tag >> 3, value


def all_of(message, number):
    """The values of a field."""
    return [value for found, value in fields(message) if found == number]


def one(message, number, default=0):
    """The value of a field; the last one counts."""
    return ([default] + all_of(message, number))[-1]


def numbers(message, number):
    """The values of a repeated field of numbers, packed or not."""
    found = []
    for value in all_of(message, number):
        if isinstance(value, int):
            found.append(value)
        else:
            # As the values of fields without tags.
            at = 0
            while at < len(value):
                end = at
                while value[end] >= 0x80:
                    end += 1
                found.append(sum((byte & 0x7F) << 7 * place for place, byte in enumerate(value[at : end + 1])))
                at = end + 1
    return found


def folded(data):
    weights = collections.Counter()
    for line in data.decode().splitlines():
        stack, weight = line.rsplit(" ", 1)
        weights[stack.split(";")[-1]] += int(weight)
    return weights


def in_flame_graph(data):
    """What each name of folded stacks weighs where those below 0.05 % of all are not drawn, and are left to what has called them."""
    lines = [line.rsplit(" ", 1) for line in data.decode().splitlines()]
    lines = [(tuple(stack.split(";")), int(weight)) for stack, weight in lines]
    totals, weights = collections.Counter(), collections.Counter()
    for stack, weight in lines:
        totals.update({stack[:depth]: weight for depth in range(1, len(stack) + 1)})
    whole = sum(weight for _, weight in lines)
    for stack, weight in lines:
        drawn = [depth for depth in range(1, len(stack) + 1) if totals[stack[:depth]] * 2000 >= whole]
        weights[stack[max(drawn, default=1) - 1]] += weight
    return weights


def flamegraph(data, by_samples):
    """A frame's own weight is what is left of it by those that hang below it."""
    root = xml.etree.ElementTree.fromstring(data)
    space = {"svg": "http://www.w3.org/2000/svg"}
    view = root.find("svg:svg[@id='frames']", space)
    rows = collections.defaultdict(list)
    for group in view.findall("svg:g", space):
        name, facts = group.find("svg:title", space).text.split("\n")
        rect = group.find("svg:rect", space)
        x, width = (float(rect.get(key).rstrip("%")) for key in ("x", "width"))
        samples, period = int(re.search(r"(\d+) samples", facts)[1]), re.search(r"(\d+) (ns|events)$", facts)
        weight = samples if by_samples else int(period[1]) if period else 0
        rows[int(rect.get("y"))].append((x, x + width, name, weight))
    step = 17
    weights = collections.Counter()
    for y, frames in rows.items():
        below = sorted(rows.get(y + step, []))
        for left, right, name, weight in frames:
            called = (frame for frame in below if frame[0] >= left - 0.0002 and frame[1] <= right + 0.0002)
            weights[name] += weight - sum(frame[3] for frame in called)
    del weights["all"]
    return weights


def pprof(data, by_samples):
    profile = gzip.decompress(data)
    strings = [value.decode() for value in all_of(profile, 6)]
    assert strings[0] == "", "the first string is empty"
    functions = {one(function, 1): strings[one(function, 2)] for function in all_of(profile, 5)}
    mappings = {one(mapping, 1) for mapping in all_of(profile, 3)}
    leaves = {}
    for location in all_of(profile, 4):
        assert one(location, 2) in mappings, "a location is in a mapping"
        leaves[one(location, 1)] = functions[one(one(location, 4), 1)]
    types = [strings[one(kind, 1)] for kind in all_of(profile, 1)]
    assert types[0] == "samples" and strings[one(profile, 14)] == types[0 if by_samples else 1], types
    weights = collections.Counter()
    for sample in all_of(profile, 2):
        labels = {strings[one(label, 1)]: strings[one(label, 2)] or one(label, 3) for label in all_of(sample, 3)}
        assert set(labels) == {"layer", "thread", "process", "tid", "pid"}, labels
        weights[leaves[numbers(sample, 1)[0]]] += numbers(sample, 2)[0 if by_samples else 1]
    return weights


def firefox(data):
    profile = json.loads(data)
    assert profile["meta"]["preprocessedProfileVersion"] == 55
    weights = collections.Counter()
    for thread in profile["threads"]:
        for name, table in thread.items():
            if isinstance(table, dict):
                columns = [column for column in table.values() if isinstance(column, list)]
                assert all(len(column) == table["length"] for column in columns), name
        stacks, frames, functions = thread["stackTable"], thread["frameTable"], thread["funcTable"]
        assert all(prefix is None or prefix < place for place, prefix in enumerate(stacks["prefix"]))
        of_time = thread["samples"]["weightType"] == "tracing-ms"
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            name = thread["stringArray"][functions["name"][frames["func"][stacks["frame"][stack]]]]
            weights[name] += round(weight * 1e6) if of_time else round(weight)
    return weights


def speedscope(data):
    profile = json.loads(data)
    names = [frame["name"] for frame in profile["shared"]["frames"]]
    weights = collections.Counter()
    for thread in profile["profiles"]:
        assert len(thread["samples"]) == len(thread["weights"])
        assert sum(thread["weights"]) == thread["endValue"]
        for stack, weight in zip(thread["samples"], thread["weights"]):
            weights[names[stack[-1]]] += weight
    return weights


def jsonl(data, by_samples):
    head, *samples = [json.loads(line) for line in data.decode().splitlines()]
    assert head["version"] == 1
    weights = collections.Counter()
    for sample in samples:
        weights[sample["frames"][0]["symbol"]] += 1 if by_samples else sample["period"]
    assert [sample["time_ns"] for sample in samples] == sorted(sample["time_ns"] for sample in samples)
    return weights


def callgrind(data):
    names, weights, function, summary = {}, collections.Counter(), None, 0
    lines = iter(data.decode().splitlines())
    for line in lines:
        named = re.fullmatch(r"(c?fn)=\((\d+)\)(?: (.*))?", line)
        if named:
            kind, number, name = named.groups()
            names[number] = name or names[number]
            if kind == "fn":
                function = names[number]
        elif line.startswith("calls="):
            next(lines)
        elif line.startswith("summary: "):
            summary = int(line.split()[1])
        elif re.fullmatch(r"\d+ \d+", line):
            weights[function] += int(line.split()[1])
    assert weights.total() == summary, (weights.total(), summary)
    return weights


def dot(data):
    weights = {}
    for name, own in re.findall(r'\[label="((?:[^"\\]|\\.)*)\\n[\d.]+ % \((\d+)\) of', data.decode()):
        name = re.sub(r"\\(.)", r"\1", name)
        weights[name] = weights.get(name, 0) + int(own)
    return collections.Counter(weights)


def chrome(data):
    weights, open_slices, times = collections.Counter(), collections.defaultdict(list), {}
    for event in json.loads(data)["traceEvents"]:
        if event["ph"] not in "BE":
            continue
        thread = (event["pid"], event["tid"])
        assert event["ts"] >= times.get(thread, 0), "a thread's events are in order"
        times[thread] = event["ts"]
        if event["ph"] == "B":
            open_slices[thread].append(event["name"])
        else:
            name = open_slices[thread].pop()
            assert name == event["name"], "slices end in order"
            weights[name] += event.get("own", 0)
    assert not any(open_slices.values()), "slices end"
    return weights


def perfetto(data):
    names, frames, stacks = {}, {}, {}
    weights = collections.Counter()
    for packet in all_of(data, 1):
        for interned in all_of(packet, 12):
            names |= {one(name, 1): one(name, 2).decode() for name in all_of(interned, 5)}
            frames |= {one(frame, 1): one(frame, 2) for frame in all_of(interned, 6)}
            stacks |= {one(stack, 1): numbers(stack, 2) for stack in all_of(interned, 7)}
        for sample in all_of(packet, 66):
            if not one(sample, 17):
                weights[names[frames[stacks[one(sample, 4)][-1]]]] += 1
    return weights


def otlp(data):
    dictionary = one(data, 2, b"")
    strings = [value.decode() for value in all_of(dictionary, 5)]
    functions = [strings[one(function, 1)] for function in all_of(dictionary, 3)]
    locations = [functions[one(one(location, 3, b""), 1)] for location in all_of(dictionary, 2)]
    stacks = [numbers(stack, 1) for stack in all_of(dictionary, 7)]
    assert not stacks[0] and strings[0] == locations[0] == "", "the first of each table is empty"
    weights = collections.Counter()
    for resource in all_of(data, 1):
        for scope in all_of(resource, 2):
            for profile in all_of(scope, 2):
                for sample in all_of(profile, 2):
                    weights[locations[stacks[one(sample, 1)][0]]] += sum(numbers(sample, 4))
    return weights


def images_by_name(data):
    """Of each name the files of JSON Lines' frames that have it."""
    images = collections.defaultdict(set)
    for line in data.splitlines()[1:]:
        for frame in json.loads(line)["frames"]:
            images[plain(frame["symbol"])].add(frame["image"])
    return images


def html(data, by_samples):
    weights = collections.Counter()
    for _, _, frames, period in html_report.samples(*html_report.unpacked(data.decode())):
        if frames:
            weights[frames[-1][0]] += 1 if by_samples else period
    return weights


def report(data, by_samples):
    weights = collections.Counter()
    for row in json.loads(data)["rows"]:
        weights[row["symbol"]] += row["self" if by_samples else "self_period"]
    return weights


def plain(name):
    """Folded stacks have no ; in names."""
    return name.replace(";", ":")


def heaviest(weights):
    """The ten heaviest; where several weigh as much as the tenth, all of them."""
    weights = collections.Counter(weights)
    bound = min(weight for _, weight in weights.most_common(TEN))
    return {name: weight for name, weight in weights.items() if weight >= bound}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("samples", "periods"):
        sys.exit(__doc__)
    by_samples, folder = sys.argv[1] == "samples", Path(sys.argv[2])
    readers = {"folded": folded, "firefox": firefox, "speedscope": speedscope, "callgrind": callgrind, "chrome": chrome, "otlp": otlp}
    with_choice = {"report": report, "flamegraph": flamegraph, "pprof": pprof, "jsonl": jsonl, "html": html}
    found = {name: read((folder / name).read_bytes()) for name, read in readers.items()}
    found |= {name: read((folder / name).read_bytes(), by_samples) for name, read in with_choice.items()}
    if by_samples:
        found["perfetto"] = perfetto((folder / "perfetto").read_bytes())
    found = {name: collections.Counter({plain(key): value for key, value in weights.items()}) for name, weights in found.items()}
    expected = found.pop("jsonl")
    whole, ten = expected.total(), heaviest(expected)
    wrong = []
    graph, in_graph = found.pop("flamegraph"), in_flame_graph((folder / "folded").read_bytes())
    for name in ten:
        if abs(graph[name] - in_graph[name]) > whole / 100:
            wrong.append(f"flamegraph: {name} {graph[name]}, not {in_graph[name]}")
    drawn, images = dot((folder / "dot").read_bytes()), images_by_name((folder / "jsonl").read_bytes())
    for name, weight in drawn.items():
        # Copies that were compiled into callers, and functions of other files, are methods of their own there; one may not be drawn.
        may_be_less = not by_samples or len(images[plain(name)]) > 1
        if weight > expected[plain(name)] or (weight < expected[plain(name)] and not may_be_less):
            wrong.append(f"dot: {name} {weight}, not {expected[plain(name)]}")
    if len(drawn) < min(TEN, len(expected)):
        wrong.append(f"dot: {len(drawn)} methods only")
    for name, weights in found.items():
        if heaviest(weights) != ten:
            wrong.append(f"{name}: {heaviest(weights)}")
        if weights.total() != whole:
            wrong.append(f"{name}: {weights.total()} in all, not {whole}")
    for line in wrong:
        print(line, file=sys.stderr)
    print(json.dumps({"formats": len(found) + 3, "whole": whole, "heaviest": ten}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
