#!/usr/bin/env -S python3 -B
"""What do exact calling contexts cost, beside what the paper on JP2 prints? Runs Debian's programs and writes docs/exact-costs.md.

usage: exact_paper.py RELEASE-FOLDER DOCUMENT [small]      after make build
Takes half an hour on a machine that must have nothing else to do; `small` shows in two minutes that all of it runs, and measures little.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import exact_runs as runs
from estimate_runs import ROOT, machine, under_load
from exact_pages import head, nodes, others, overhead


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["small"]):
        sys.exit(__doc__.split("\n\n")[1])
    release, document = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    effort = runs.SMALL if sys.argv[3:] else runs.FULL
    subprocess.run([ROOT / "tests/jvm/programs/build.sh", release], check=True)
    with tempfile.TemporaryDirectory() as folder:
        runner = runs.Runner(release, Path(folder))

        def measure():
            found = {}
            for program in runs.PROGRAMS:
                found[program] = runner.cost(program, effort)
                print(f"exact-paper: {program.name}", file=sys.stderr, flush=True)
            return found

        found, load = under_load(measure)
    pages = head(machine(), load, effort, effort == runs.SMALL)
    pages += overhead(found) + nodes(found) + others(found)
    document.write_text("\n".join(pages).rstrip() + "\n")
    print(f"exact-paper: {document}")


if __name__ == "__main__":
    main()
