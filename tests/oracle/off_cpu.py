#!/usr/bin/env python3
"""Do the samples of off-cpu and runnable have the times that the scheduler says, in the function that waits?

usage: off_cpu.py SESSION PRINTED [--wall]

PRINTED is what tests/system/host/waits.c has printed: of each thread the time from its creation, and what schedstat says of the time that
it ran and the time that it was delayed. What is left is the time that it was blocked. --wall: the session has one event of all that.
Prints the largest errors as JSON; exit status 1 if a sum is off by more than a hundredth, or a wait is somewhere else.
"""

import collections
import json
import re
import sys
from pathlib import Path

import perf_script

HEAD = re.compile(r"^ *(\d+) +(\d+\.\d+): +(\d+) +(\S+?): ")
FRAME = re.compile(r"^\s+[0-9a-f]+ (\S+)")
ALLOWED = 0.01
# What a thread does before its first and behind its last line, and a sample's period of a timer.
SLACK = 3_000_000


def samples(path):
    """Thread, event, period and the symbols of each sample."""
    found = None
    for line in perf_script.lines(path, "tid,time,period,event,ip,sym"):
        if head := HEAD.match(line):
            if found:
                yield found
            found = (int(head[1]), head[4], int(head[3]), [])
        elif found and (frame := FRAME.match(line)):
            found[3].append(frame[1])
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
    for tid, event, period, symbols in samples(f"{sys.argv[1]}/perf.data"):
        sums[tid, event] += period
        if tid in threads and event == "off-cpu" and threads[tid][0] not in symbols:
            elsewhere[tid] += period
    complaints, errors = [], collections.defaultdict(float)

    def compare(tid, event, wanted):
        function, elapsed, *_ = threads[tid]
        error = abs(sums[tid, event] - wanted)
        # A part of a thread's time is not known better than the whole.
        allowed = max(ALLOWED * wanted, SLACK) if event != "wall" else 0.05 * elapsed + SLACK
        errors[event] = max(errors[event], error / elapsed)
        if error > allowed:
            complaints.append(f"{function} ({tid}): {event} has {sums[tid, event]} ns, of {wanted}; it lived {elapsed}")

    for tid, (function, elapsed, ran, delayed) in threads.items():
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
