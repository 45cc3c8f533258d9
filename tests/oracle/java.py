#!/usr/bin/env python3
"""Is every sample of a Java workload attributed to methods that have called each other?

usage: java.py SESSION CLASSES PACKAGE [COPY]
CLASSES: the folder of the workload's class files, of which PACKAGE is the package. COPY: the session's folder here, if it is one of a board.
The class files' own instructions, as javap prints them, say which method each caller calls at its instruction. Judges each sample:

* Each method of the workload exists, and each instruction is one of it. A caller is recorded a byte behind its invoke instruction.
* Each caller's instruction calls the method inside it. Virtual calls are resolved by the workload's classes, those of the JDK by name.
* The JDK calls of the workload only what a type of the JDK declares, lambdas, and initializers of classes.
* The outermost method is one in which a thread of its kind begins, or a marker says why callers are missing.
* Where the VM has called Java code there is a method inside.
* With the kernel's own records beside it (--keep-raw) and the program in the interpreter: the leaf's instruction is the one that the register
  with it has, r13 or x22.

Prints counts as JSON, and the first wrong samples; exit status 1 if there are any.
"""

import json
import re
import struct
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import board
import perf_script
from beginnings import is_beginning
from javap import ABSTRACT, Calls
from sample_marks import approximate

SHOWN = 10
KERNEL = 1 << 63
START = 0x30  # bytes of a program's first function at most
CALL_STUB = "StubRoutines (1)"  # the VM's name of the code that the stub is in
SLOT = 16  # bytes that a method takes at least
REMAP = re.compile(r"/remap(?:-framework)?\.elf$")
LAMBDA = "$$Lambda"
# Classes that the JDK makes while it runs, and that no file has.
MADE = re.compile(
    r"^java\.lang\.invoke\.(LambdaForm|BoundMethodHandle\$Species_|(Invokers|DirectMethodHandle|DelegatingMethodHandle)\$Holder)"
    r"|\$\$Lambda|Generated(Method|Constructor)Accessor"
)
# What the VM itself calls, whatever a method executes: it loads classes, links call sites, makes exceptions.
OF_VM = re.compile(
    r"^java\.lang\.(ClassLoader\.(loadClass|checkPackageAccess)|invoke\.MethodHandleNatives\.\w+|[\w.]*(Exception|Error)\.<init>"
    r"|Thread\.(exit|dispatchUncaughtException)|ref\.Finalizer\.register|Class\.getClassLoader|ClassLoader\.getSystemClassLoader)$"
    r"|^jdk\.internal\.loader\.ClassLoaders\$\w+\.loadClass$|\.<clinit>$"
)
INITIALIZES = ("getstatic", "putstatic", "new", "invokestatic", "invokespecial", "invokeinterface")
# Where threads of Java begin beside the workload's.
BEGINS = re.compile(
    r"^java\.lang\.(Thread\.(run|exit)|ThreadGroup\.\w+|System\.initPhase[123]|Shutdown\.shutdown|ClassLoader\.\w+|Module\.\w+)$"
    r"|^java\.lang\.ref\.(Reference\$ReferenceHandler|Finalizer\$FinalizerThread)\.run$|^java\.lang\.invoke\.MethodHandleNatives\.\w+$"
    r"|^jdk\.internal\.misc\.(InnocuousThread\.run|Signal\.dispatch)$|^jdk\.internal\.(loader|module|misc)\."
    r"|^sun\.launcher\.LauncherHelper\.\w+$|^(java|jdk|sun)\.\S+\.<(cl)?init>$"
)


class Symbols:
    """Where the methods of a file without code of its own are."""

    def __init__(self, path):
        self.at = {}
        self.ranges = []
        for line in subprocess.run(["nm", "-S", path], capture_output=True, text=True, check=True).stdout.splitlines():
            fields = line.split(" ", 3)
            if len(fields) == 4 and re.fullmatch("[0-9a-f]{16}", fields[1]):
                start, size = int(fields[0], 16), int(fields[1], 16)
            else:
                start, size = int(fields[0], 16), 0
            self.ranges.append((start, size))
        self.ranges.sort()

    @cache
    def place(self, address):
        """(start, size) of the method at an address."""
        last = None
        for start, size in self.ranges:
            if start > address:
                break
            last = start, size
        return last


class Oracle:
    """The rules, and what is counted."""

    def __init__(self, copy, classes, package):
        self.package = package + "."
        names = sorted(str(path.relative_to(classes).with_suffix("")).replace("/", ".") for path in Path(classes).rglob("*.class"))
        self.calls = Calls(classes, names)
        self.classes = self.calls.classes
        self.symbols = {path.name: Symbols(path) for path in (Path(copy) / "symbols").glob("remap*.elf")}
        self.counts = Counter()
        self.entries = {f"{self.package}Truth.main"}
        self.entries |= {m.symbol for m in self.calls.own if m.name == "run" and "java.lang.Thread" in self.classes.supertypes(m.cls)}

    # What a frame is.

    @staticmethod
    def is_managed(frame):
        return REMAP.search(frame.file) is not None and not frame.symbol.startswith("[")

    @staticmethod
    def is_reason(frame):
        return frame.file.endswith("/remap.elf") and frame.symbol.startswith("[") and frame.symbol not in ("[native]", "[unknown]")

    @staticmethod
    def is_generated(frame):
        """Whether a frame is in code that the VM has made and that belongs to no method."""
        return "/jit-" in frame.file or frame.file.endswith("/remap-vm.elf")

    def is_own(self, symbol):
        return symbol.startswith(self.package)

    @cache
    def bci(self, frame):
        """The offset in its method, and the method's size."""
        start, size = self.symbols[frame.file.rsplit("/", 1)[-1]].place(frame.offset)
        return frame.offset - start, size

    @cache
    def methods(self, symbol, size):
        """The methods that a frame may be of: those of its name and size. None: it is not in any file."""
        cls, _, name = symbol.rpartition(".")
        if MADE.search(symbol):
            return None
        known = self.classes.get(cls)
        if known is None:
            return None
        of_name = [method for method in known.methods if method.name == name and not method.flags & ABSTRACT]
        # A caller at the last instruction is recorded a byte behind it.
        return [each for each in of_name if not each.code or each.size is None or each.size in (size, size - 1) or each.size < size == SLOT]

    # The rules.

    @cache
    def wrong_frame(self, frame, is_caller):
        """Why a frame is no instruction of a method, or None."""
        offset, size = self.bci(frame)
        methods = self.methods(frame.symbol, size)
        if methods is None:
            return f"there is no {frame.symbol}" if self.is_own(frame.symbol) and LAMBDA not in frame.symbol else None
        if not methods:
            return f"there is no {frame.symbol} of {size} bytes"
        offset -= is_caller
        if any(not method.code or offset in method.code for method in methods):
            return None
        return f"{offset} is no instruction of {frame.symbol}"

    @cache
    def wrong_call(self, caller, callee):
        """Why one method cannot have called the next one, or None."""
        offset, size = self.bci(caller)
        if LAMBDA in caller.symbol and self.is_own(caller.symbol):
            return self.wrong_call_of_lambda(caller, callee)
        methods = self.methods(caller.symbol, size)
        if not methods or not any(method.code for method in methods):
            if self.is_own(callee.symbol):
                return self.wrong_callback(caller, callee)
            return None  # native, or made while the JDK runs
        found = [method.code[offset - 1] for method in methods if offset - 1 in method.code]
        wrongs = [self.wrong_instruction(each, caller, callee) for each in found]
        return None if None in wrongs else wrongs[0]

    def wrong_instruction(self, instruction, caller, callee):
        """Why an instruction cannot have called a method, or None."""
        cls, _, name = callee.symbol.rpartition(".")
        if OF_VM.search(callee.symbol) and not (instruction.invoked and instruction.invoked.name == name):
            if name == "<clinit>" and self.is_own(callee.symbol):
                return None if instruction.mnemonic in INITIALIZES else f"{instruction.mnemonic} initializes no class"
            self.counts["calls of the VM itself"] += 1
            return None
        invoked = instruction.invoked
        what = f"{caller.symbol}: {instruction.mnemonic} {instruction.operand}".rstrip()
        if invoked is None:
            return f"{what} does not call {callee.symbol}"
        if instruction.dynamic is not None:
            return None if callee.symbol.startswith("java.lang.") else f"{what} does not call {callee.symbol}"
        if invoked.cls.startswith("java.lang.invoke.") and callee.symbol.startswith("java.lang.invoke."):
            return None  # a method handle's code
        if self.is_own(callee.symbol):
            if not self.is_own(caller.symbol):
                return self.wrong_callback(caller, callee, invoked)
            if LAMBDA in callee.symbol:
                known = name == invoked.name and cls.split(LAMBDA)[0] in self.calls.implemented[invoked.cls, name]
                return None if known else f"{what} calls no lambda {callee.symbol}"
            _, size = self.bci(callee)
            inside = self.methods(callee.symbol, size) or []
            possible = self.calls.callees(instruction)
            return None if any(each in possible for each in inside) else f"{what} does not call {callee.symbol} of {size} bytes"
        if self.is_own(caller.symbol) and self.is_own(invoked.cls):
            possible = self.calls.callees(instruction)
            known = any(method.symbol == callee.symbol for method in possible)
            return None if known else f"{what} does not call {callee.symbol}"
        # A class of the JDK may have overridden it.
        if name == invoked.name:
            return None
        if MADE.search(callee.symbol) or MADE.search(caller.symbol):
            return None
        return f"{what} does not call {callee.symbol}"

    def wrong_call_of_lambda(self, caller, callee):
        """Why a lambda cannot have called a method, or None."""
        cls, _, name = caller.symbol.rpartition(".")
        for each in self.calls.lambdas[cls.split(LAMBDA)[0], name]:
            if callee.symbol == f"{each.cls}.{each.name}":
                return None
            # It converts arguments.
            if re.match(r"^java\.lang\.\w+\.(\w+Value|valueOf)$", callee.symbol):
                return None
        if name == "<init>" and callee.symbol == "java.lang.Object.<init>":
            return None
        return f"no lambda {caller.symbol} calls {callee.symbol}"

    def wrong_callback(self, caller, callee, invoked=None):
        """Why the JDK cannot have called a method of the workload, or None."""
        cls, _, name = callee.symbol.rpartition(".")
        self.counts["calls by the JDK"] += 1
        if LAMBDA in cls:
            of_lambda = name == "<init>" or self.calls.lambdas.get((cls.split(LAMBDA)[0], name))
            named = invoked is None or invoked.name == name or caller.symbol.startswith("java.lang.invoke.")
            return None if of_lambda and named else f"{caller.symbol} calls {callee.symbol}"
        if name == "<clinit>":
            return None
        if invoked and invoked.name != name:
            return f"{caller.symbol}: an invocation of {invoked.cls}.{invoked.name} calls {callee.symbol}"
        above = [each for each in self.classes.supertypes(cls).values() if not self.is_own(each.name)]
        if any(method.name == name for each in above for method in each.methods) and (name != "<init>"):
            return None
        return f"{caller.symbol} calls {callee.symbol}, which no type of the JDK declares"

    def judge(self, key, sample):
        """What is wrong with a sample, or None."""
        user = [frame for frame in sample.chain if frame.offset < KERNEL]
        managed = [at for at, frame in enumerate(user) if self.is_managed(frame)]
        reasons = [frame.symbol for frame in user if self.is_reason(frame)]
        self.counts["samples"] += 1
        self.counts["managed"] += bool(managed)
        self.counts["in generated code"] += bool(managed) or any(self.is_generated(frame) for frame in user)
        self.counts["of the workload"] += any(self.is_own(user[at].symbol) for at in managed)
        self.counts["leaf is managed"] += managed[:1] == [0]
        unnamed = [at for at, frame in enumerate(user) if "/jit-" in frame.file]
        self.counts["unnamed code"] += bool(unnamed)
        nameless = next((frame for frame in user if REMAP.search(frame.file) and frame.symbol == "[unknown]"), None)
        wrong = nameless and f"no method is at {nameless.offset:#x} of {nameless.file.rsplit('/', 1)[-1]}"
        for at in managed:
            is_caller = at > 0 or len(user) < len(sample.chain)
            wrong = wrong or self.wrong_frame(user[at], is_caller)
        for inner, outer in zip(managed, managed[1:]):
            if any(self.is_reason(frame) for frame in user[inner:outer]):
                continue
            self.counts["calls"] += 1
            wrong = wrong or self.wrong_call(user[outer], user[inner])
        for at in unnamed:
            if any(self.is_managed(frame) for frame in user[at + 1 : at + 2]):
                wrong = wrong or f"no marker behind code without a name at {user[at].offset:#x}"
        return wrong or self.wrong_end(user, managed, reasons)

    def wrong_end(self, user, managed, reasons):
        """Why it does not end where its thread begins, or None. Counts how samples end."""
        generated = any(self.is_generated(frame) for frame in user)
        if managed and not reasons:
            last = user[managed[-1]].symbol
            if last not in self.entries and not BEGINS.search(last):
                return f"no thread begins in {last}"
        if reasons:
            # What is gone is why the frames behind it are not found.
            reason = "[vm-gone]" if "[vm-gone]" in reasons else reasons[-1]
            self.counts[f"ends: {reason}{'' if managed or generated else ' (native)'}"] += 1
            return None
        if not user:
            self.counts["ends: kernel"] += 1
            return None
        if not self.is_managed(user[-1]) and not begins(user[-1]) and user[-1].symbol != "[native]":
            return f"it ends in {user[-1].symbol} {user[-1].offset:#x} of {user[-1].file}, where no thread begins"
        self.counts["ends: entry" if managed else "ends: native code"] += 1
        return None


@cache
def entry_point(path):
    """Where a program begins, as its header says."""
    with open(board.fetched(path), "rb") as file:
        return struct.unpack_from("<Q", file.read(64), 24)[0]


def begins(frame):
    """Whether a thread begins in a native frame, or the process: a stripped program has no symbol for that."""
    if is_beginning(frame, bool(board.ADB)):
        return True
    is_program = frame.file.startswith("/") and frame.file.endswith("/bin/java")
    return is_program and 0 < frame.offset - entry_point(frame.file) <= START


def without_method(samples):
    """Samples in which the VM has called Java code and no method is inside, with the reason. The stub that calls it may be the leaf."""
    calls, returns = [], set()
    for key, sample in samples.items():
        for inner, outer in zip(sample.chain, sample.chain[1:]):
            if outer.symbol.startswith("JavaCalls::call_helper"):
                if Oracle.is_managed(inner):
                    returns.add(outer.offset)
                elif not Oracle.is_reason(inner) and not inner.symbol.startswith(CALL_STUB):
                    calls.append((key, outer.offset, inner))
    return {key: f"the VM has called Java code, and {inner.symbol} is inside" for key, offset, inner in calls if offset in returns}


def interpreted(oracle, samples, path):
    """What the kernel's own records say against samples whose leaf is a method in the interpreter: (key, why). A register has the address of
    the bytecode that is executed, wherever the interpreter does not use it for something else: less the sample's offset it is where the
    method's bytecodes are, the same address in all samples of the method."""
    found = []
    register = "x22" if board.ADB else "R13"
    for key, raw in perf_script.raw(path, samples):
        sample = samples.get(key)
        oracle.counts["kernel's records"] += 1
        if sample is None:
            oracle.counts["kernel's records without a sample"] += 1
        elif sample.ip != raw.ip:
            yield key, f"the ip was {raw.ip:#x}"
        elif oracle.is_managed(sample.chain[0]) and register in raw.registers:
            offset, size = oracle.bci(sample.chain[0])
            found.append((key, sample.chain[0], offset, size, raw.registers[register]))
    starts = {}
    for _, frame, offset, _, address in found:
        starts.setdefault(frame.offset - offset, Counter())[address - offset] += 1
    for key, frame, offset, size, address in found:
        start, count = starts[frame.offset - offset].most_common(1)[0]
        if count == 1 or not start <= address < start + size:
            oracle.counts[f"{register} is not in the method"] += 1
        elif address - start == offset:
            oracle.counts[f"{register} is the instruction"] += 1
        else:
            # A method that has returned to itself or is called by itself.
            oracle.counts[f"{register} is another instruction"] += 1


def main():
    """Judges, prints."""
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    session, classes, package, copy = (sys.argv[1:] + sys.argv[1:2])[:4]
    oracle = Oracle(copy, classes, package)
    samples = dict(perf_script.attributed(f"{session}/perf.data"))
    named = {frame.symbol.rpartition(".")[0] for sample in samples.values() for frame in sample.chain if oracle.is_managed(frame)}
    oracle.classes.read(name for name in named if not MADE.search(name + "."))
    oracle.counts["approximate"] = len(set(approximate(f"{copy}/perf.data")))
    entered = without_method(samples)
    if Path(f"{copy}/raw.data").exists():
        entered.update(interpreted(oracle, samples, f"{session}/raw.data"))
    wrong, kinds = 0, Counter()
    for key, sample in samples.items():
        what = oracle.judge(key, sample) or entered.get(key)
        if what:
            wrong += 1
            kinds[what] += 1
            if kinds[what] == 1 and len(kinds) <= SHOWN:
                print(f"{key[0]} {key[1]}: {what}; ip {sample.ip:#x}", file=sys.stderr)
                for frame in sample.chain:
                    where = f"+{oracle.bci(frame)[0]}" if oracle.is_managed(frame) else ""
                    print(f"    {frame.offset:x} {frame.symbol}{where} ({frame.file.rsplit('/', 1)[-1]})", file=sys.stderr)
    for what, count in kinds.most_common(30):
        print(f"{count}: {what}", file=sys.stderr)
    print(json.dumps({**oracle.counts, "wrong": wrong}))
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
