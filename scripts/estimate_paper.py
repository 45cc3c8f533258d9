#!/usr/bin/env -S python3 -B
"""What do the papers on estimates print, and what is it here? Counts, estimates, times and calibrates, and writes docs/estimates.md.

usage: estimate_paper.py RELEASE-FOLDER DOCUMENT [small]      after make build
Takes a quarter of an hour, best on a machine with nothing else to do; `small` shows in two minutes that all of it runs, and measures little.
"""

import sys
import tempfile
from pathlib import Path

import estimate_runs as runs
from estimate_pages import accuracy, case_study, head, hit_and_miss, overhead, prediction, timing

SIZES = ("512", "1K", "2K", "4K", "8K")
BLOCKS = (2, 4, 8, 16, 32)


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["small"]):
        sys.exit(__doc__.split("\n\n")[1])
    release, document = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    effort = runs.SMALL if sys.argv[3:] else runs.FULL
    with tempfile.TemporaryDirectory() as folder:
        tools = runs.Tools(release, Path(folder))
        classes = {compiler: tools.compile(compiler) for compiler in ("ecj", "javac")}
        classes = {compiler: folder for compiler, folder in classes.items() if folder}
        counted = {compiler: tools.count(f"counted-{compiler}", ["--call-order"], folder, "Embedded") for compiler, folder in classes.items()}
        best = counted.get("ecj", counted["javac"])
        pages = head(effort == runs.SMALL)
        pages += accuracy({compiler: runs.accuracy(tools, session) for compiler, session in counted.items()})
        pages += hit_and_miss({compiler: runs.assumed(tools, session) for compiler, session in counted.items()})
        pages += case_study(runs.case_study(tools, best, SIZES, BLOCKS))
        pages += overhead(*runs.under_load(lambda: runs.overhead(tools, classes["javac"], effort)))
        vm = f"{runs.JDK}/java -Xint -cp {{classpath}} {{class}}"
        _, coarse = runs.calibrate(tools, vm, "millis", effort)
        (table, fine), load = runs.under_load(lambda: runs.calibrate(tools, vm, "nano", effort))
        pages += timing("HotSpot 17, -Xint", fine, coarse, load)
        session = tools.count("kernels", ["--bytecodes"], classes["javac"], "Kernels", 1)
        pages += prediction(*runs.under_load(lambda: runs.predict(tools, table, session, classes["javac"], effort)))
        document.write_text("\n".join(pages).rstrip() + "\n")
    print(f"estimate-paper: {document}")


if __name__ == "__main__":
    main()
