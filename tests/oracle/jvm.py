#!/usr/bin/env python3
"""What does a JVM say about itself to the JDK's own tools, and to a reader of its tables that is not varid's?

usage: jvm.py PID [CODELETS] [--jhsdb]
CODELETS: what it has printed with -XX:+PrintInterpreter. --jhsdb: the tables are printed by the JDK's debugger, which is of the JVM's
version; else by vm/tests/fixtures/hotspot/tables.py. Needs Debian 12's JDK, and the right to attach to PID.
Prints JSON: release, flags (name to value), unloaded (classes), heaps ([first address, end of what is in use, end], sorted), numbers (offsets and
sizes by name as in HotSpot's sources), codelets ([first address, end, bytecode or null, description], in their order).
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Of Debian 12. Its jcmd attaches to later versions, too.
JDK = pathlib.Path("/usr/lib/jvm/java-17-openjdk-amd64/bin")
BOUNDS = re.compile(r"bounds \[0x([0-9a-f]+), 0x([0-9a-f]+), 0x([0-9a-f]+)\]")
FLAG = re.compile(r"\s*(\w+) (\w+)\s+(?:=|:=)\s+(\S*)\s+\{")
CODELET = re.compile(r"^(?:(\S+)  (\d+) \1|(.*?))  \[0x([0-9a-f]+), 0x([0-9a-f]+)\]  \d+ bytes$")


def printed(*command, given=""):
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout


def flags(pid):
    lines = map(FLAG.match, printed(JDK / "jcmd", pid, "VM.flags", "-all").splitlines())
    return {line[2]: line[3] for line in lines if line}


def heaps(pid):
    bounds = BOUNDS.findall(printed(JDK / "jcmd", pid, "Compiler.codecache"))
    return sorted([int(address, 16) for address in addresses] for addresses in bounds)


def release(pid):
    return re.search(r" version (\S+)$", printed(JDK / "jcmd", pid, "VM.version"), re.MULTILINE)[1]


def numbers_of_jhsdb(pid):
    found = {}
    for line in printed(JDK / "jhsdb", "clhsdb", "--pid", pid, given="vmstructsdump\nintConstant\nquit\n").splitlines():
        words = shlex.split(line.removeprefix("hsdb> "))
        if words[:1] == ["field"] and words[4] == "false":
            found[f"{words[1]}::{words[2]}"] = int(words[5])
        elif words[:1] == ["type"]:
            found[words[1]] = int(words[6])
        elif words[:1] == ["intConstant"] and len(words) == 3:
            found[words[1]] = int(words[2])
    return found


def numbers_of_tables(pid):
    found = {}
    for line in printed(HERE.parent.parent / "vm/tests/fixtures/hotspot/tables.py", pid).splitlines():
        match line.split("\t"):
            case "field", structure, field, _, offset:
                found[f"{structure}::{field}"] = int(offset)
            case ("type" | "constant"), name, number:
                found[name] = int(number)
    return found


def codelets(path):
    with open(path) as lines:
        found = filter(None, map(CODELET.match, map(str.rstrip, lines)))
        return [[int(part[4], 16), int(part[5], 16), part[2] and int(part[2]), part[1] or part[3]] for part in found]


def unloaded(pid):
    return int(re.search(r"^java\.cls\.unloadedClasses=(\d+)$", printed(JDK / "jcmd", pid, "PerfCounter.print"), re.MULTILINE)[1])


def main():
    pid, *rest = sys.argv[1:]
    files = [name for name in rest if name != "--jhsdb"]
    print(
        json.dumps(
            {
                "release": release(pid),
                "flags": flags(pid),
                "unloaded": unloaded(pid),
                "heaps": heaps(pid),
                "numbers": numbers_of_jhsdb(pid) if "--jhsdb" in rest else numbers_of_tables(pid),
                "codelets": codelets(files[0]) if files else [],
            }
        )
    )


main()
