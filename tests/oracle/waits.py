#!/usr/bin/env python3
"""Do the methods of org.example.waits wait as long as they must?

usage: waits.py SESSION ROUNDS

In each round main sleeps 20 ms in Naps.nap20 and 60 ms in Door.nap60, with the monitor that the rival enters in Door.pass; then the
reader gets a byte in Reader.fetch. Prints the milliseconds as JSON; exit status 1 if a method waits otherwise, or a frame's caller is
not the one that the source has.
"""

import collections
import json
import re
import sys

import perf_script

HEAD = re.compile(r"^ *(\d+) +(\d+) +(\S+?): ")
FRAME = re.compile(r"^\s+[0-9a-f]+ (\S+)")
PACKAGE = "org.example.waits."
MAIN = "Main.waits"
# Who may wait, leaf first, by what is innermost but for the native method.
STACKS = {
    "Naps.nap20": ("Native.sleep", "Naps.nap20", MAIN),
    "Door.nap60": ("Native.sleep", "Door.nap60", MAIN),
    "Reader.fetch": ("Native.take", "Reader.fetch", "Reader.run"),
    "Rival.run": ("Native.sleep", "Rival.run"),
    "Door.pass": ("Door.pass", "Rival.run"),
}


def stacks(path):
    """Event, period and managed frames of each sample that has some."""
    event, period, frames = None, 0, []
    for line in (*perf_script.lines(path, "tid,period,event,ip,sym"), "0 0 end: "):
        if head := HEAD.match(line):
            if frames:
                yield event, period, tuple(frames)
            event, period, frames = head[3], int(head[2]), []
        elif (frame := FRAME.match(line)) and frame[1].startswith(PACKAGE):
            frames.append(frame[1].removeprefix(PACKAGE))


def main():
    """Compares, prints."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    rounds = int(sys.argv[2])
    sums, wrong, early = collections.Counter(), collections.Counter(), set()
    for event, period, frames in stacks(f"{sys.argv[1]}/perf.data"):
        method = frames[0] if not frames[0].startswith("Native.") else frames[1]
        if event == "off-cpu":
            sums[method] += period / 1e6
            expected = STACKS.get(method, ())
            # A wait that began before varid had found the VM has no native method.
            if frames == expected[1:] and method not in early:
                early.add(method)
            elif frames != expected:
                wrong[" < ".join(frames)] += period / 1e6
        elif method == "Door.pass":
            # Before it sleeps for the monitor the VM yields its CPU a few times.
            sums["Door.pass, runnable"] += period / 1e6
    complaints = [f"{ms:.1f} ms in {stack}" for stack, ms in wrong.items() if ms > 0.01 * sum(sums.values())]
    for method, wanted in (("Naps.nap20", 20 * rounds), ("Door.nap60", 60 * rounds)):
        # A timer is never early; a period may be left over, and each sleep ends some time late.
        if not wanted - 1.1 <= sums[method] <= wanted * 1.02:
            complaints.append(f"{sums[method]:.1f} ms in {method}, not {wanted}")
    if sums["Reader.fetch"] < 0.9 * 80 * rounds:
        complaints.append(f"{sums['Reader.fetch']:.1f} ms in Reader.fetch")
    if sums["Door.pass"] + sums["Door.pass, runnable"] < 1:
        complaints.append("nobody waits for the monitor")
    print(json.dumps({method: round(ms, 1) for method, ms in sums.items()}))
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
