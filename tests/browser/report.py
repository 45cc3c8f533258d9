#!/usr/bin/env python3
"""Does an HTML report do in a browser what it says? Clicks through it in Chromium.

usage: report.py PAGE HOSTILE REPORT

PAGE is a report, HOSTILE the same with names that would break out of a page (tests/oracle/html_report.py --hostile), REPORT what
varid report --by symbol --format json says of the same session. Prints what was seen as JSON; exit status 1 with what is wrong.
"""

import json
import os
import re
import sys
import tempfile
from pathlib import Path

import exploring
from chromium import Browser

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import html_report  # noqa: E402

# A name that is shown in a shorter form has the whole one as its title.
ROWS = (
    "Array.from(document.querySelectorAll('#methods tr'), (row) => Array.from(row.cells,"
    " (cell) => cell.querySelector('button[title]')?.title ?? cell.textContent))"
)


def share(text):
    """The percentage in a text."""
    return float(re.search(r"([\d.]+) %", text)[1])


def zoom_and_search(browser, hottest):
    """The flame graph by keys: zoom, back, search, invert. `hottest`: the name of the method with the largest own share."""
    browser.run("document.getElementById('flame').focus()")
    browser.key("ArrowDown")
    browser.key("ArrowDown")
    whole = browser.text("#flame-details")
    browser.key("Enter")
    assert browser.run("document.getElementById('reset').disabled") is False, "a zoom can be reset"
    zoomed = browser.text("#flame-details")
    assert whole == zoomed and 0 < share(whole) <= 100, f"a zoom changes no share: {whole}, {zoomed}"
    browser.key("Escape")
    assert browser.run("document.getElementById('reset').disabled") is True, "Escape resets the zoom"
    # The second row is that of the widest outermost frame.
    browser.click("#flame", pixels=(browser.box("#flame")[2] / 2, 19 * 1.5))
    assert browser.run("document.getElementById('reset').disabled") is False, "a click zooms"
    browser.click("#reset")
    browser.type("#query", f"/^{re.escape(hottest['symbol'])}$/")
    found = browser.text("#matches")
    assert abs(share(found) - hottest["total_percent"]) < 0.011, f"{found}: {hottest}"
    browser.type("#query", "no such method")
    assert browser.text("#matches") == "0 methods, 0.00 %", browser.text("#matches")
    browser.type("#query", "/./")
    assert share(browser.text("#matches")) == 100, f"all samples have a name: {browser.text('#matches')}"
    browser.type("#query", "")
    browser.click("#invert")
    assert browser.run("document.getElementById('invert').getAttribute('aria-pressed')") == "true"
    browser.run("document.getElementById('flame').focus()")
    browser.key("ArrowDown")
    browser.key("ArrowDown")
    leaf = browser.text("#flame-details")
    assert leaf.startswith(hottest["symbol"]) and abs(share(leaf) - hottest["self_percent"]) < 0.011, f"inverted: {leaf}, not {hottest}"
    browser.key("Enter")
    browser.key("ArrowDown")
    caller = browser.text("#flame-details")
    browser.key("Enter")
    assert share(caller) <= share(leaf) and browser.text("#flame-details") == caller, f"{caller}: {browser.text('#flame-details')}"
    browser.key("Escape")
    assert browser.run("document.getElementById('reset').disabled") is True, "Escape resets the inverted graph, too"
    browser.click("#invert")


def top_ten(browser, report):
    """The table's ten methods with the largest own share are those of the report."""
    browser.click("#tab-methods")
    rows = browser.run(ROWS)
    count = lambda text: int(text.replace(",", ""))
    seen = sorted(((count(row[1]), count(row[3]), row[4]) for row in rows), reverse=True)[:10]
    weights = {}
    for row in report["rows"]:
        weights.setdefault(row["symbol"], []).append((row["self"], row["total"]))
    expected = sorted((row["self"] for row in report["rows"]), reverse=True)[:10]
    assert [own for own, _, _ in seen] == expected, f"{seen}, not {expected}"
    for own, total, name in seen:
        assert (own, total) in weights.get(name, []), f"{name}: {own} of {total}, not {weights.get(name)}"
    browser.click("[data-sort=name]")
    names = [row[4] for row in browser.run(ROWS)]
    assert names == sorted(names, key=lambda name: name.encode("utf-16-be")), "sorted by name"
    browser.click("[data-sort=own]")
    return seen


def threads_and_time(browser, samples):
    """A thread and a time select the samples that the decoder finds there."""
    count = lambda: int(re.search(r"([\d,]+) samples", browser.text("#subtitle"))[1].replace(",", ""))
    assert count() == len(samples), "all samples at first"
    browser.run("(() => { const list = document.getElementById('thread'); list.value = 0; list.dispatchEvent(new Event('change')); })()")
    browser.settle()
    first = samples_first_thread(samples)
    of_first = [sample for sample in samples if sample[1] == first]
    assert count() == len(of_first), f"{count()} of the heaviest thread, not {len(of_first)}"
    browser.run("(() => { const list = document.getElementById('thread'); list.value = -1; list.dispatchEvent(new Event('change')); })()")
    browser.settle()
    before = browser.run(ROWS)
    browser.drag("#timeline", 0.25, 0.5)
    text = browser.text("#span")
    between = [count(), text]
    part = count()
    # A pixel of a drag is a time; which samples are in it is known to within a few pixels.
    end = max(samples[-1][0], browser.duration)
    inside = sum(0.25 <= sample[0] / end < 0.5 for sample in samples)
    assert abs(part - inside) <= max(10, len(samples) / 50), f"{part} samples in a quarter of the time, not about {inside}"
    assert browser.run(ROWS) != before, "the table is that of the selected time"
    shares = [float(row[0]) for row in browser.run(ROWS)]
    assert 50 < sum(shares) < 100.5, f"shares are of the selected time: {sum(shares)}"
    browser.click("#whole")
    assert count() == len(samples), "all samples again"
    return between


def samples_first_thread(samples):
    weights = {}
    for _, thread, _, period in samples:
        weights[tuple(thread)] = weights.get(tuple(thread), 0) + period
    return list(max(weights, key=weights.get))


def layers(browser, report):
    """The breakdown is the report's, and a layer alone has its samples only."""
    label = browser.run("document.getElementById('breakdown').getAttribute('aria-label')")
    for layer in report["layers"]:
        seen = float(re.search(rf"{layer['layer']} ([\d.]+) %", label)[1])
        assert abs(seen - layer["self_percent"]) < 0.011, f"{layer}: {label}"
    browser.click(".key.native")
    native = next(layer["self"] for layer in report["layers"] if layer["layer"] == "native")
    assert f"{native:,} samples" in browser.text("#subtitle"), f"{native}: {browser.text('#subtitle')}"
    browser.click(".key.native")
    return label


def trees(browser):
    """Rows open by key; the shares of what is below one are not larger than its own."""
    for tab, tree in (("#tab-down", "#down"), ("#tab-up", "#up")):
        browser.click(tab)
        count = f"document.querySelectorAll('{tree} [role=treeitem]').length"
        before = browser.run(count)
        assert before > 1, f"{tree} has rows"
        browser.run(f"document.querySelector('{tree} [aria-expanded=false]').focus()")
        browser.key("ArrowRight")
        assert browser.run(count) > before, f"a row of {tree} opens"
        browser.key("ArrowLeft")
        assert browser.run(count) == before, f"and closes"


def method(browser, samples):
    """A method of the app shows its lines; their own samples are those of the decoder."""
    lines = {}
    for _, _, frames, period in samples:
        if frames and frames[-1][1]:
            name, line = frames[-1]
            lines.setdefault(name, {}).setdefault(line, []).append(period)
    assert lines, "no line is known of any method"
    name = max(lines, key=lambda name: sum(len(periods) for periods in lines[name].values()))
    browser.click("#tab-methods")
    browser.type("#query", name)
    pick = f"Array.from(document.querySelectorAll('#methods .link')).find((link) => link.textContent === {json.dumps(name)})"
    browser.run(f"{pick}.click()")
    browser.settle()
    assert browser.text("#method-name") == name
    assert browser.run("document.activeElement.id") == "method-name", "the method has the focus"
    table = "Array.from(document.querySelectorAll('.lines tbody tr:not(.gap)'), (row) => Array.from(row.cells, (cell) => cell.textContent))"
    seen = {row[0]: float(row[1]) for row in browser.run(table) if len(row) == 3 and row[1]}
    whole = sum(sample[3] for sample in samples)
    for place, periods in lines[name].items():
        mark = "~" if place.startswith("~") else ""
        number = mark + place.rsplit(":", 1)[1]
        expected = 100 * sum(periods) / whole
        assert expected < 0.005 or abs(seen[number] - expected) < 0.011, f"{name} {place}: {seen}, not {expected}"
    browser.key("Escape")
    assert browser.run("document.getElementById('method').hidden") is True, "Escape closes the method"
    browser.type("#query", "")
    return {name: seen}


def phone(page):
    """Nothing is wider than a phone of 360 pixels, in any view."""
    with Browser(360, 740) as browser:
        browser.open(page)
        for tab in ("flame", "chart", "heat", "methods", "down", "up", "facts"):
            browser.click(f"#tab-{tab}")
            width = browser.run("document.documentElement.scrollWidth")
            assert width <= 360, f"{tab} is {width} pixels wide"
        assert not browser.errors, browser.errors


def recursion(page):
    """A method that calls itself counts once for a sample, in its total, its lines and its callers; so does a layer."""
    text = Path(page).read_text()
    header, _ = html_report.unpacked(text)
    header |= {"strings": ["", "a.run", "a.fib", "F.java"], "threads": [[1, 1, "main", "main"]], "losses": [], "finding": None}
    # run > fib > fib > fib at lines 5, 5 and 7; 300 samples in the innermost, 100 in the second.
    columns = {
        "node.depth": [0, 1, 2, 3], "node.symbol": [0, 1, 1, 1],
        "stack.back": [0, 1, 1, 1], "stack.frame": [0, 1, 1, 2], "stack.node": [0, 1, 2, 3],
        **{f"symbol.form{form}": [1, 2] for form in range(1, 5)}, "symbol.name": [1, 2], "symbol.image": [0, 0], "symbol.layer": [0, 0], "symbol.marker": [0, 0],
        "frame.line": [0, 5, 7], "frame.file": [0, 3, 3], "frame.approximate": [0, 0, 0],
        "sample.after": [1000] * 400, "sample.thread": [0] * 400, "sample.stack": [4, 4, 4, 3] * 100, "sample.period": [1000] * 400,
    }
    with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
        file.write(html_report.with_data(text, header, columns))
        file.flush()
        with Browser(1200, 800) as browser:
            browser.open(file.name)
            browser.click("#tab-methods")
            rows = [row[:5] for row in browser.run(ROWS)]
            assert rows == [["100.00", "400", "100.00", "400", "a.fib"], ["0.00", "0", "100.00", "400", "a.run"]], rows
            browser.click("#methods .link")
            table = "Array.from(document.querySelectorAll('.lines tbody tr:not(.gap)'), (row) => Array.from(row.cells, (cell) => cell.textContent))"
            lines = browser.run(table)
            assert lines == [["F.java"], ["5", "25.00", "100.00"], ["7", "75.00", "75.00"]], lines
            callers = browser.run("Array.from(document.querySelectorAll('.calls'), (table) => table.tBodies[0].innerText.split(/\\s+/).join(' '))")
            assert callers == ["100.00 a.run 100.00 a.fib", "100.00 a.fib"], callers
            assert not browser.errors, browser.errors


def hostile(page):
    """Names are text and nothing else, in every view."""
    with Browser(1200, 800) as browser:
        browser.open(page)
        for tab in ("flame", "chart", "heat", "methods", "down", "up", "facts"):
            browser.click(f"#tab-{tab}")
        browser.click("#tab-methods")
        browser.click("#methods .link")
        counts = browser.run("[document.scripts.length, document.querySelectorAll('img, iframe, object, embed, link').length]")
        assert counts == [1, 0], f"scripts and foreign elements: {counts}"
        assert "alert" in browser.text("#methods"), "names are shown"
        assert not browser.errors, browser.errors
        # What gets in all the same does not run, nor does it fetch.
        browser.run("document.body.insertAdjacentHTML('beforeend', '<img src=\"https://example.invalid/x\" onerror=\"window.broken = 1\">')")
        browser.run("document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.broken = 2' }))")
        browser.settle()
        assert browser.run("window.broken") is None, "the policy stops other scripts"
        assert all("Content Security Policy" in error for error in browser.errors) and browser.errors, browser.errors


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    page, bad, report = sys.argv[1:]
    report = json.loads(Path(report).read_text())
    header, columns = html_report.unpacked(Path(page).read_text())
    samples = html_report.samples(header, columns)
    hottest = max(report["rows"], key=lambda row: row["self"])
    with Browser(1440, 900) as browser:
        seconds = browser.open(page)
        browser.duration = header["duration"]
        label = layers(browser, report)
        zoom_and_search(browser, hottest)
        ten = top_ten(browser, report)
        span = threads_and_time(browser, samples)
        trees(browser)
        lines = method(browser, samples)
        exploring.finding(browser, header)
        exploring.groups(browser, header)
        exploring.hits(browser, hottest["symbol"])
        exploring.frames(browser, samples, hottest["symbol"])
        exploring.chart(browser, samples)
        exploring.heat(browser, samples)
        address = exploring.link(browser, page, hottest["symbol"])
        browser.click("#tab-facts")
        assert f"{len(samples)}," in browser.text("#facts"), browser.text("#facts")
        assert not browser.errors, browser.errors
        fetched = [url for url in browser.requests if not url.startswith("file:")]
        assert not fetched, fetched
    recursion(page)
    phone(page)
    hostile(bad)
    print(json.dumps({"seconds": round(seconds, 2), "layers": label, "ten": ten, "time": span, "lines": lines, "link": address}))


if __name__ == "__main__":
    main()
