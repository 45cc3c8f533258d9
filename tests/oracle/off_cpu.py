#!/usr/bin/env python3
"""Do the samples of off-cpu and runnable have the times that the scheduler says, in the function that waits?

usage: off_cpu.py SESSION PRINTED [--wall]

PRINTED is what tests/system/host/waits.c has printed: of each thread the time from its creation, and what schedstat says of the time that
it ran and the time that it was delayed. What is left is the time that it was blocked. --wall: the session has one event of all that.
Prints the largest errors as JSON; exit status 1 if a sum is off by more than a hundredth of the
thread's time off the CPU, or a wait is somewhere else.
"""

import collections
import json
import re
import sys
from pathlib import Path

import perf_script

HEAD = re.compile(r"^ *(\d+) +(\d+)\.(\d+): +(\d+) +(\S+?): ")
FRAME = re.compile(r"^\s+[0-9a-f]+ (\S+)")
ALLOWED = 0.01
# What a thread does before its first and behind its last line, and a sample's period of a timer.
SLACK = 3_000_000
# The scheduler's clock of a thread stops before the switch that is traced. So much is a switch on a machine that is busy with others.
SWITCH = 10_000


def samples(path):
    """Thread, time, event, period and the symbols of each sample."""
    found = None
    for line in perf_script.lines(path, "tid,time,period,event,ip,sym"):
        if head := HEAD.match(line):
            if found:
                yield found
            found = (int(head[1]), int(head[2]) * 10**9 + int(head[3]), head[5], int(head[4]), [])
        elif found and (frame := FRAME.match(line)):
            found[4].append(frame[1])
    if found:
        yield found


def main():
    """Compares, prints."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    wall = "--wall" in sys.argv
    sums, elsewhere = collections.Counter(), collections.Counter()
    threads = {}
    for line in Path(sys.argv[2]).read_text().splitlines():
        if line.startswith("THREAD "):
            _, tid, function, *times = line.split()
            threads[int(tid)] = (function, *map(int, times))
    for tid, time, event, period, symbols in samples(f"{sys.argv[1]}/perf.data"):
        if tid not in threads:
            continue
        # A sample is at the end of its wait, which may have begun before the thread was measured.
        after = max(time - threads[tid][1], 0) if event != "cpu-clock" else 0
        period = max(period - after, 0)
        sums[tid, event] += period
        if event == "off-cpu" and threads[tid][0] not in symbols:
            elsewhere[tid] += period
    complaints, errors = [], collections.defaultdict(float)

    def compare(tid, event, wanted):
        function, _, elapsed, ran, _, turns = threads[tid]
        error = abs(sums[tid, event] - wanted)
        # Of the time that a thread runs a timer's samples are an estimate.
        allowed = max(ALLOWED * (elapsed - ran), SLACK) + SWITCH * turns if event != "wall" else 0.05 * elapsed + SLACK
        errors[event] = max(errors[event], error / elapsed)
        if error > allowed:
            complaints.append(f"{function} ({tid}): {event} has {sums[tid, event]} ns, of {wanted}; it lived {elapsed}")

    for tid, (function, _, elapsed, ran, delayed, _) in threads.items():
        if wall:
            compare(tid, "wall", elapsed)
            continue
        compare(tid, "off-cpu", elapsed - ran - delayed)
        compare(tid, "runnable", delayed)
        if elsewhere[tid] > max(ALLOWED * sums[tid, "off-cpu"], SLACK):
            complaints.append(f"{function} ({tid}): {elsewhere[tid]} of {sums[tid, 'off-cpu']} ns off-cpu are elsewhere")
    if not threads:
        complaints.append("no threads")
    print(json.dumps({"threads": len(threads), **{event: round(error, 5) for event, error in errors.items()}}))
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
