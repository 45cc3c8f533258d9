"""Where do threads begin in native code, and where do handlers of signals return?"""

from functools import cache
from pathlib import Path

import machine_code

SYMBOLS = ("_start", "_dl_start_user", "clone3", "__clone3", "__clone")
SIGNALS = ("__restore_rt", "__kernel_rt_sigreturn")
# mov $15, %rax; syscall
SIGRETURN = bytes.fromhex("48c7c00f0000000f05")
# mov $435, %eax; syscall
CLONE3 = bytes.fromhex("b8b30100000f05")
# mov %rax, %rdi; mov $60, %eax; syscall
EXIT = bytes.fromhex("4889c7b83c0000000f05")
# Bytes from the one to the other at most.
NEAR = 32


@cache
def content(path):
    """A file's bytes."""
    return Path(path).read_bytes()


@cache
def code(path):
    """A file's machine code, as objdump disassembles it."""
    return machine_code.File(path)


def is_new_thread(path, offset):
    """Whether a new thread is at an offset of a C library without symbols: behind clone3's system call, before it calls its function, or
    where that returns to the system call that ends it."""
    before, behind = content(path)[max(offset - NEAR, 0) : offset], content(path)[offset : offset + NEAR]
    return behind.startswith(EXIT) or (CLONE3 in before and EXIT in behind)


def is_beginning(frame, has_link):
    """Whether a thread begins in a frame. C libraries and dynamic linkers need not have symbols for that: then the code there tells, and of a
    dynamic linker that it is one. `has_link`: the machine has a link register."""
    name = frame.file.rsplit("/", 1)[-1]
    if frame.symbol in SYMBOLS or name.startswith("ld-linux-"):
        return True
    if not frame.file.startswith("/"):
        return False
    if not has_link:
        return name == "libc.so.6" and is_new_thread(frame.file, frame.offset)
    file = code(frame.file)
    return file.content is not None and file.exits_behind(frame.offset - 1)


def is_signal_return(frame):
    """Whether a frame is what a signal's handler returns to. C libraries need not have a symbol for it."""
    if frame.symbol in SIGNALS:
        return True
    if frame.file.rsplit("/", 1)[-1] != "libc.so.6" or not Path(frame.file).is_file():
        return False  # a board's has the kernel's own function for it
    # Called by nobody, it has its start as address; in the kernel, where the system call returns to.
    return SIGRETURN in content(frame.file)[max(frame.offset - len(SIGRETURN), 0) : frame.offset + len(SIGRETURN)]
