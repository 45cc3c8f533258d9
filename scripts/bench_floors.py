#!/usr/bin/env python3
"""What can a sample, a report or a recording not cost less than? An interrupt of a sampling event that nobody reads, a BPF program that only
returns, and a copy of the bytes.

usage: bench_floors.py OUTPUT-FOLDER [quick]

interrupt: a program's fixed work takes longer with the event than without, by so much an interrupt. The fastest of ROUNDS runs of either
kind is compared, in turns. BPF program: its run time, as the kernel counts it (root only). copy: of 256 MB in memory.
"""

import ctypes
import fcntl
import os
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import time

import bench_measure

QUICK = sys.argv[2:] == ["quick"]
RATE = 10_000
ROUNDS = 2 if QUICK else 40
# Of the program's work: a quarter of a second or less. A longer one is interrupted by others more often.
WORK = 50_000_000 if QUICK else 200_000_000
COPIED = (32 if QUICK else 256) << 20
STATISTICS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
HERE = pathlib.Path(__file__).resolve().parent
# From linux/perf_event.h and linux/bpf.h.
SYSCALLS = {"x86_64": (298, 321), "aarch64": (241, 280)}
PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, PERF_SAMPLE_IP, ATTR_FREQ, ATTR_DISABLED = 1, 0, 1, 1 << 10, 1
PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_SET_BPF = 0x2400, 0x40042408
BPF_PROG_LOAD, BPF_PROG_TYPE_PERF_EVENT = 5, 7
libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    """A system call that returns a descriptor, or None."""
    found = libc.syscall(ctypes.c_long(number), *arguments)
    return None if found < 0 else found


def sampling_event(pid):
    """A disabled sampling event of a process whose samples have nowhere to go; None: that is not allowed."""
    attribute = bytearray(128)
    struct.pack_into("<IIQQQQQ", attribute, 0, PERF_TYPE_SOFTWARE, len(attribute), PERF_COUNT_SW_CPU_CLOCK, RATE, PERF_SAMPLE_IP, 0,
                     ATTR_DISABLED | ATTR_FREQ)
    buffer = (ctypes.c_char * len(attribute)).from_buffer(attribute)
    number, _ = SYSCALLS[os.uname().machine]
    return syscall(number, ctypes.byref(buffer), ctypes.c_int(pid), ctypes.c_int(-1), ctypes.c_int(-1), ctypes.c_ulong(0))


def bare_program():
    """A BPF program `return 0` for sampling events; None: that is not allowed."""
    instructions = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0))
    licence = ctypes.create_string_buffer(b"GPL")
    attribute = bytearray(128)
    struct.pack_into("<IIQQ", attribute, 0, BPF_PROG_TYPE_PERF_EVENT, 2, ctypes.addressof(instructions), ctypes.addressof(licence))
    buffer = (ctypes.c_char * len(attribute)).from_buffer(attribute)
    _, number = SYSCALLS[os.uname().machine]
    return syscall(number, ctypes.c_int(BPF_PROG_LOAD), ctypes.byref(buffer), ctypes.c_uint(len(attribute)))


def worked(out, event, program=None):
    """Nanoseconds that the fixed work takes, and its interrupts, with an event or without."""
    worker = subprocess.Popen([out / "spin", "work", str(WORK)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    descriptor = None
    if event:
        descriptor = sampling_event(worker.pid)
        if descriptor is None:
            worker.kill()
            worker.communicate()
            return None
        if program is not None:
            fcntl.ioctl(descriptor, PERF_EVENT_IOC_SET_BPF, program)
        fcntl.ioctl(descriptor, PERF_EVENT_IOC_ENABLE, 0)
    said, _ = worker.communicate(b"\n")
    if descriptor is not None:
        os.close(descriptor)
    nanoseconds = int(said)
    return nanoseconds, nanoseconds / 1e9 * RATE


def interrupt(out):
    """Nanoseconds of an interrupt that nobody reads; None: such an event is not allowed."""
    runs = bench_measure.in_turns(ROUNDS, {"alone": lambda: worked(out, False), "event": lambda: worked(out, True)})
    if None in runs["event"]:
        return None
    alone = min(nanoseconds for nanoseconds, _ in runs["alone"])
    with_event, interrupts = min(runs["event"])
    return max(0, with_event - alone) / interrupts


def program_time(out):
    """Nanoseconds of a run of the bare program; None: it is not allowed, or not counted."""
    if not os.access(STATISTICS, os.W_OK):
        return None
    program = bare_program()
    if program is None:
        return None
    before = STATISTICS.read_text()
    try:
        STATISTICS.write_text("1")
        for _ in range(1 if QUICK else 3):
            if worked(out, True, program) is None:
                return None
        counted = dict(re.findall(r"^(run_time_ns|run_cnt):\s+(\d+)", pathlib.Path(f"/proc/self/fdinfo/{program}").read_text(), re.MULTILINE))
    finally:
        STATISTICS.write_text(before)
        os.close(program)
    runs = int(counted.get("run_cnt", 0))
    return int(counted["run_time_ns"]) / runs if runs else None


def copy():
    """Nanoseconds to copy a megabyte: the median."""
    bytes_ = bytearray(os.urandom(1 << 20) * (COPIED >> 20))
    times = []
    for _ in range(3 if QUICK else 9):
        start = time.perf_counter()
        copied = bytes(bytes_)
        times.append(time.perf_counter() - start)
        del copied
    return statistics.median(times) * 1e9 / (COPIED >> 20)


def main():
    if len(sys.argv) != 2 and not QUICK:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    subprocess.run(["gcc", "-O2", "-pthread", "-o", out / "spin", HERE / "bench" / "spin.c"], check=True)
    floors = {
        "floor interrupt ns": (f"an interrupt that nobody reads, {RATE} Hz of cpu-clock", interrupt(out), "ns"),
        "floor bpf ns": ("a BPF program that only returns, a run", program_time(out), "ns"),
        "floor copy ns a MB": ("a copy in memory, a MB", copy(), "ns"),
    }
    for name, (title, value, unit) in floors.items():
        print(f"{title:60}" + ("  not to be had here" if value is None else f"{value:12,.0f} {unit}"), flush=True)
        if value is not None:
            bench_measure.note(name, value)


main()
