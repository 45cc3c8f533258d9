"""Which frames of a callchain are the app's methods, and can one have called the other?"""

import json
import re
import subprocess
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path

import board

# What a profile keeps the names of methods without bytecode in, those of the framework apart.
REMAP = re.compile(r"/remap(?:-framework)?\.elf$")
CLASS_INITIALIZERS = ("sget", "sput", "new-instance", "invoke-static")
# What a profile calls bytecode that is several methods', where it does not know which one ran.
MORE = re.compile(r" and \d+ more$")
# Instructions that name the class whose method is executed, if that declares it.
EXACT = ("invoke-direct", "invoke-static", "invoke-super")


def is_reason(frame):
    """Whether a frame is a marker that stands for missing frames and says why they are missing."""
    return frame.file.endswith("/remap.elf") and frame.symbol.startswith("[") and frame.symbol != "[native]"


def substitutes(session):
    """The files that a session has for dex files, by build-id."""
    with open(board.fetched(f"{session}/session.json")) as file:
        images = json.load(file)["images"]
    return {image["build_id"]: image["substitute"] for image in images if image["kind"] == "dex"}


class Code:
    """The dex files of a process, by the build-id that a profile's folders are named after. Methods of equal bytecode may share it: a profile, of
    which `session` is the folder, has a range of its own for each of them, behind the file's end. What is said of a frame stays, and recursions
    have the same ones again and again."""

    def __init__(self, dexes, session=None):
        self.dexes = {dex.build_id: dex for dex in dexes}
        self.by_symbol = defaultdict(list)
        self.sharing = defaultdict(list)  # by (build-id, offset of the first instruction)
        for dex in dexes:
            for method in dex.methods:
                self.by_symbol[method.symbol].append(method)
                if method.start:
                    self.sharing[dex.build_id, method.start].append(method)
        known = substitutes(session) if session else {}
        self.copies = {
            dex.build_id: list(self.copies_of(dex, f"{session}/{known[dex.build_id]}")) for dex in dexes if dex.build_id in known
        }

    def copies_of(self, dex, substitute):
        """(start, end, where the dex file has the instructions) of each method's own range."""
        path = board.fetched(substitute)
        starts = {method.symbol: method.start for method in dex.methods if len(self.sharing[dex.build_id, method.start]) > 1}
        if not starts or not Path(path).exists():
            return
        for line in subprocess.run(["nm", "-S", path], capture_output=True, text=True, check=True).stdout.splitlines():
            start, size, _, symbol = line.split(" ", 3)
            start, size = int(start, 16), int(size, 16)
            if symbol in starts and start != starts[symbol]:
                yield start, start + size, starts[symbol]

    @cache
    def placed(self, frame):
        """A frame, at the dex file's own offset of its instruction."""
        for start, end, original in self.copies.get(self.build_id(frame), ()):
            if start <= frame.offset < end:
                return replace(frame, offset=frame.offset - start + original)
        return frame

    @staticmethod
    def build_id(frame):
        """The name of the folder of the file that a frame is in, if that is a dex file's."""
        return frame.file.rpartition("/")[0].rpartition("/")[2]

    @cache
    def dex(self, frame):
        """The dex file that a frame is in, or None."""
        return self.dexes.get(self.build_id(frame))

    @cache
    def methods(self, frame):
        """Those that a frame may be of."""
        if dex := self.dex(frame):
            _, method = dex.instructions.get(frame.offset) or dex.instructions.get(frame.offset - 1) or (None, None)
            if method:
                sharing = self.sharing[dex.build_id, method.start]
                return sharing if MORE.search(frame.symbol) else [each for each in sharing if each.symbol == frame.symbol]
        return self.by_symbol.get(frame.symbol, [])

    @cache
    def is_managed(self, frame):
        """In bytecode, or a method without: markers ([native], [truncated]) are neither."""
        return self.dex(frame) is not None or (REMAP.search(frame.file) is not None and not frame.symbol.startswith("["))

    def wrong_name(self, frame, offset):
        """Why a frame's name is not that of the method at an offset, or None."""
        dex = self.dex(frame)
        instruction, method = dex.instructions.get(offset, (None, None))
        if instruction is None:
            return f"{offset:#x} is no start of an instruction (of {frame.symbol})"
        sharing = self.sharing[dex.build_id, method.start]
        names = [each.symbol for each in sharing]
        if len(sharing) > 1:
            names += [f"{name} and {len(sharing) - 1} more" for name in names]
        if frame.symbol not in names:
            return f"{offset:#x} is in {' or '.join(names)}, not in {frame.symbol}"
        return None

    @cache
    def catches(self, frame):
        """Whether a caller's frame is at the start of an exception handler."""
        dex = self.dex(frame)
        instruction = dex and dex.instructions.get(frame.offset - 1)
        return bool(instruction) and instruction[0].startswith("move-exception")

    @cache
    def wrong_call(self, caller, callee):
        """Why one managed frame cannot have called the next one, or None."""
        dex = self.dex(caller)
        if dex is None:
            return None  # a native method's frame: it calls what it likes
        offset = caller.offset - 1
        if wrong := self.wrong_name(caller, offset):
            return wrong
        instruction = dex.instructions[offset][0]
        invoked = dex.invoked(offset)
        called = self.dex(callee)
        if called is None:
            name = callee.symbol.split("(")[0]
            if invoked and name.endswith(f".{invoked[1]}"):
                return None
            return f"{caller.symbol}: {instruction} does not call {callee.symbol}"
        entry = called.instructions.get(callee.offset) or called.instructions.get(callee.offset - 1)
        if entry is None:
            return f"{callee.offset:#x} is no instruction of {callee.symbol}"
        methods = self.methods(callee)
        if any(method.name == "<clinit>" for method in methods) and instruction.startswith(CLASS_INITIALIZERS):
            return None
        of_name = [method for method in methods if invoked and invoked[1:] == (method.name, method.descriptor)]
        if not of_name:
            return f"{caller.symbol}: {instruction} does not call {callee.symbol}"
        # Of methods that share their bytecode the one of the class that is named.
        sharing = self.sharing[called.build_id, entry[1].start]
        if instruction.startswith(EXACT) and any((each.cls, each.name, each.descriptor) == invoked for each in sharing):
            if all(method.cls != invoked[0] for method in of_name):
                return f"{caller.symbol}: {instruction} calls another one than {callee.symbol}"
        return None
