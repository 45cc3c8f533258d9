#!/usr/bin/env python3
"""What do the blocks of data in an HTML report say?

usage: html_report.py FILE          prints all of it as JSON
       html_report.py --event NUMBER FILE      the same of another event of the page than its first
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

BLOCK = re.compile(r'<script type="application/octet-stream" id="([a-z]+(?:-[0-9]+)?)">([^<]*)</script>')
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"'`${alert(3)}",
    "a\nb\tc\0d\u2028e",
    "\u202egnitset\u2066",
    "__proto__",
    "javascript:alert(4)",
]


def block(page, name):
    """The bytes of a block; none: the page does not have it."""
    texts = [text for found, text in BLOCK.findall(page) if found == name]
    assert len(texts) <= 1, f"several blocks are called {name}"
    return gzip.decompress(base64.b64decode(texts[0], validate=True)) if texts else None


def with_block(page, name, data):
    """The page with another block of this name."""
    packed = base64.b64encode(gzip.compress(data)).decode()
    return BLOCK.sub(lambda found: found[0].replace(found[2], packed) if found[1] == name else found[0], page)


def code(page, event=0):
    """The annotations of an event's methods by the numbers of their symbols; none in a page without code."""
    data = block(page, f"code-{event}" if event else "code")
    return None if data is None else dict(json.loads(data))


def unpacked(page, event=0):
    """The header and the columns by name, of one of the page's events."""
    data = block(page, f"data-{event}" if event else "data")
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
    blocks = len(re.findall(r'<script type="application/(?:octet-stream|json)" id="[a-z0-9-]+">', page))
    assert page.count("<script") == 1 + blocks and page.count("<style") == 1, "another script or style"
    assert not re.search(r"\b(src|href|style)=", page), "something is fetched, or styled where the policy forbids it"
    # Functions may be called as these are.
    for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert unsafe not in script, unsafe
    assert not re.search(r"\bhttps?:", page), "an address that the page might ask"


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
    return with_block(page, "data", len(text).to_bytes(4, "little") + text + numbers)


def with_code(page, annotations):
    """The page with other annotations by symbol."""
    return with_block(page, "code", json.dumps(list(annotations.items())).encode())


def hostile_texts(value, bad):
    """The same JSON with other texts."""
    if isinstance(value, dict):
        # The page reads these: they are numbers, or chosen by varid.
        return {key: text if key in ("address", "code") else hostile_texts(text, bad) for key, text in value.items()}
    if isinstance(value, list):
        return [hostile_texts(one, bad) for one in value]
    return bad(len(value)) if isinstance(value, str) else value


def hostile(page):
    """The page with other names, facts, sources and instructions."""
    header, columns = unpacked(page)
    bad = lambda number: HOSTILE[number % len(HOSTILE)] + (f" {number}" if number >= len(HOSTILE) else "")
    header["strings"] = [bad(number) for number in range(len(header["strings"]))]
    header["threads"] = [[pid, tid, bad(number), bad(number + 1)] for number, (pid, tid, _, _) in enumerate(header["threads"])]
    header["images"] = [[bad(number), bad(number + 2)] for number, _ in enumerate(header["images"])]
    header["facts"] = [[bad(number), bad(number + 3)] for number, _ in enumerate(header["facts"])]
    for number, key in enumerate(("title", "target", "event", "start")):
        header[key] = bad(number)
    header["finding"] = {"text": bad(4), "symbol": 0}
    annotations = code(page)
    if annotations is not None:
        page = with_code(page, hostile_texts(annotations, bad))
    return with_data(page, header, columns)


def main():
    if sys.argv[1] == "--hostile":
        Path(sys.argv[3]).write_text(hostile(Path(sys.argv[2]).read_text()))
        return
    page = Path(sys.argv[-1]).read_text()
    check_policy(page)
    if sys.argv[1] == "--policy":
        return
    event = int(sys.argv[2]) if sys.argv[1] == "--event" else 0
    header, columns = unpacked(page, event)
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
    found = {"header": header, "symbols": symbols, "samples": of_samples}
    annotations = code(page, event)
    if annotations is not None:
        found["code"] = [{"symbol": names[number], **annotation} for number, annotation in annotations.items()]
    json.dump(found, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
