"""Which methods can a program have executed, and in which does each of its threads begin? As ART's own method trace of the program says.

Two rules for each callchain of a profile follow from it:

* It ends at a method that native code called where no other method ran, of its kind of thread, or it has a reason for what it lacks.
* The program can execute each of its methods.
"""

import sys
from collections import Counter, defaultdict

from beginnings import is_beginning, is_signal_return
from dexdump import parameters
from managed import MORE, is_reason
from method_trace import Trace

SHOWN = 5  # chains that end elsewhere
MAIN = "main"  # what the VM calls the thread that has started it
# A trace begins when the VM has started, and ends before it stops. What it calls then of the boot class path, in its main thread and in
# others, beside the initializers of classes. Of each of its threads it makes an object.
THREAD = "java.lang.Thread.<init>(java.lang.ThreadGroup,java.lang.String,int,boolean)"
LOADER = "dalvik.system.DexFile.openDexFileNative"  # by which artvm opens an app's dex file with its .odex
STARTS = {
    True: {"java.lang.Daemons.start", "java.lang.Daemons.stop", "java.lang.ClassLoader.getSystemClassLoader", THREAD, LOADER},
    False: {"java.lang.Daemons$HeapTaskDaemon.run", THREAD},
}
# What these instructions name is what they call; others may call another class's method of the name.
EXACT = ("invoke-direct", "invoke-static")
# A method that a chain has so often is one of a recursion. What is copied of a stack may end in that.
RECURSIVE = 16


def reachable(dex, symbols):
    """The methods of a dex file that these ones may call, directly or not, and the initializers of their classes."""
    of_class, of_name, of_code, calls = defaultdict(list), defaultdict(list), defaultdict(list), defaultdict(set)
    for method in dex.methods:
        of_class[method.cls].append(method)
        of_name[method.name, method.descriptor].append(method)
        of_code[method.start].append(method)
    for offset, (instruction, first) in dex.instructions.items():
        if invoked := dex.invoked(offset):
            is_exact = instruction.startswith(EXACT)
            called = [each.symbol for each in of_name[invoked[1:]] if not is_exact or each.cls == invoked[0]]
            # In a compact dex file methods may have their code in common.
            for method in of_code[first.start]:
                calls[method.symbol].update(called)
    classes = {method.symbol: method.cls for method in dex.methods}
    todo, found = [symbol for symbol in classes if symbol in symbols], set()
    while todo:
        symbol = todo.pop()
        if symbol not in found:
            found.add(symbol)
            todo += calls[symbol]
            todo += (method.symbol for method in of_class[classes[symbol]] if method.name == "<clinit>")
    return found


class Program:
    """A program, by its trace and the dex files that it maps."""

    def __init__(self, trace, code, has_link, counts):
        traced = Trace(trace)
        self.code, self.has_link, self.counts = code, has_link, counts
        self.executed = set().union(*STARTS.values())  # as a profile calls them, with parameters and without
        for method in traced.methods.values():
            self.executed |= {str(method), f"{method}{parameters(method.descriptor)}"}
        self.entries = {is_main: set(starts) for is_main, starts in STARTS.items()}  # of the main thread, of others
        for thread, method in traced.entries():
            self.entries[thread == MAIN] |= {str(method), f"{method}{parameters(method.descriptor)}"}
        for dex in code.dexes.values():
            # Of the app's own methods others may run in later rounds.
            if not any(method.cls == "java.lang.Object" for method in dex.methods):
                self.executed |= reachable(dex, self.executed)
                continue
            initializers = {method.symbol for method in dex.methods if method.name == "<clinit>"}
            self.entries[True] |= initializers
            self.executed |= reachable(dex, initializers.union(*STARTS.values()))

    def judge(self, user, is_main, is_deep):
        """What is wrong with a callchain in user space, or None. `is_deep`: native code is in a recursion that no copy of a stack reaches the end
        of. A chain that ends elsewhere than it should is counted as `ends: elsewhere`; the first ones are printed."""
        for frame in user:
            if self.code.is_managed(frame) and MORE.sub("", frame.symbol) not in self.executed:
                return f"the program does not execute {frame.symbol}"
        if wrong := self.wrong_end(user, is_main, is_deep):
            self.counts["ends: elsewhere"] += 1
            if self.counts["ends: elsewhere"] <= SHOWN:
                print(wrong, *(f"    {frame.symbol} {frame.offset:#x} {frame.file}" for frame in user), sep="\n", file=sys.stderr)
        return None

    def why(self, user, managed, reasons, is_deep):
        """Why a chain ends before its thread's beginning."""
        is_native = len(user) == 2 and not managed and not is_reason(user[0])
        if is_native and is_beginning(user[0], self.has_link):
            return "a thread's first instruction"  # Nobody has called it.
        if reasons[0] == "[truncated]":  # What is behind it is what the VM has noted of the rest.
            if is_deep or max(Counter(frame.symbol for frame in managed).values(), default=0) >= RECURSIVE:
                return "recursion"
            if any(map(is_signal_return, user)):
                return "[truncated] behind a signal's handler"
        return reasons[-1]

    def wrong_end(self, user, is_main, is_deep):
        """Why it does not end where its thread begins, or None. Counts how chains end."""
        managed = [frame for frame in user if self.code.is_managed(frame)]
        reasons = [frame.symbol for frame in user if is_reason(frame)]
        if reasons:
            # Whatever is behind it: a frame is missing.
            self.counts[f"ends: {self.why(user, managed, reasons, is_deep)}"] += 1
        if not user or is_reason(user[-1]):
            return None
        if managed and managed[-1].symbol not in self.entries[is_main]:
            return f"the chain ends in {managed[-1].symbol}, where no thread of its kind begins"
        # What has called the outermost method may have been left out.
        if not self.code.is_managed(user[-1]) and not is_beginning(user[-1], self.has_link):
            return f"the chain ends in {user[-1].symbol} {user[-1].offset:#x} of {user[-1].file}, where no thread begins"
        if not reasons:
            self.counts["ends: entry" if managed else "ends: native code"] += 1
        return None
