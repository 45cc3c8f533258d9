#!/usr/bin/env python3
"""What does the block of data in an HTML report say?

usage: html_report.py FILE          prints all of it as JSON
       html_report.py --policy FILE    says nothing if a page of another kind, as 'varid diff --html' writes it, keeps to the same policy
       html_report.py --hostile FILE OUTPUT     the same report with names that would break a page out of its script

Reads the format that docs/guide-html-report.md describes. Exit status 1 if the page could make a request, could run another script than its
own, or has data that contradicts itself.
"""

import base64
import gzip
import hashlib
import json
import re
import sys
from pathlib import Path

BLOCK = re.compile(r'<script type="application/octet-stream" id="data">([^<]*)</script>')
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"'`${alert(3)}",
    "a\nb\tc\0d\u2028e",
    "\u202egnitset\u2066",
    "__proto__",
    "javascript:alert(4)",
]


def unpacked(page):
    """The header and the columns by name."""
    data = gzip.decompress(base64.b64decode(BLOCK.search(page)[1], validate=True))
    at = 4 + int.from_bytes(data[:4], "little")
    header = json.loads(data[4:at])
    columns = {}
    for name, count in header["columns"]:
        values = columns[name] = []
        for _ in range(count):
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
            values.append(value)
    assert at == len(data), f"{len(data) - at} bytes follow the columns"
    return header, columns


def check_policy(page):
    """The page runs its own script only and asks nobody for anything."""
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)[1]
    digest = lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    script = page.split('<script type="module">')[1].split("</script>")[0]
    style = page.split("<style>")[1].split("</style>")[0]
    expected = (f"default-src 'none'; script-src 'sha256-{digest(script)}'; style-src 'sha256-{digest(style)}'; "
                "base-uri 'none'; form-action 'none'")
    assert policy == expected, policy
    assert page.count("<script") == 2 and page.count("<style") == 1, "another script or style"
    assert not re.search(r"\b(src|href|style)=", page), "something is fetched, or styled where the policy forbids it"
    for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "http:", "https:"):
        assert unsafe not in page, unsafe


def stacks(header, columns):
    """Each stack as names from the outermost frame to the leaf, with its lines; by the two trees, which have to agree."""
    names = [header["strings"][name] for name in columns["symbol.name"]]
    path, paths = [], []
    for depth, symbol in zip(columns["node.depth"], columns["node.symbol"]):
        assert depth <= len(path), "a node hangs in the air"
        path = path[:depth] + [names[symbol]]
        paths.append(path)
    assert len(set(map(tuple, paths))) <= len(paths)
    found = []
    for back, frame, node in zip(columns["stack.back"], columns["stack.frame"], columns["stack.node"]):
        line = columns["frame.line"][frame]
        file = header["strings"][columns["frame.file"][frame]]
        mark = "~" if columns["frame.approximate"][frame] else ""
        above = found[len(found) - back] if back else []
        frames = above + [(paths[node][-1], f"{mark}{file}:{line}" if line else "")]
        assert [name for name, _ in frames] == paths[node], "a stack and its node differ"
        found.append(frames)
    return found


def samples(header, columns):
    """Samples in order: time, thread, frames, period."""
    found, all_stacks, time = [], stacks(header, columns), 0
    rows = zip(columns["sample.after"], columns["sample.thread"], columns["sample.stack"], columns["sample.period"])
    for after, thread, stack, period in rows:
        time += after
        found.append((time, header["threads"][thread], all_stacks[stack - 1] if stack else [], period))
    return found


def leb128(number):
    digits = []
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(digits + [number])


def with_data(page, header, columns):
    """The page with other data."""
    header = header | {"columns": [[name, len(values)] for name, values in columns.items()]}
    text = json.dumps(header).encode()
    numbers = b"".join(leb128(value) for values in columns.values() for value in values)
    packed = base64.b64encode(gzip.compress(len(text).to_bytes(4, "little") + text + numbers)).decode()
    return BLOCK.sub(lambda block: block[0].replace(block[1], packed), page)


def hostile(page):
    """The page with other names and facts."""
    header, columns = unpacked(page)
    bad = lambda number: HOSTILE[number % len(HOSTILE)] + (f" {number}" if number >= len(HOSTILE) else "")
    header["strings"] = [bad(number) for number in range(len(header["strings"]))]
    header["threads"] = [[pid, tid, bad(number), bad(number + 1)] for number, (pid, tid, _, _) in enumerate(header["threads"])]
    header["images"] = [[bad(number), bad(number + 2)] for number, _ in enumerate(header["images"])]
    header["facts"] = [[bad(number), bad(number + 3)] for number, _ in enumerate(header["facts"])]
    for number, key in enumerate(("title", "target", "event", "start")):
        header[key] = bad(number)
    return with_data(page, header, columns)


def main():
    if sys.argv[1] == "--hostile":
        Path(sys.argv[3]).write_text(hostile(Path(sys.argv[2]).read_text()))
        return
    page = Path(sys.argv[-1]).read_text()
    check_policy(page)
    if sys.argv[1] == "--policy":
        return
    header, columns = unpacked(page)
    layers = [header["layers"][layer] for layer in columns["symbol.layer"]]
    images = [header["images"][image][0] for image in columns["symbol.image"]]
    names = [header["strings"][name] for name in columns["symbol.name"]]
    symbols = [list(row) for row in zip(names, layers, images, columns["symbol.marker"])]
    of_samples = [
        [time, f"{thread[2]} {thread[0]}/{thread[1]} of {thread[3]}", period, " > ".join(f"{name} {line}".strip() for name, line in frames)]
        for time, thread, frames, period in samples(header, columns)
    ]
    for key in ("strings", "columns", "layers", "threads"):
        del header[key]
    json.dump({"header": header, "symbols": symbols, "samples": of_samples}, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
