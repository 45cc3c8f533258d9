#!/usr/bin/env python3
"""What must a profile of org.example.truth show? Writes truth.json from the smali that is assembled.

usage: describe.py SMALI-DIR TRUTH.json

`shares`: for each method, bytecode instructions executed, self and total, and their shares. They are counted: the
instructions of a method outside its loop, plus those of the loop times the iterations that the method's factor says.
All loops must consist of the same instructions, or this fails.

`threads`: each worker's share of the work.

`scenarios`: for each method of Main, the calls between methods of this package that happen in it, as [caller, callee], and
the deepest stack in frames of this package, Main's method included.
"""

import json
import re
import sys
from pathlib import Path

PACKAGE = "org.example.truth"
CYCLE = 801  # rounds after which the lengths of the rounds repeat
FACTORS = {"outer10": 10, "middle5": 5, "work40": 40, "work30": 30, "both10": 5, "work5": 5}
WORKERS = (50, 30, 20)


def base(i):
    """The length of round i of Main.shares."""
    return 600 + i * 389 % CYCLE


def method_lines(smali, name):
    """The labels and instructions of a method."""
    match = re.search(rf"^\.method [^\n]*\b{name}\(.*?\n(.*?)^\.end method", smali, re.M | re.S)
    lines = [line.strip() for line in match[1].splitlines()]
    return [line for line in lines if line and not line.startswith(".")]


def split_loop(lines):
    """Instructions outside the loop, and in it; the loop begins at its label and ends with the goto to it."""
    start = next(i for i, line in enumerate(lines) if line.startswith(":loop"))
    end = lines.index(f"goto {lines[start]}")
    instructions = [line for line in lines if not line.startswith(":")]
    loop = [line for line in lines[start : end + 1] if not line.startswith(":")]
    outside = len(instructions) - len(loop)
    return outside, loop


def calls(lines):
    """The methods of Shares that a method calls, in order."""
    return re.findall(r"Shares;->(\w+)\(", "\n".join(lines))


def shares(folder):
    """The section `shares`."""
    smali = (folder / "Shares.smali").read_text()
    bases = sum(base(i) for i in range(CYCLE))
    main = method_lines((folder / "Main.smali").read_text(), "shares")
    callees = {name: calls(method_lines(smali, name)) for name in FACTORS}
    outside, loop = split_loop(main)
    # The loop's test runs once more than its body.
    own = {"shares": outside + 1 + len(loop) * CYCLE}
    callees["shares"] = calls(main)

    times = {"shares": CYCLE}
    for caller in ("shares", "outer10", "middle5"):
        for callee in callees[caller]:
            times[callee] = times.get(callee, 0) + CYCLE
    loops = {name: split_loop(method_lines(smali, name)) for name in FACTORS}
    # Opcodes and registers, without the names of the labels.
    shapes = {tuple(re.sub(r":\w+", "", line) for line in loop) for _, loop in loops.values()}
    if len(shapes) != 1:
        sys.exit("describe.py: the loops of Shares differ")
    iteration = len(loops["work40"][1])
    per_call = {}
    for name, (outside, loop) in loops.items():
        per_call[name] = (outside + 1) * CYCLE + iteration * FACTORS[name] * bases
        own[name] = per_call[name] * times[name] // CYCLE

    def subtree(name):
        """Instructions of a method called once a round, and of what it calls."""
        return (own[name] if name == "shares" else per_call[name]) + sum(map(subtree, callees[name]))

    everything = sum(own.values())
    symbol = {name: f"{PACKAGE}.{'Main' if name == 'shares' else 'Shares'}.{name}" for name in own}
    methods = []
    for name in own:
        total = subtree(name) * times[name] // CYCLE
        methods.append({
            "symbol": symbol[name],
            "calls": 1 if name == "shares" else times[name],
            "self_instructions": own[name],
            "total_instructions": total,
            "self_share": own[name] / everything,
            "total_share": total / everything,
        })  # fmt: skip
    edges = [
        {"caller": symbol[caller], "callee": symbol[callee], "calls": CYCLE, "instructions": subtree(callee)}
        for caller in ("shares", "outer10", "middle5")
        for callee in callees[caller]
    ]
    return {
        "method": symbol["shares"],
        "rounds": CYCLE,
        "instructions": everything,
        "instructions_per_iteration": iteration,
        "methods": methods,
        "edges": edges,
    }


# Edges by scenario, as `Class.method` of this package; a callee without a class is the caller's own.
EDGES = {
    "recursion": (83, "Main.recursion Recursion.down", "Recursion.down Recursion.down Recursion.spin"),
    "pingPong": (72, "Main.pingPong Recursion.ping", "Recursion.ping Recursion.pong", "Recursion.pong Recursion.ping"),
    "interfaces": (
        3,
        "Main.interfaces Square.<init> Triangle.<init> Comb.<init> Square.area Triangle.area Comb.area",
        "Comb.<init> Square.<init>",
        "Comb.area Square.area",
        "Triangle.area Triangle.half",
    ),
    "exceptions": (
        66,
        "Main.exceptions Unwinding.caught Unwinding.implicit",
        "Unwinding.caught Unwinding.descend",
        "Unwinding.descend Unwinding.descend Unwinding.again Deep.<init>",
        "Unwinding.again Unwinding.descend Deep.<init>",
        "Unwinding.implicit Unwinding.lengthOf",
    ),
    "threads": (
        3,
        "Main.threads Worker50.<init> Worker30.<init> Worker20.<init> Worker.result",
        "Worker50.<init> Worker.<init>",
        "Worker30.<init> Worker.<init>",
        "Worker20.<init> Worker.<init>",
        "Worker.run Worker50.work Worker30.work Worker20.work",
    ),
    "tiny": (2, "Main.tiny Tiny.<init> Tiny.get Tiny.set Tiny.add Tiny.twice"),
    "virtual": (3, "Main.virtual Step.<init> LongStep.<init> Step.go LongStep.go", "LongStep.<init> Step.<init>", "LongStep.go Step.go"),
    "locked": (
        3,
        "Main.locked Counter.<init> CountingWorker.<init> Counter.increments Counter.count",
        "Counter.increments Counter.increment",
        "CountingWorker.run Counter.increments",
    ),
    "jni": (18, "Main.jni Native.bounce", "Native.bounce Native.back", "Native.back Native.bounce Recursion.spin"),
}


def scenarios():
    """The section `scenarios`."""
    sections = {}
    for name, (depth, *lines) in EDGES.items():
        edges = []
        for line in lines:
            caller, *called = line.split()
            edges += [[f"{PACKAGE}.{caller}", f"{PACKAGE}.{callee}"] for callee in called]
        sections[name] = {"method": f"{PACKAGE}.Main.{name}", "depth": depth, "edges": edges}
    return sections


def main():
    """Writes the file."""
    if len(sys.argv) != 3:
        sys.exit("usage: describe.py SMALI-DIR TRUTH.json")
    workers = [
        {"thread": f"worker-{n}", "symbol": f"{PACKAGE}.Worker{n}.work", "self_share": n / sum(WORKERS)} for n in WORKERS
    ]
    truth = {
        "version": 1,
        "shares": shares(Path(sys.argv[1]) / PACKAGE.replace(".", "/")),
        "threads": {"method": f"{PACKAGE}.Main.threads", "workers": workers},
        "scenarios": scenarios(),
    }
    Path(sys.argv[2]).write_text(json.dumps(truth, indent=2) + "\n")


if __name__ == "__main__":
    main()
