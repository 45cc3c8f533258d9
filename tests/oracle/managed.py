"""Which frames of a callchain are the app's methods, and can one have called the other?"""

import re
from functools import cache

# What a profile keeps the names of methods without bytecode in, those of the framework apart.
REMAP = re.compile(r"/remap(?:-framework)?\.elf$")
CLASS_INITIALIZERS = ("sget", "sput", "new-instance", "invoke-static")


def is_reason(frame):
    """Whether a frame is a marker that stands for missing frames and says why they are missing."""
    return frame.file.endswith("/remap.elf") and frame.symbol.startswith("[") and frame.symbol != "[native]"


class Code:
    """The dex files of a process, by the build-id that a profile's files are named after. What is said of a frame stays, and recursions have
    the same ones again and again."""

    def __init__(self, dexes):
        self.dexes = {dex.build_id: dex for dex in dexes}

    @cache
    def dex(self, frame):
        """The dex file that a frame is in, or None."""
        name = frame.file.rsplit("/", 1)[-1]
        return self.dexes.get(name.removesuffix(".elf"))

    @cache
    def is_managed(self, frame):
        """In bytecode, or a method without: markers ([native], [truncated]) are neither."""
        return self.dex(frame) is not None or (REMAP.search(frame.file) is not None and not frame.symbol.startswith("["))

    def wrong_name(self, frame, offset):
        """Why a frame's name is not that of the method at an offset, or None."""
        instruction, method = self.dex(frame).instructions.get(offset, (None, None))
        if instruction is None:
            return f"{offset:#x} is no start of an instruction (of {frame.symbol})"
        if frame.symbol != method.symbol:
            return f"{offset:#x} is in {method.symbol}, not in {frame.symbol}"
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
        method = entry[1]
        if method.name == "<clinit>" and instruction.startswith(CLASS_INITIALIZERS):
            return None
        if invoked and invoked[1:] == (method.name, method.descriptor):
            return None
        return f"{caller.symbol}: {instruction} does not call {method.symbol}{method.descriptor}"
