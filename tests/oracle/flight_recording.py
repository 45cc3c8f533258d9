#!/usr/bin/env python3
"""Does an imported recording of Java Flight Recorder have what the JDK's own tool prints of it?

usage: flight_recording.py JFR FILE FOLDER START
JFR: the JDK's tool. FOLDER: for each event a file EVENT.jsonl, the samples of the session as `varid export -f jsonl` writes them, with
times since START.
Compared for each event: the number of samples, their times, and of each sample the thread, the weight, and all frames with their lines.

Prints the number of samples of each event as JSON; exit status 1 if there is a difference.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path

# What a sample of an event weighs: a field, a duration in ns, or 1.
WEIGHTS = {
    "jdk.ExecutionSample": None,
    "jdk.NativeMethodSample": None,
    "jdk.ObjectAllocationSample": "weight",
    "jdk.ObjectAllocationInNewTLAB": "tlabSize",
    "jdk.ObjectAllocationOutsideTLAB": "allocationSize",
    "jdk.JavaMonitorEnter": "duration",
    "jdk.JavaMonitorWait": "duration",
    "jdk.ThreadPark": "duration",
    "jdk.ThreadSleep": "duration",
}
# ns: a time and a duration are rounded each.
TOLERANCE = 10
SHOWN = 5
# The name and the id that a session gives to samples without a thread: Linux has no such id.
NO_THREAD = ("[unknown]", (1 << 22) + 1)


def time_ns(text):
    """Nanoseconds since 1970 of `2026-11-27T11:26:18.916399344Z`."""
    seconds, fraction, zone = re.fullmatch(r"([\dT:-]+)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", text).groups()
    whole = datetime.fromisoformat(seconds + zone.replace("Z", "+00:00")).timestamp()
    return int(whole) * 10**9 + int((fraction or "").ljust(9, "0"))


def duration_ns(text):
    """Nanoseconds of `PT1M2.5S`."""
    minutes, seconds, fraction = re.fullmatch(r"PT(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?", text).groups()
    return (int(minutes or 0) * 60 + int(seconds or 0)) * 10**9 + int((fraction or "").ljust(9, "0"))


def method(frame):
    """The class and the method, as a profile shows them: hidden classes have the name of their origin."""
    name = frame["method"]["type"]["name"].replace("/", ".").split("+0x")[0].split(".0x")[0]
    name = re.sub(r"\$\$Lambda\$\d+$", "$$Lambda", name)
    return f"{name}.{frame['method']['name']}"


def run(*arguments):
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def printed(jfr, file, folder):
    """The samples of all events that the tool prints: the event, the time, and what else is compared.

    Each chunk is printed by itself: of a whole file the tool converts all times by the clock of the first chunk, and between two chunks the
    system's clock may be set.
    """
    run(jfr, "disassemble", "--max-chunks", "1", "--output", folder, file)
    for chunk in Path(folder).glob("*.jfr"):
        text = run(jfr, "print", "--json", "--stack-depth", "100", "--events", ",".join(WEIGHTS), chunk)
        yield from map(sample, json.loads(text)["recording"]["events"])


def sample(printed):
    """The event of a sample, its time, and what else is compared."""
    event, values = printed["type"], printed["values"]
    thread = values["sampledThread"] if "sampledThread" in values else values["eventThread"]
    name, tid = (thread["javaName"] or thread["osName"], thread["osThreadId"]) if thread else NO_THREAD
    duration = duration_ns(values["duration"]) if "duration" in values else 0
    field = WEIGHTS[event]
    weight = 1 if field is None else duration if field == "duration" else values[field]
    frames = (values["stackTrace"] or {"frames": []})["frames"]
    stack = tuple((method(frame), max(frame["lineNumber"], 0)) for frame in frames)
    return event, (time_ns(values["startTime"]) + duration, (name, tid, weight, stack))


def imported(file, start):
    """The same of a session."""
    lines = file.read_text().splitlines()
    for line in map(json.loads, lines[1:]):
        stack = tuple((frame["symbol"], frame.get("line", 0)) for frame in line["frames"])
        # Stands for a stack that was not recorded.
        stack = () if stack == (("[unknown]", 0),) else stack
        yield start + line["time_ns"], (line["thread"], line["tid"], line["period"], stack)


def main():
    jfr, file, folder, start = sys.argv[1:]
    counts, differences = {}, []
    samples = defaultdict(list)
    with tempfile.TemporaryDirectory() as chunks:
        for event, found in printed(jfr, file, chunks):
            samples[event].append(found)
    for event in WEIGHTS:
        expected = sorted(samples[event])
        path = Path(folder) / f"{event}.jsonl"
        found = sorted(imported(path, int(start))) if path.exists() else []
        counts[event] = len(found)
        if len(found) != len(expected):
            differences.append(f"{event}: {len(found)} samples, {len(expected)} are printed")
            continue
        late = [one - other for (one, _), (other, _) in zip(found, expected) if abs(one - other) > TOLERANCE]
        if late:
            differences.append(f"{event}: {len(late)} times differ, such as by {late[:SHOWN]} ns")
        # Times that differ may be in another order.
        surplus = Counter(sample for _, sample in found)
        surplus.subtract(Counter(sample for _, sample in expected))
        for sample, count in list((+surplus).items())[:SHOWN]:
            differences.append(f"{event}: {count} too many of {sample}")
        for sample, count in list((-surplus).items())[:SHOWN]:
            differences.append(f"{event}: {count} missing of {sample}")
    print(json.dumps(counts))
    print("\n".join(differences), file=sys.stderr)
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
