#!/usr/bin/env -S python3 -B
"""How close and how fast are estimates of programs for RISC-V? Simulates processors' RTL beside them, and writes docs/processor-study.md.

usage: processor_study.py RELEASE-FOLDER BUILD-FOLDER DOCUMENT      after make build
BUILD-FOLDER is where the simulators and the programs are built. Needs some minutes of processor time.
"""

import sys
from pathlib import Path

import processor_pages as pages
import processor_runs as runs
from processor_printed import beside_the_paper

SIZES = ("1K", "2K", "4K", "8K", "16K")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.split("\n\n")[1])
    release, build, document = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), Path(sys.argv[3])
    tools = runs.Tools(release, build)
    tools.prepare()
    guests = tools.guests()
    compared = {configuration: tools.compare(configuration, guests) for configuration in runs.configurations()}
    by_name = {configuration.name: pairs for configuration, pairs in compared.items()}

    explored = [guest for guest in guests if guest.build == runs.BUILDS[0]]
    swept, seconds = {}, 0
    for cache in ("icache", "dcache"):
        for size in SIZES:
            found = [tools.estimate(guest, ("--target", "vexriscv", "--set", f"{cache}.size={size}")) for guest in explored]
            swept[cache, size] = [summary for summary, _ in found]
            seconds += sum(taken for _, taken in found)
    _, true = pages.total_cycles(by_name["vexriscv"])

    lines = pages.head(compared)
    lines += beside_the_paper(compared)
    lines += pages.accuracy(compared)
    lines += pages.each_program(compared)
    lines += pages.memory(by_name["ibex"], {guest: runs.code_size(guest) for guest in guests})
    lines += pages.caches(by_name["vexriscv"])
    lines += pages.design_space(compared)
    lines += pages.cache_sizes(swept, true, seconds)
    document.write_text("\n".join(lines).rstrip() + "\n")
    print(f"estimate-study: {document}")


if __name__ == "__main__":
    main()
