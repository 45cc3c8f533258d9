#!/usr/bin/env python3
"""Whose code is in varid besides the project's own? Prints every crate that is linked into it, with its licence's text.

usage: notices.py RUST-TARGET...
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXTS = ("LICEN", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")


def linked(target):
    """The packages that varid is linked from, by name and version."""
    metadata = json.loads(subprocess.check_output(
        ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target], cwd=ROOT))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [package["id"] for package in packages.values() if package["name"] == "varid"]
    seen = set()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        waiting += [dep["pkg"] for dep in nodes[at]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
    return {(packages[at]["name"], packages[at]["version"]): packages[at] for at in seen}


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    packages = {}
    for target in sys.argv[1:]:
        packages |= linked(target)
    print("varid is linked with Rust's standard library (MIT OR Apache-2.0), on amd64 and arm64 with musl (MIT), on armhf with\n"
          "glibc (LGPL-2.1-or-later; varid's sources and scripts/cross.sh link it anew), and with these crates:\n")
    texts = {}
    for (name, version), package in sorted(packages.items()):
        if package["source"] is None:
            continue
        print(f"{name} {version}: {package['license']}")
        folder = pathlib.Path(package["manifest_path"]).parent
        for file in sorted(folder.iterdir()):
            if file.is_file() and file.name.upper().startswith(TEXTS):
                texts.setdefault(file.read_text(errors="replace").strip(), []).append(f"{name} {version}")
    for text, names in texts.items():
        print(f"\n{'=' * 79}\n{', '.join(names)}\n{'=' * 79}\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
