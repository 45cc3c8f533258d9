#!/usr/bin/env python3
"""Does each sample follow the configuration of its time?

usage: phases.py SESSION PHASE...      PHASE: PID:TEXT or PID~TEXT

Phase by phase, each from a change in session.json to the next: samples are of the process PID and have TEXT in a symbol of their stack; with ~ all
but one in 20: where no methods are asked for, a thread is in none of its own between two rounds of work. Prints how many each phase has as JSON, and
what is wrong on standard error; exit status 1 if anything is.
"""

import json
import re
import subprocess
import sys

MANY = 20
RARE = 20  # one in so many


def samples(path):
    """Process, time in ns and symbols of each sample, as an unmodified perf has them."""
    command = ["perf", "script", "-i", path, "--ns", "-F", "pid,time,ip,sym"]
    script = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
    for block in script.split("\n\n"):
        head, *stack = block.strip("\n").split("\n")
        if not head.strip():
            continue
        pid, time = head.split()[:2]
        seconds, part = time.rstrip(":").split(".")
        yield int(pid), int(seconds) * 10**9 + int(part), "\n".join(stack)


def main():
    """Compares, prints."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    phases = [re.fullmatch("([0-9]+)([:~])(.*)", phase).groups() for phase in sys.argv[2:]]
    with open(f"{sys.argv[1]}/session.json") as file:
        changes = json.load(file).get("changes", [])
    starts = [0] + [change["time_ns"] for change in changes if change.get("changed")]
    wrong = 0
    if len(starts) != len(phases):
        sys.exit(f"{len(starts)} phases, not {len(phases)}: {changes}")
    counts, without = [0] * len(phases), [0] * len(phases)
    for pid, time, stack in samples(f"{sys.argv[1]}/perf.data"):
        phase = max(at for at, start in enumerate(starts) if start <= time)
        counts[phase] += 1
        wanted, _, text = phases[phase]
        without[phase] += text not in stack
        wrong += pid != int(wanted)
        if (pid != int(wanted) or text not in stack) and wrong + sum(without) <= MANY:
            print(f"{pid} {time}, in phase {phase} of {starts}: {stack[:400]}", file=sys.stderr)
    print(json.dumps({"samples": counts, "wrong": wrong, "without": without}))
    allowed = [every // RARE if how == "~" else 0 for (_, how, _), every in zip(phases, counts)]
    sys.exit(wrong > 0 or 0 in counts or any(none > most for none, most in zip(without, allowed)))


if __name__ == "__main__":
    main()
