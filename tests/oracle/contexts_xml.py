#!/usr/bin/env python3
"""Has a tree in XML what the other exports of its session have?

usage: contexts_xml.py XML CALLS BYTECODES METRICS

XML: of `varid export -f xml`. CALLS, BYTECODES: of `varid export -f folded --signatures --measure calls` and `bytecodes`. METRICS: of `varid metrics
--section contexts --format json`. Compares the values of each stack of a thread; those of each context with its call sites, by names without
parameters, which only some methods of metrics have; and the values of contexts with those of their places.

Prints counts as JSON, and the first differences; exit status 1 if there are any.
"""

import collections
import json
import sys
import xml.etree.ElementTree

MEASURES = ("calls", "bytecodes")


def folded(path):
    """The values of stacks by their names, as in folded stacks."""
    values = collections.Counter()
    with open(path, encoding="utf-8") as file:
        for line in file:
            stack, value = line.rstrip("\n").rsplit(" ", 1)
            values[stack] += int(value)
    return values


def contexts(path):
    """The values of contexts by callers and call sites."""
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["contexts"]
    values, paths = {measure: collections.Counter() for measure in MEASURES}, []
    for row in rows:
        caller = paths[row["caller"]] if "caller" in row else ()
        paths.append(caller + ((row.get("bci"), row["method"].split("(")[0]),))
        for measure in MEASURES:
            values[measure][paths[-1]] += row.get(measure, 0)
    return values


class Tree:
    """What a document has."""

    def __init__(self, path):
        self.stacks = {measure: collections.Counter() for measure in MEASURES}
        self.contexts = {measure: collections.Counter() for measure in MEASURES}
        self.number, self.problems = 0, []
        methods, open_contexts, thread = {}, [], None
        for event, element in xml.etree.ElementTree.iterparse(path, events=("start", "end")):
            if event == "end":
                if element.tag == "context":
                    self.context(thread, open_contexts, element)
                    open_contexts.pop()
                    element.clear()
            elif element.tag == "method":
                methods[element.get("id")] = (element.get("name"), element.get("signature", ""))
            elif element.tag == "thread":
                thread = element.get("name")
            elif element.tag == "context":
                site = element.get("site")
                open_contexts.append((None if site is None else int(site), *methods[element.get("method")]))

    def context(self, thread, path, element):
        """Adds a context."""
        self.number += 1
        stack = ";".join(part.replace(";", ":") for part in [thread, *(name + signature for _, name, signature in path)])
        places_of = tuple((site, name.split("(")[0]) for site, name, _ in path)
        for value in element.findall("value"):
            measure = value.get("measure")
            self.stacks[measure][stack] += int(value.text)
            self.contexts[measure][places_of] += int(value.text)
            placed = 0
            for places in element.findall("places"):
                if places.get("measure") == measure:
                    offsets = [int(offset) for offset in places.text.split()]
                    if len(offsets) != int(places.get("number")) or offsets != sorted(set(offsets)):
                        self.problems.append(f"{stack}: {places.attrib} of {offsets}")
                    placed += len(offsets) * int(places.get("each"))
            if placed not in (0, int(value.text)):
                self.problems.append(f"{stack}: {measure} of places are {placed} of {value.text}")


def main():
    """Prints what differs."""
    tree = Tree(sys.argv[1])
    metrics = contexts(sys.argv[4])
    expected = {measure: folded(path) for measure, path in zip(MEASURES, sys.argv[2:4])}
    for measure in MEASURES:
        for what, found, other in (
            ("stacks", tree.stacks[measure], expected[measure]),
            ("contexts", tree.contexts[measure], metrics[measure]),
        ):
            differ = [key for key in found.keys() | other.keys() if found[key] != other[key]]
            shown = [(key, found[key], other[key]) for key in differ[:5]]
            if differ:
                tree.problems.append(f"{len(differ)} {what} differ in {measure} (XML, other): {shown}")
    sums = {measure: sum(tree.stacks[measure].values()) for measure in MEASURES}
    print(json.dumps({"contexts": tree.number, "sums": sums, "problems": tree.problems[:10]}))
    return 1 if tree.problems or not tree.number else 0


if __name__ == "__main__":
    sys.exit(main())
