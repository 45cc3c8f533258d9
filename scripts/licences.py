#!/usr/bin/env python3
"""Do all dependencies have allowed licences, and one version each? Reads deny.toml as cargo-deny does.

A stand-in where cargo-deny is not installed: [licenses] allow, [bans] multiple-versions and skip, [sources].
"""

import collections
import json
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def allowed(expression, allow):
    """Whether an SPDX expression can be satisfied with the licences in `allow`."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    position = 0

    def take():
        nonlocal position
        position += 1
        return tokens[position - 1]

    def peek():
        return tokens[position] if position < len(tokens) else None

    def term():
        token = take()
        if token == "(":
            value = any_of()
            if take() != ")":
                raise ValueError("unbalanced parenthesis")
            return value
        if peek() == "WITH":
            take()
            token = f"{token} WITH {take()}"
        return token in allow

    def all_of():
        value = term()
        while peek() == "AND":
            take()
            value = term() and value
        return value

    def any_of():
        value = all_of()
        while peek() == "OR":
            take()
            value = all_of() or value
        return value

    value = any_of()
    if peek() is not None:
        raise ValueError(f"unexpected {peek()}")
    return value


def main():
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    allow = set(rules["licenses"]["allow"])
    skip = {entry["crate"] if isinstance(entry, dict) else entry for entry in rules["bans"]["skip"]}
    metadata = json.loads(subprocess.check_output(
        ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features",
         "--filter-platform", "x86_64-unknown-linux-gnu"], cwd=ROOT))
    wrong = []
    versions = collections.defaultdict(list)
    used = {node["id"] for node in metadata["resolve"]["nodes"]}
    for package in metadata["packages"]:
        name = f"{package['name']} {package['version']}"
        if package["id"] in used:
            versions[package["name"]].append(package["version"])
        licence = package["license"]
        try:
            if not licence or not allowed(licence, allow):
                wrong.append(f"{name}: licence {licence!r} is not allowed in deny.toml")
        except (IndexError, ValueError) as error:
            wrong.append(f"{name}: cannot read licence {licence!r}: {error}")
        source = package["source"]
        if source is not None and not source.startswith(("registry+", "sparse+")):
            wrong.append(f"{name}: comes from {source}, not from a registry")
    for name, several in sorted(versions.items()):
        if len(several) > 1 and name not in skip and rules["bans"]["multiple-versions"] == "deny":
            wrong.append(f"{name}: several versions: {', '.join(sorted(several))}")
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(metadata['packages'])} packages, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
