#!/usr/bin/env python3
"""Runs programs on simulated processors and writes what they took: OUTDIR/NAME.json for each processor.

usage: truth.py SIMULATORS PLUGIN OUTDIR NAME... -- PROGRAM.elf...

SIMULATORS is the folder that build.sh fills, NAME a line of configurations.tsv, PLUGIN the built executions.c. The
executions of each instruction must be those that qemu-riscv32 counts; exit status 1 if they differ.

A file has one line for each program: its SHA-256, its exit status, cycles from the entry's instruction to the exit's
ecall, executed instructions (the ecall is one of them), loads, stores, those of them through the stack pointer,
conditional branches, those taken, cache misses (null without a cache), and the cycles of each function, where it shares
no code with another. A cycle belongs to the instruction that is in the processor's deciding stage (driver/profile.h).
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import riscv

CONFIGURATIONS = Path(__file__).with_name("configurations.tsv")


def configurations():
    """Core and options of varid by the processor's name."""
    lines = CONFIGURATIONS.read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return {name: (core, options.split()) for name, core, _, options in rows}


def executes(core, program):
    """Whether a core executes a program, by its name: VexRiscv's configuration has no compressed instructions."""
    return core != "vexriscv" or not program.endswith("c")


def read_profile(path):
    """The totals of a profile, and (executions, cycles, taken) by address."""
    totals, rows = {}, {}
    for line in path.read_text().splitlines():
        if line.startswith("# "):
            _, name, value = line.split()
            totals[name] = int(value)
        else:
            address, *counts = line.split("\t")
            rows[int(address, 16)] = tuple(map(int, counts))
    return totals, rows


def executions(program, plugin, folder):
    """QEMU's executions by address, and the program's exit status."""
    output = folder / "executions"
    command = ["qemu-riscv32", "-plugin", f"{plugin},output={output}", program]
    status = subprocess.run(command, check=False).returncode
    lines = [line.split() for line in output.read_text().splitlines()]
    return {int(address, 16): int(count) for address, count in lines}, status


def differences(name, simulated, emulated):
    """Prints where two counts of executions differ; returns how many do."""
    wrong = [
        address
        for address in sorted(simulated.keys() | emulated.keys())
        if simulated.get(address, (0,))[0] != emulated.get(address, 0)
    ]
    for address in wrong[:5]:
        counts = simulated.get(address, (0,))[0], emulated.get(address, 0)
        print(f"{name}: {address:#x}: {counts[0]} executions in RTL, {counts[1]} in QEMU", file=sys.stderr)
    return len(wrong)


def summarize(program, totals, rows, status):
    """A program's line."""
    sums = {riscv.LOAD: 0, riscv.STORE: 0, riscv.BRANCH: 0, riscv.OTHER: 0}
    taken = stack_accesses = 0
    functions = {}
    for address, (count, cycles, transfers) in rows.items():
        kind = program.kind(address)
        sums[kind] += count
        taken += transfers if kind == riscv.BRANCH else 0
        if kind in (riscv.LOAD, riscv.STORE) and program.uses_stack(address):
            stack_accesses += count
        if function := program.function(address):
            functions[function] = functions.get(function, 0) + cycles
    return {
        "sha256": hashlib.sha256(program.bytes).hexdigest(),
        "status": status,
        "cycles": totals["cycles"],
        "instructions": sum(sums.values()),
        "loads": sums[riscv.LOAD],
        "stores": sums[riscv.STORE],
        "stack_accesses": stack_accesses,
        "branches": sums[riscv.BRANCH],
        "taken": taken,
        "icache_misses": totals.get("icache_misses"),
        "dcache_misses": totals.get("dcache_misses"),
        "functions": dict(sorted(functions.items())),
    }


def write(path, core, options, lines):
    """Writes a processor's file, a program a line."""
    head = f'"core": {json.dumps(core)},\n"options": {json.dumps(options)},\n'
    body = ",\n".join(f"{json.dumps(name)}: {json.dumps(line)}" for name, line in sorted(lines.items()))
    path.write_text(f'{{\n{head}"programs": {{\n{body}\n}}\n}}\n')


def main():
    simulators, plugin, out = map(Path, sys.argv[1:4])
    separator = sys.argv.index("--")
    names, paths = sys.argv[4:separator], [Path(argument) for argument in sys.argv[separator + 1 :]]
    known = configurations()
    wrong = 0
    lines = {name: {} for name in names}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for path in paths:
            program = riscv.Program(path)
            emulated, status = executions(path, plugin.resolve(), folder)
            for name in names:
                if not executes(known[name][0], path.stem):
                    continue
                # What a core prints of the trap at the end is no error.
                profile = folder / "profile"
                subprocess.run([simulators / name, path, profile], stdout=subprocess.DEVNULL, check=True)
                totals, rows = read_profile(profile)
                wrong += differences(f"{name} {path.stem}", rows, emulated)
                lines[name][path.stem] = summarize(program, totals, rows, status)
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        write(out / f"{name}.json", *known[name], lines[name])
    print(json.dumps({"programs": len(paths), "processors": len(names), "differences": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
