#!/usr/bin/env python3
"""Fails when modules of a crate use each other in a circle.

    module_circles.py [--order] CRATE...

A crate is the folder that holds its src. Modules are compared with their siblings, each with all
that is below it: a folder that uses its neighbour, which uses a file of that folder, is a circle.
A module and its parent may use each other. Code under #[cfg(test)] is not looked at.
--order prints, for each folder, its modules so that each uses only those before it.
"""

import argparse
import collections
import pathlib
import re
import sys

NOISE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'""",
    re.S,
)
PATH = re.compile(r"(?<![\w:.$])(?:crate|self|super|[a-z_]\w*)(?:\s*::\s*\w+)+")
USE = re.compile(r"(?:^|(?<=[;{}\s\]]))(pub(?:\([\w\s:]+\))?\s+)?use\s+([^;]+);")
RE_EXPORTS = 8  # a name that is passed on more often is taken for a circle of `use`


class Crate:
    """The modules of a crate, and which uses which: a module is the tuple of its names."""

    def __init__(self, folder):
        self.source = pathlib.Path(folder) / "src"
        self.texts = {}
        for file in sorted(self.source.rglob("*.rs")):
            parts = file.relative_to(self.source).with_suffix("").parts
            if {"tests", "testing"} & set(parts):
                continue
            if parts[-1] in ("mod", "lib", "main"):
                parts = parts[:-1]
            text = without_tests(NOISE.sub(blank, file.read_text()))
            self.texts[parts] = self.texts.get(parts, "") + text
        # What a module's names stand for: {module: {name: path}}.
        self.names = collections.defaultdict(dict)
        self.paths = collections.defaultdict(set)
        for module, text in self.texts.items():
            for _, tree in USE.findall(text):
                for path, name in leaves(tree):
                    self.names[module][name] = path
                    self.paths[module].add(path)
            for path in PATH.findall(USE.sub(" ", text)):
                self.paths[module].add(tuple(re.split(r"\s*::\s*", path)))

    def resolve(self, module, path, depth=0):
        """The module that defines what a path names as seen from a module; None: not of this crate."""
        head, *rest = path
        if head == "crate":
            at = ()
        elif head == "self":
            at = module
        elif head == "super":
            at = module[:-1]
            while rest and rest[0] == "super":
                at, rest = at[:-1], rest[1:]
        elif module + (head,) in self.texts:
            at = module + (head,)
        else:
            return None
        while rest and at + (rest[0],) in self.texts:
            at, rest = at + (rest[0],), rest[1:]
        if rest and depth < RE_EXPORTS and rest[0] in self.names[at]:
            passed_on = self.resolve(at, self.names[at][rest[0]], depth + 1)
            if passed_on is not None:
                return passed_on
        return at

    def circles(self, order):
        """{parent: [circle of its children]}; with order, {parent: its children in order}."""
        uses = collections.defaultdict(lambda: collections.defaultdict(set))
        because = {}
        for module, paths in self.paths.items():
            for path in paths:
                used = self.resolve(module, path)
                if used is None:
                    continue
                level = 0
                while level < min(len(module), len(used)) and module[level] == used[level]:
                    level += 1
                if level < len(module) and level < len(used):
                    parent = module[:level]
                    uses[parent][module[level]].add(used[level])
                    uses[parent].setdefault(used[level], set())
                    because.setdefault((parent, module[level], used[level]), []).append((module, path))
        found = {}
        for parent, edges in sorted(uses.items()):
            groups = components(edges)
            found[parent] = [group for group in groups if order or len(group) > 1]
        return found, because


def blank(match):
    """A comment or a literal, without its text: lines stay where they are."""
    return "\n" * match.group().count("\n") + " "


def without_tests(text):
    """The text without what is compiled for tests only."""
    while True:
        start = re.search(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?", text)
        if not start:
            return text
        end = start.end()
        depth = 0
        while end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
            if depth == 0 and text[end - 1] in ";}":
                break
        text = text[: start.start()] + text[end:]


def leaves(tree, before=()):
    """The (path, name) pairs of a use tree."""
    tree = tree.strip()
    at = tree.find("{")
    if at < 0:
        tree, _, name = (part.strip() for part in re.sub(r"\s+as\s+", "\0", tree).partition("\0"))
        path = before + tuple(part.strip() for part in tree.split("::"))
        if path[-1] == "self" and len(path) > 1:
            path = path[:-1]
        yield path, name or path[-1]
        return
    before += tuple(part.strip() for part in tree[:at].split("::") if part.strip())
    depth, start = 0, at + 1
    for index in range(at + 1, len(tree)):
        character = tree[index]
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0 or (character == "," and depth == 0):
            if tree[start:index].strip():
                yield from leaves(tree[start:index], before)
            start = index + 1


def components(edges):
    """The strongly connected groups of a graph, those first that the others use."""
    index, low, stack, groups = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = [stack.pop()]
            while group[-1] != node:
                group.append(stack.pop())
            groups.append(sorted(group))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return groups


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--order", action="store_true", help="print each folder's modules in order")
    parser.add_argument("crates", nargs="+", metavar="CRATE")
    arguments = parser.parse_args()
    failed = False
    for crate in arguments.crates:
        found, because = Crate(crate).circles(arguments.order)
        for parent, groups in found.items():
            where = "::".join((crate,) + parent)
            if arguments.order:
                print(f"{where}: " + ", ".join("+".join(group) for group in groups))
                continue
            for group in groups:
                failed = True
                print(f"{where}: {', '.join(group)} use each other", file=sys.stderr)
                for one in group:
                    for other in group:
                        for module, path in because.get((parent, one, other), []) if one != other else []:
                            print(f"    {'::'.join(module)} uses {'::'.join(path)}", file=sys.stderr)
    if failed:
        sys.exit("module_circles: move what both need into a module of its own, below both")


if __name__ == "__main__":
    main()
