#!/usr/bin/env python3
"""Does an HTML report show a method's code as 'varid annotate' has it, and each of its events? Clicks through it in Chromium.

usage: code.py PAGE ANNOTATION ANNOTATION...

PAGE is a report of a recording with several events and with sources; an ANNOTATION is what varid annotate --format json says of a method
of its first event. Prints what was compared as JSON; exit status 1 with what is wrong.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from chromium import Browser

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import html_report  # noqa: E402

# Each line with its instructions: [[its cells, of inlined ones too], [its instructions' cells]].
PAIRS = """Array.from(document.querySelectorAll('.code .pair:not(.titles)'), (pair) => ['source', 'instruction'].map((kind) =>
    Array.from(pair.querySelectorAll(`.row.${kind}`), (row) => Array.from(row.children, (cell) => cell.textContent))))"""
FOCUSED = "Array.from(document.activeElement.children, (cell) => cell.textContent)"


def open_method(browser, name):
    browser.click("#tab-methods")
    browser.type("#query", name)
    found = browser.run(f"""(() => {{ const links = Array.from(document.querySelectorAll('#methods .link'));
        const link = links.find((link) => link.textContent === {json.dumps(name)}); link?.click(); return Boolean(link); }})()""")
    assert found, f"{name} is not in the table"
    browser.wait("document.querySelector('.code') !== null")
    browser.settle()
    assert browser.text("#method-name") == name, browser.text("#method-name")


def cells(found, place):
    """The numbers of a row, and its place."""
    mark = "~" if found.get("approximate") else ""
    of_method = f"{found['method_percent']:.2f}" if found.get("self") else ""
    total = f"{found['total_percent']:.2f}" if found.get("total") else ""
    return [of_method, total, mark + place]


def expected(annotation):
    """The same as PAIRS; of lines, the text as the file has it."""
    pairs = []
    for line in (line for file in annotation["files"] for line in file["lines"]):
        left = []
        if "line" in line:
            left.append(cells(line, str(line["line"])) + [line.get("source", "")])
        for inlined in line.get("inlined", []):
            left.append(cells(inlined, "") + [None])
        right = []
        for found in line.get("instructions", []):
            place = f"{found['pc']:04x}" if "pc" in found else found["address"][2:]
            right.append(cells(found, place) + [found["text"]])
        pairs.append([left, right])
    return pairs


def check_code(browser, annotation):
    open_method(browser, annotation["method"]["name"])
    seen, wanted = browser.run(PAIRS), expected(annotation)
    assert len(seen) == len(wanted), f"{len(seen)} lines, not {len(wanted)}"
    for (lines, instructions), (wanted_lines, wanted_instructions) in zip(seen, wanted):
        assert instructions == wanted_instructions, f"{instructions}, not {wanted_instructions}"
        assert [row[:3] for row in lines] == [row[:3] for row in wanted_lines], f"{lines}, not {wanted_lines}"
        for row, wanted_row in zip(lines, wanted_lines):
            if wanted_row[3] is None:
                assert row[3].startswith("(inlined) "), row
            else:
                # Blanks that all lines begin with are left out.
                assert row[3].strip() == wanted_row[3].strip(), f"{row}, not {wanted_row}"
    shown = [row for lines, _ in seen for row in lines]
    assert any(row[3].strip() for row in shown), "no source is shown"
    browser.key("Escape")
    browser.type("#query", "")
    return sum(len(right) for _, right in seen)


def check_keys(browser, annotation):
    """The hottest line is a key away, its instructions another."""
    open_method(browser, annotation["method"]["name"])
    lines = [line for file in annotation["files"] for line in file["lines"] if line.get("self") and "line" in line]
    hottest = max(lines, key=lambda line: line["method_percent"])
    browser.click("#method-hottest")
    at = browser.run(FOCUSED)
    assert at[:3] == cells(hottest, str(hottest["line"])), f"{at}, not {hottest}"
    browser.key("ArrowRight")
    first = hottest["instructions"][0]
    assert browser.run("document.activeElement.classList.contains('instruction')"), "right leads to the instructions"
    assert browser.run(FOCUSED)[::3] == [cells(first, "")[0], first["text"]], f"{browser.run(FOCUSED)}, not {first}"
    browser.key("ArrowDown")
    browser.key("ArrowUp")
    browser.key("ArrowLeft")
    assert browser.run(FOCUSED) == at, f"{browser.run(FOCUSED)}, not back at {at}"
    browser.key("h")
    rows = lines + [inlined for line in lines for inlined in line.get("inlined", [])]
    warm = sum(row["method_percent"] >= 5 for row in rows)
    assert (browser.run(FOCUSED) != at) == (warm > 1), "h leads to the next hot line"
    # A selection says that it does not change these numbers, and shows the lines that it does change.
    assert browser.run("document.querySelector('.lines')") is None, "one table of lines is enough"
    browser.key("Escape")
    browser.drag("#timeline", 0.3, 0.8)
    open_method(browser, annotation["method"]["name"])
    assert "whole recording" in browser.text("#method-body") and browser.run("Boolean(document.querySelector('.lines'))")
    browser.key("Escape")
    browser.click("#whole")
    browser.type("#query", "")


def check_marks(page, annotation):
    """Places that are known approximately have their mark, where all sampled ones are."""
    annotation = json.loads(json.dumps(annotation))
    for line in (line for file in annotation["files"] for line in file["lines"]):
        for found in [line, *line.get("instructions", [])]:
            if found.get("total"):
                found["approximate"] = 1
    annotations = html_report.code(page)
    number = next(number for number, found in annotations.items() if found["method"]["name"] == annotation["method"]["name"])
    with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
        file.write(html_report.with_code(page, annotations | {number: annotation}))
        file.flush()
        with Browser(1200, 800) as browser:
            browser.open(file.name)
            check_code(browser, annotation)
            assert not browser.errors, browser.errors


def check_events(browser, page, header):
    """Each event's samples are those that the decoder finds, and back."""
    for number in [*range(1, len(header["events"])), 0]:
        browser.run(f"""(() => {{ const list = document.getElementById('event'); list.value = {number};
            list.dispatchEvent(new Event('change')); }})()""")
        name = header["events"][number]
        browser.wait(f"document.getElementById('subtitle').textContent.startsWith({json.dumps(name)})")
        browser.settle()
        samples = html_report.samples(*html_report.unpacked(page, number))
        assert f"{len(samples):,} samples" in browser.text("#subtitle"), f"{name}: {len(samples)}, {browser.text('#subtitle')}"
        browser.click("#tab-methods")
        own = browser.run("document.querySelector('#methods tr').cells[1].textContent")
        leaves = {}
        for _, _, frames, period in samples:
            if frames:
                weight = leaves.setdefault(frames[-1][0], [0, 0])
                weight[0], weight[1] = weight[0] + period, weight[1] + 1
        heaviest = max(leaves.values())
        assert own == f"{heaviest[1]:,}", f"{name}: {own}, not {heaviest}"
        for tab in ("flame", "down", "up", "facts"):
            browser.click(f"#tab-{tab}")


def check_phone(path, annotation):
    """On a phone the code is a pane below the page, and nothing is wider than the screen."""
    with Browser(360, 740) as browser:
        browser.open(path)
        open_method(browser, annotation["method"]["name"])
        left, top, width, height = browser.box("#method")
        assert left == 0 and width == 360 and top > 100 and abs(top + height - 740) < 1, (left, top, width, height)
        assert browser.run("document.documentElement.scrollWidth") <= 360
        assert browser.run("document.getElementById('method').scrollWidth") <= 360
        tops = browser.run("""['source', 'instruction'].map((kind) => {
            const pair = Array.from(document.querySelectorAll('.code .pair')).find((pair) => pair.querySelector('.row.source[tabindex]') && pair.querySelector('.row.instruction[tabindex]'));
            return pair.querySelector(`.row.${kind}`).getBoundingClientRect().top; })""")
        assert tops[0] < tops[1], "instructions are below their line"
        assert not browser.errors, browser.errors


def check_hostile(page, header):
    """Sources, instructions, files and notes are text and nothing else."""
    with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
        file.write(html_report.hostile(page))
        file.flush()
        with Browser(1200, 800) as browser:
            browser.open(file.name)
            before = browser.run("document.scripts.length")
            browser.click("#tab-methods")
            count = browser.run("document.querySelectorAll('#methods .link').length")
            shown = 0
            for number in range(min(count, 12)):
                browser.run(f"document.querySelectorAll('#methods .link')[{number}].click()")
                browser.settle()
                browser.settle()
                shown += "alert(" in (browser.text(".code") or "")
            assert shown, "no hostile code is shown"
            counts = browser.run("[document.scripts.length, document.querySelectorAll('img, iframe, object, embed, link').length]")
            assert counts == [before, 0], f"scripts and foreign elements: {counts}"
            assert not browser.errors, browser.errors


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    path, *annotations = sys.argv[1:]
    page = Path(path).read_text()
    annotations = [json.loads(Path(annotation).read_text()) for annotation in annotations]
    header, _ = html_report.unpacked(page)
    assert len(header["events"]) > 1, header["events"]
    with Browser(1440, 900, dark=True) as browser:
        seconds = browser.open(path)
        instructions = {found["method"]["name"]: check_code(browser, found) for found in annotations}
        check_keys(browser, annotations[0])
        check_events(browser, page, header)
        assert not browser.errors, browser.errors
        fetched = [url for url in browser.requests if not url.startswith("file:")]
        assert not fetched, fetched
    check_marks(page, annotations[1])
    check_phone(path, annotations[0])
    check_hostile(page, header)
    print(json.dumps({"seconds": round(seconds, 2), "instructions": instructions, "events": header["events"]}))


if __name__ == "__main__":
    main()
