#!/usr/bin/env python3
"""What does zsh make of a begun command line when the tab key is pressed?

usage: zsh_completes.py FOLDER BEGUN COMPLETED       FOLDER has the completion's function

Exit status 0 if BEGUN becomes COMPLETED within a minute.
"""

import os
import pty
import select
import sys
import time


def main():
    """Runs zsh on a terminal of its own."""
    folder, begun, completed = sys.argv[1:]
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "dumb"
        os.execvp("zsh", ["zsh", "-f", "-i"])
    deadline = time.monotonic() + 60
    shown = b""

    def wait_for(text):
        nonlocal shown
        while text not in shown:
            if time.monotonic() > deadline:
                sys.exit(f"no {text!r} in {shown!r}")
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 4096)
        shown = b""

    # What is typed has another word in it than what is printed.
    os.write(terminal, f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; echo re''ady\n".encode())
    wait_for(b"\nready")
    os.write(terminal, f"{begun}\t".encode())
    wait_for(completed.encode())
    os.close(terminal)
    os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
