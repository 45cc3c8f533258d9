#!/usr/bin/env python3
"""Is each package that deps.sh installs needed? Compares the list with the files that a traced command used.

usage: fresh_packages.py ROOT PACKAGE...
ROOT/status.empty is dpkg's status before the packages were installed, ROOT/var/lib/dpkg that after it, ROOT/trace strace's log of
execve and openat with the paths of descriptors. A package is needed if one of its files is used, or one of a package that it alone
on the list brings: python3 has no file that is used, and brings python3.11, even where linux-perf depends on python3.
"""

import collections
import pathlib
import re
import sys

EXECUTED = re.compile(r'execve\("(/[^"]*)"')
OPENED = re.compile(r"openat\(.* = \d+<(/[^>]*)>$")


def stanzas(path):
    """The fields of each package that is installed."""
    for stanza in path.read_text().split("\n\n"):
        fields = dict(re.findall(r"^(\S+): (.*(?:\n .*)*)", stanza, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            yield fields


def dependencies(packages):
    """For each package, those installed ones that satisfy what it depends on."""
    providers = collections.defaultdict(set)
    for fields in packages:
        providers[fields["Package"]].add(fields["Package"])
        for name in re.findall(r"[\w.+-]+(?=\s*(?:\(|,|$))", fields.get("Provides", "")):
            providers[name].add(fields["Package"])
    for fields in packages:
        wanted = ",".join(fields.get(kind, "") for kind in ("Pre-Depends", "Depends"))
        names = re.findall(r"(?:^|[,|])\s*([\w.+-]+)", wanted)
        yield fields["Package"], set().union(*(providers[name] for name in names))


def closure(roots, depends, without=None):
    """The packages and all that they depend on, but for one and what only that one depends on."""
    found, pending = set(), list(roots)
    while pending:
        package = pending.pop()
        if package not in found and package != without:
            found.add(package)
            pending += depends.get(package, ())
    return found


def used_files(root):
    """The files that the trace names, by their paths in the root, without symbolic links."""
    prefix = str(root.resolve())
    found = set()
    for line in (root / "trace").open(errors="replace"):
        executed = EXECUTED.search(line)
        opened = OPENED.search(line.rstrip())
        if opened and opened[1].startswith(prefix + "/"):
            found.add(opened[1].removeprefix(prefix))
        if executed:
            found.add(without_links(root, executed[1]))
    return found


def without_links(root, path):
    """A path in the root, of which links are followed as they are followed there."""
    found, pending = [], path.split("/")
    steps = 0
    while pending and steps < 100:
        part = pending.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            found = found[:-1]
            continue
        here = root.joinpath(*found, part)
        if here.is_symlink():
            steps += 1
            target = str(here.readlink())
            found = [] if target.startswith("/") else found
            pending = target.split("/") + pending
        else:
            found.append(part)
    return "/" + "/".join(found)


def owners(root):
    """The package of each installed file, by its path without symbolic links in its folders."""
    folders = {}
    for files in (root / "var/lib/dpkg/info").glob("*.list"):
        package = files.stem.split(":")[0]
        for line in files.read_text().splitlines():
            folder, _, name = line.rpartition("/")
            if folder not in folders:
                folders[folder] = without_links(root, folder).rstrip("/")
            yield f"{folders[folder]}/{name}", package


def main():
    root = pathlib.Path(sys.argv[1])
    listed = sys.argv[2:]
    depends = dict(dependencies(list(stanzas(root / "var/lib/dpkg/status"))))
    empty = {fields["Package"] for fields in stanzas(root / "status.empty")}
    owner = dict(owners(root))
    used = {owner[path] for path in used_files(root) if path in owner} - empty
    print(f"packages: {len(listed)} listed, files of {len(used)} used: {' '.join(sorted(used))}")
    wrong = 0
    for package in listed:
        rest = closure(listed, depends, without=package)
        if not (closure([package], depends) - rest) & used:
            print(f"packages: {package} is listed in deps.sh, and nothing of it is used")
            wrong += 1
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
