#!/usr/bin/env python3
"""Do the counts of a VM that was killed satisfy the flow equations, up to the frames in flight?

usage: flow.py SESSION CLASS
Judges each context of the methods of CLASS and of classes whose names begin with its name:

* An instruction that only the one before it leads to was executed at most as often.
* A call of such a method was executed as often as the methods were called there, or once more.
* As often as it was called, the method returned, was left by an exception, or is one that was executed when the VM ended. Without exceptions
  that is at most once. Such contexts, and those in which a call was executed once more, are of frames in flight: in a thread they are callers of
  each other.

Prints counts as JSON, and the first wrong contexts; exit status 1 if there are any.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

from metrics import INVOKEDYNAMIC, OPCODES, Session

RETURNS = range(172, 178)
NO_FALL = {"goto", "goto_w", "jsr", "jsr_w", "ret", "tableswitch", "lookupswitch", "athrow"}


def length(code, bci):
    """Returns the length of an instruction that is no switch."""
    name = OPCODES[code[bci]]
    if name in ("bipush", "ldc", "ret", "newarray") or name.endswith(("load", "store")) and code[bci] < 59 and not 46 <= code[bci] < 54:
        return 2
    if name in ("invokeinterface", "invokedynamic", "goto_w", "jsr_w"):
        return 5
    three = ("sipush", "ldc_w", "ldc2_w", "iinc", "goto", "jsr", "new", "anewarray", "checkcast", "instanceof")
    if name in three or name.startswith(("if", "get", "put", "invoke")):
        return 3
    return {"multianewarray": 4, "wide": 6 if OPCODES[code[bci + 1]] == "iinc" else 4}.get(name, 1)


def pairs_in_blocks(code, counted):
    """Returns pairs of instructions of which the second one follows the first one only. Counted: the instructions with counts."""
    targets, ends = set(), {}
    places = sorted(counted)
    for bci in places:
        name = OPCODES[code[bci]]
        if name in ("goto", "jsr") or name.startswith("if"):
            targets.add(bci + int.from_bytes(code[bci + 1 : bci + 3], "big", signed=True))
        elif name in ("tableswitch", "lookupswitch"):
            return []
        if code[bci] not in RETURNS and name not in NO_FALL and not name.startswith("if"):
            ends[bci + length(code, bci)] = bci
    return [(ends[bci], bci) for bci in places if bci in ends and bci not in targets]


def main():
    session, prefix = Session(Path(sys.argv[1])), sys.argv[2]
    tree = session.contexts
    calls, steps, children = defaultdict(int), defaultdict(dict), defaultdict(list)
    for (node, counter, place), value in tree.counts.items():
        if counter == "calls":
            calls[node] = value
        else:
            steps[node][place] = value
    for node, (parent, site, _) in enumerate(tree.nodes):
        children[parent, site].append(node)
    sites = defaultdict(list)
    for number, (method, *_) in enumerate(tree.sites):
        sites[method].append(number)
    flight, wrong, equations = [], [], 0
    for node, (_, _, method) in enumerate(tree.nodes):
        address = tree.methods[method][0]
        _, class_name, name, _ = session.names[address]
        code = session.code(address) if class_name.startswith(prefix) else None
        if code is None or "$$" in class_name:
            continue
        counts, in_flight = steps[node], False
        for before, behind in pairs_in_blocks(code, counts):
            equations += 1
            if counts[behind] > counts[before]:
                wrong.append(f"{class_name}.{name}: {counts[before]} at {before}, {counts[behind]} at {behind}")
        for number in sites[method]:
            _, bci, opcode, declared = tree.sites[number]
            target = declared.split("(")[0].rsplit(".", 1)
            if opcode == INVOKEDYNAMIC or not target[0].startswith(prefix):
                continue
            called = [child for child in children[node, number] if session.names[tree.methods[tree.nodes[child][2]][0]][2] == target[1]]
            more = counts.get(bci, 0) - sum(calls[child] for child in called)
            equations += 1
            in_flight |= more == 1
            if not 0 <= more <= 1:
                wrong.append(f"{class_name}.{name}: {more} more executions at {bci} than calls")
        if not any(OPCODES[code[bci]] == "athrow" for bci in counts):
            left = calls[node] - sum(value for bci, value in counts.items() if code[bci] in RETURNS)
            equations += 1
            if left < 0:
                wrong.append(f"{class_name}.{name}: {-left} more returns than calls")
        if in_flight:
            flight.append(node)
    chains = defaultdict(list)
    for node in flight:
        ancestors, above = [node], tree.nodes[node][0]
        while above is not None:
            ancestors.append(above)
            above = tree.nodes[above][0]
        chains[ancestors[-1]].append(ancestors)
    for found in chains.values():
        deepest = set(max(found, key=len))
        wrong += [f"node {path[0]} is in flight beside others" for path in found if path[0] not in deepest]
    print(json.dumps({"equations": equations, "in flight": len(flight), "wrong": wrong[:20]}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
