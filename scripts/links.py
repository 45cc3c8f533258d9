#!/usr/bin/env python3
"""Does every relative link in the project's Markdown lead to a file, and to a heading if it names one?"""

import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors(text):
    """The names that headings can be linked by, as GitHub makes them."""
    for heading in re.findall(r"^#+ +(.*?) *#*$", text, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def problems(path):
    """What is wrong with the links of one file."""
    for target in LINK.findall(CODE.sub("", path.read_text())):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = path.parent / urllib.parse.unquote(name) if name else path
        if not linked.exists():
            yield f"{target}: no such file"
        elif anchor and linked.suffix == ".md" and anchor not in anchors(linked.read_text()):
            yield f"{target}: no such heading"


def main():
    files = subprocess.check_output(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.md"], cwd=ROOT).decode()
    files = [ROOT / name for name in files.split("\0") if name and (ROOT / name).exists()]
    wrong = [f"{path.relative_to(ROOT)}: {problem}" for path in files for problem in problems(path)]
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(files)} documents, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
