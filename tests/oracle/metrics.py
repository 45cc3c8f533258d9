#!/usr/bin/env python3
"""Are the metrics of a session of exact counts those of its trees?

usage: metrics.py SESSION METRICS
METRICS: what `varid metrics --format json` has printed. The session has one process, which has counted bytecodes. Computes each number from
contexts.data, from the names of methods and from the class files of the session, as the format's description and the JVM's specification say.

Prints counts as JSON, and the first differences; exit status 1 if there are any.
"""

import json
import struct
import sys
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

PARTS = {"remap.substitute.sym": 0x600000000000, "remap-framework.substitute.sym": 0x600000800000}
NAMES_OFFSET = 0x1000
INVOKEDYNAMIC = 186
# The names of opcodes in their order: the specification's section 7.
TYPES, NUMBERS = "ilfda", "ilfd"
OPCODES = """nop aconst_null iconst_m1 iconst_0 iconst_1 iconst_2 iconst_3 iconst_4 iconst_5 lconst_0 lconst_1 fconst_0 fconst_1 fconst_2
dconst_0 dconst_1 bipush sipush ldc ldc_w ldc2_w""".split()
OPCODES += [f"{kind}load" for kind in TYPES] + [f"{kind}load_{index}" for kind in TYPES for index in range(4)]
OPCODES += [f"{kind}aload" for kind in "ilfdabcs"]
OPCODES += [f"{kind}store" for kind in TYPES] + [f"{kind}store_{index}" for kind in TYPES for index in range(4)]
OPCODES += [f"{kind}astore" for kind in "ilfdabcs"]
OPCODES += "pop pop2 dup dup_x1 dup_x2 dup2 dup2_x1 dup2_x2 swap".split()
OPCODES += [kind + name for name in ("add", "sub", "mul", "div", "rem", "neg") for kind in NUMBERS]
OPCODES += [kind + name for name in ("shl", "shr", "ushr", "and", "or", "xor") for kind in "il"] + ["iinc"]
OPCODES += [f"{kind}2{other}" for kind in NUMBERS for other in NUMBERS if kind != other] + ["i2b", "i2c", "i2s"]
OPCODES += """lcmp fcmpl fcmpg dcmpl dcmpg ifeq ifne iflt ifge ifgt ifle if_icmpeq if_icmpne if_icmplt if_icmpge if_icmpgt if_icmple if_acmpeq
if_acmpne goto jsr ret tableswitch lookupswitch ireturn lreturn freturn dreturn areturn return getstatic putstatic getfield putfield
invokevirtual invokespecial invokestatic invokeinterface invokedynamic new newarray anewarray arraylength athrow checkcast instanceof
monitorenter monitorexit wide multianewarray ifnull ifnonnull goto_w jsr_w""".split()


class Fields:
    """The fields of a chunk's payload."""

    def __init__(self, payload):
        self.payload, self.at = payload, 0

    def more(self):
        return self.at < len(self.payload)

    def byte(self):
        self.at += 1
        return self.payload[self.at - 1]

    def number(self):
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def near(self, other):
        number = self.number()
        return (other + ((number >> 1) ^ -(number & 1))) % (1 << 64)

    def text(self):
        length = self.number()
        self.at += length
        return self.payload[self.at - length : self.at].decode()


class Contexts:
    """The contents of contexts.data."""

    def __init__(self, data):
        assert data[:12] == b"VARIDCTX\1\0\0\0"
        self.counters, self.methods, self.sites, self.nodes, self.counts = [], [], [], [], {}
        readers = {1: self.counter, 3: self.method_chunk, 4: self.site_chunk, 5: self.node_chunk, 6: self.count_chunk}
        at = 12
        while at < len(data):
            kind, length, _ = struct.unpack_from("<BII", data, at)
            if kind in readers:
                readers[kind](Fields(data[at + 9 : at + 9 + length]))
            at += 9 + length

    def counter(self, fields):
        while fields.more():
            self.counters.append(fields.text())
            fields.text()

    def method_chunk(self, fields):
        process = address = 0
        while fields.more():
            process, address = fields.near(process), fields.near(address)
            self.methods.append((address, fields.number() - 1))

    def site_chunk(self, fields):
        method = 0
        while fields.more():
            method = fields.near(method)
            bci, opcode, names = fields.number(), fields.byte(), fields.byte()
            target = fields.text() if names == 1 else fields.number() if names else None
            self.sites.append((method, bci, opcode, target))

    def node_chunk(self, fields):
        method = site = 0
        while fields.more():
            flags = fields.byte()
            if flags & 1:
                fields.number()
            parent = len(self.nodes) - fields.number() if flags & 2 else None
            if flags & 4:
                site = fields.near(site)
            if flags & 8:
                fields.number()
            method = fields.near(method)
            self.nodes.append((parent, site if flags & 4 else None, method))

    def count_chunk(self, fields):
        node = place = 0
        while fields.more():
            head = fields.number()
            if head & 2:
                node, place = fields.near(node), 0
            if head & 1:
                place = fields.near(place)
            key = (node, self.counters[head >> 2], place if head & 1 else None)
            self.counts[key] = fields.number()


def methods_of_class(data):
    """Returns the bytecode of each method of a class file, by name and descriptor."""
    count = struct.unpack_from(">H", data, 8)[0]
    at, index, texts = 10, 1, {}
    while index < count:
        tag = data[at]
        if tag == 1:
            length = struct.unpack_from(">H", data, at + 1)[0]
            texts[index] = data[at + 3 : at + 3 + length].decode("utf-8", "replace")
            at += 3 + length
        else:
            at += {7: 3, 8: 3, 16: 3, 19: 3, 20: 3, 15: 4, 5: 9, 6: 9}.get(tag, 5)
        index += 2 if tag in (5, 6) else 1
    at += 6
    at += 2 + 2 * struct.unpack_from(">H", data, at)[0]
    found = {}
    for is_method in (False, True):
        members = struct.unpack_from(">H", data, at)[0]
        at += 2
        for _ in range(members):
            _, name, descriptor, attributes = struct.unpack_from(">4H", data, at)
            at += 8
            for _ in range(attributes):
                attribute, length = struct.unpack_from(">HI", data, at)
                if is_method and texts[attribute] == "Code":
                    code = struct.unpack_from(">I", data, at + 10)[0]
                    found[texts[name], texts[descriptor]] = data[at + 14 : at + 14 + code]
                at += 6 + length
    return found


class Session:
    """A session's tree, with names and bytecode of its methods."""

    def __init__(self, folder):
        self.contexts = Contexts((folder / "contexts.data").read_bytes())
        self.names = {}
        for part, base in PARTS.items():
            path = folder / "symbols" / part
            for line in path.read_text().splitlines() if path.exists() else []:
                fields = line.split("\t")
                if fields[0].startswith("0x"):
                    offset = int(fields[0], 16)
                    self.names[base + offset - NAMES_OFFSET] = (fields[0], *fields[2:5])
        archive = folder / "symbols" / "classes.jar"
        self.archive = zipfile.ZipFile(archive) if archive.exists() else None
        self.entries = set(self.archive.namelist()) if self.archive else set()
        self.classes = {}

    def code(self, address):
        """Returns a method's bytecode, or None."""
        offset, class_name, method, descriptor = self.names[address]
        name = class_name.replace(".", "/") + ".class"
        entry = next((it for it in (f"{offset}/{name}", name) if it in self.entries), None)
        if entry is None:
            return None
        if entry not in self.classes:
            self.classes[entry] = methods_of_class(self.archive.read(entry))
        return self.classes[entry].get((method, descriptor))

    def shown(self, address):
        _, class_name, method, _ = self.names[address]
        return f"{class_name}.{method}"


def metrics(session):
    """Computes the sections, each as a counter of rows."""
    tree = session.contexts
    calls, bytecodes, steps = Counter(), Counter(), defaultdict(Counter)
    # A context is its caller, the site and the method: those of several threads are one.
    merged, keys = {}, []
    for parent, site, method in tree.nodes:
        address = tree.methods[method][0]
        bci = None if site is None else tree.sites[site][1]
        key = (None if parent is None else keys[parent], bci, address)
        keys.append(merged.setdefault(key, len(merged)))
    for (node, counter, place), value in tree.counts.items():
        if counter == "calls":
            calls[keys[node]] += value
        else:
            bytecodes[keys[node]] += value
            steps[tree.methods[tree.nodes[node][2]][0]][place] += value
    opcodes = Counter()
    for address, places in steps.items():
        code = session.code(address)
        for place, value in places.items():
            wide = OPCODES[code[place]] == "wide"
            opcodes[OPCODES[code[place + wide]] + "_w" * wide] += value
    sizes = dict(tree.methods)
    methods, depths, chains, levels = defaultdict(lambda: [0, 0]), defaultdict(lambda: [0, 0]), Counter(), {}
    for (parent, _, address), number in merged.items():
        levels[number] = 1 if parent is None else levels[parent] + 1
        methods[address][0] += calls[number]
        methods[address][1] += bytecodes[number]
        depths[levels[number]][0] += 1
        depths[levels[number]][1] += calls[number]
        chains[session.shown(address), levels[number], calls[number], bytecodes[number]] += 1
    targets, site_calls = defaultdict(set), Counter()
    done = set()
    for node, (parent, site, method) in enumerate(tree.nodes):
        if site is None or keys[node] in done:
            continue
        done.add(keys[node])
        caller, bci, opcode, declared = tree.sites[site]
        address = tree.methods[method][0]
        name = session.names[address][2]
        is_target = opcode != INVOKEDYNAMIC and declared.split("(")[0].rsplit(".", 1)[1] == name
        if is_target and calls[keys[node]]:
            where = (tree.methods[caller][0], bci, declared)
            targets[where].add(address)
            site_calls[where] += calls[keys[node]]
    return {
        "opcodes": Counter(opcodes.items()),
        "methods": Counter((session.shown(a), max(sizes[a], 0), *v) for a, v in methods.items()),
        "depth": Counter((depth, *values) for depth, values in depths.items()),
        "contexts": chains,
        "sites": Counter((session.shown(w[0]), w[1], w[2], len(t), site_calls[w]) for w, t in targets.items()),
    }


def printed(found):
    """Returns the rows of varid's metrics in the same form."""

    def get(row, *names):
        # A method whose name another one of its class has is followed by its arguments.
        values = [row.get(name) or 0 for name in names]
        return tuple(value.split("(")[0] if name == "method" else value for name, value in zip(names, values))

    return {
        "opcodes": Counter((row["opcode"], row["executions"]) for row in found["opcodes"]),
        "methods": Counter(get(row, "method", "size", "calls", "bytecodes") for row in found["methods"]),
        "depth": Counter(get(row, "depth", "contexts", "calls") for row in found["depth"]),
        "contexts": Counter(get(row, "method", "depth", "calls", "bytecodes") for row in found["contexts"]),
        "sites": Counter(get(row, "method", "bci", "declared", "targets", "calls") for row in found["sites"]),
    }


def main():
    folder, found = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    expected, rows = metrics(Session(folder)), printed(found)
    differences = []
    for section, counted in expected.items():
        for what, difference in (("missing", counted - rows[section]), ("extra", rows[section] - counted)):
            differences += [f"{section}: {what}: {row}" for row in list(difference)[:5]]
    # Shares, and callers of contexts, are in the rows themselves.
    total = sum(row["executions"] for row in found["opcodes"])
    for row in found["opcodes"]:
        if abs(row["share"] - 100 * row["executions"] / total) > 1e-9:
            differences.append(f"opcodes: share: {row}")
    for row in found["contexts"]:
        depth = found["contexts"][row["caller"]]["depth"] if "caller" in row else 0
        if row["depth"] != depth + 1:
            differences.append(f"contexts: depth: {row}")
    print(json.dumps({"rows": {name: sum(rows.values()) for name, rows in expected.items()}, "differences": differences[:20]}))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
