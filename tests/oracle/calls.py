"""Did varid count calls as the VM itself did? python3 tests/oracle/calls.py CALLS.csv TRUTH [PREFIX [only]]

CALLS.csv: varid report --measure calls,returns,unwinds --by symbol --format csv. TRUTH: ART's method trace, or what shadowvm --counts printed. Methods
whose name starts with PREFIX must agree call for call, return for return, unwind for unwind, and none may be missing on
either side. Other methods of a trace may have been called before it began: varid has them at least as often; with
`only` it must not have them at all.
"""

import csv
import json
import re
import sys
from collections import Counter
from pathlib import Path

from method_trace import records

EVENTS = ("calls", "returns", "unwinds")


def counted(path):
    """(method, event): how often, by varid; overloads are one, as in ART's trace."""
    found = Counter()
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name = re.sub(r"\(.*", "", row["symbol"])
            for event in EVENTS:
                found[name, event] += int(row[f"{event} self"])
    return found


def truth(path):
    """The same by the VM."""
    found = Counter()
    data = Path(path).read_bytes()
    if data.startswith(b"*version"):
        for _, method, action, _ in records(path):
            found[method.replace("/", "."), EVENTS[action]] += 1
        return found
    for line in data.decode().splitlines():
        match = re.fullmatch(r"\w+ counts (\w+) (\d+) (\d+) (\d+)", line)
        if match:
            for event, number in zip(EVENTS, match.groups()[1:]):
                found[f"org.example.shadow.Methods.{match[1]}", event] += int(number)
    return found


def main():
    ours, theirs = counted(sys.argv[1]), truth(sys.argv[2])
    prefix = sys.argv[3] if len(sys.argv) > 3 else ""
    only = sys.argv[4:] == ["only"]
    wrong = []
    for key in sorted(set(ours) | set(theirs)):
        exact = key[0].startswith(prefix)
        right = ours[key] == theirs[key] if exact else not ours[key] if only else ours[key] >= theirs[key]
        if not right:
            wrong.append(f"{key[0]}: {ours[key]} {key[1]}, the VM says {theirs[key]}")
    exact = {key: number for key, number in theirs.items() if key[0].startswith(prefix)}
    result = {event: sum(number for key, number in exact.items() if key[1] == event) for event in EVENTS}
    result["methods"] = len({name for name, _ in exact})
    result["wrong"] = len(wrong)
    print(json.dumps(result))
    if wrong or not exact:
        raise SystemExit("\n".join(wrong) or "nothing to compare")


if __name__ == "__main__":
    main()
