"""What is in a recording? As an unmodified perf reads it, of the machine that it was made on."""

import re
import subprocess
from dataclasses import dataclass, field
from functools import cache

import board

HEAD = re.compile(r"^ *(?:(?P<process>-?\d+)/ *)?(?P<thread>-?\d+) +(?P<time>\d+\.\d+): +(?P<rest>\S.*)?$")
FRAME = re.compile(r"^\s+([0-9a-f]+) (.*) \((\S*)\)$")
# What a session keeps of the vdso, which the process has mapped under its own name.
VDSO = re.compile(r"^.*/symbols/vdso-[^/]*\.so$")
TASK_EVENT = re.compile(r"^ *(?:\d+/ *)?\d+ +\d+\.\d+: PERF_RECORD_")
EXEC = re.compile(r" (\d+\.\d+): PERF_RECORD_COMM exec: ")
REGISTER = re.compile(r"(\w+):0x([0-9a-f]+)")
WHOLE = "8192"  # frames: perf shows 127 unless told, and what a recording says is missing comes last


@dataclass(frozen=True)
class Frame:
    """One entry of a callchain. `offset` is in the file, except in the kernel."""

    offset: int
    symbol: str
    file: str


@dataclass
class Attributed:
    """A sample of perf.data; `ip` is the interrupted instruction's, chain[0] the leaf."""

    ip: int
    process: int
    chain: list = field(default_factory=list)


@dataclass
class Raw:
    """The kernel's own record of a sample."""

    ip: int
    chain: list = field(default_factory=list)  # addresses, kernel first
    registers: dict = field(default_factory=dict)


def lines(path, fields, *options):
    """perf script's output, line by line."""
    command = board.command("perf", "script", "-i", path, "--ns", "--no-inline", "--max-stack", WHOLE, "-F", fields, *options)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as perf:
        yield from perf.stdout
        errors = perf.stderr.read()
        if perf.wait():
            raise SystemExit(f"{' '.join(command)}: {errors}")


# Recordings are a few lines again and again: each of them is understood once.


@cache
def frame(line):
    """What a line of a callchain says, or None: it is none."""
    found = FRAME.match(line)
    return found and Frame(int(found[1], 16), found[2], VDSO.sub("[vdso]", found[3]))


@cache
def address(line):
    """The address that a line of a callchain without symbols says, or None: it is none."""
    is_none = HEAD.match(line) or line.lstrip().startswith("ABI:") or not line.strip()
    return None if is_none else int(line.split()[0], 16)


def attributed(path, execs=None):
    """Samples of perf.data as (thread, time), sample; in the file's order. `execs`: a list that gets the times at which programs were executed."""
    key = sample = None
    options = [] if execs is None else ["--show-task-events"]
    for line in lines(path, "pid,tid,time,addr,ip,sym,dso", *options):
        if TASK_EVENT.search(line):
            execs.extend(float(found[1]) for found in EXEC.finditer(line))
        elif found := frame(line):
            sample.chain.append(found)
        elif head := HEAD.match(line):
            if sample:
                yield key, sample
            key = int(head["thread"]), head["time"]
            # Some events have a symbol of the address.
            sample = Attributed(int(head["rest"].split()[0], 16), int(head["process"]))
        elif line.strip():
            raise SystemExit(f"{path}: perf script printed {line!r}")
    if sample:
        yield key, sample


def outside_session(raw, time, start, kernel):
    """Why no session has a sample that the kernel took at a time, or None: it should be there."""
    if raw.ip >= kernel and not raw.registers:
        # The process's last work, after its memory is gone and the kernel has said that it ended.
        return "after the end"
    # Of the process that was to become the app, whose program was another one up to the end of its exec.
    return "before the start" if float(time) < start else None


def raw(path, recorded=()):
    """Samples of raw.data as (thread, time), sample. A thread that the kernel has forgotten already has the number that `recorded` has at its time."""
    threads = {time: thread for thread, time in recorded}
    key = sample = None
    # Asked for alone: now and then the kernel has no room for a callchain, and perf prints no address with the rest.
    ips = lines(path, "ip", "-G")
    for line in lines(path, "tid,time,ip,uregs"):
        if (found := address(line)) is not None:
            sample.chain.append(found)
        elif head := HEAD.match(line):
            if sample:
                yield key, sample
            thread, time = int(head["thread"]), head["time"]
            key = (thread if thread >= 0 else threads.get(time, thread), time)
            sample = Raw(int(next(ips), 16))
        elif line.lstrip().startswith("ABI:"):
            sample.registers = {name: int(value, 16) for name, value in REGISTER.findall(line)}
    if sample:
        yield key, sample
