#!/usr/bin/env python3
"""Does a page of exact measures show what was counted, and nothing that needs times? Looks at it in Chromium.

usage: measures.py PAGE REPORT

PAGE is a report of calls and returns, REPORT what varid report --by symbol --measure calls,returns --format json says of the same session.
Prints what was seen as JSON; exit status 1 with what is wrong.
"""

import json
import os
import sys
from pathlib import Path

from chromium import Browser

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import html_report  # noqa: E402

ROWS = (
    "Array.from(document.querySelectorAll('#methods tr'), (row) => Array.from(row.cells,"
    " (cell) => cell.querySelector('button[title]')?.title ?? cell.textContent))"
)
HEADS = "Array.from(document.querySelectorAll('[data-sort]'), (head) => head.textContent)"
SEEN = "(id) => document.getElementById(id).getClientRects().length > 0"


def shown(browser, name):
    """Whether an element has a place on the page."""
    return browser.run(f"({SEEN})({json.dumps(name)})")


def choose(browser, number):
    browser.run(f"(() => {{ const list = document.getElementById('event'); list.value = {number};"
                " list.dispatchEvent(new Event('change')); })()")
    browser.wait("!document.getElementById('report').hasAttribute('aria-busy')")
    browser.settle()


def check_methods(browser, report, measure):
    """The table has the ten methods with the largest own values, as the report has them, under the measure's name."""
    browser.click("#tab-methods")
    heads = browser.run(HEADS)
    assert heads[1] == f"Self {measure}" and heads[3] == f"Total {measure}", heads
    count = lambda text: int(text.replace(",", ""))
    seen = sorted(((count(row[1]), count(row[3]), row[4]) for row in browser.run(ROWS)), reverse=True)[:10]
    values = [(row["measures"][measure.split()[0]], row["symbol"]) for row in report["rows"]]
    expected = sorted((found["self"] for found, _ in values if found["self"]), reverse=True)[:10]
    assert [own for own, _, _ in seen][: len(expected)] == expected, f"{seen}, not {expected}"
    known = {(found["self"], found["total"], symbol) for found, symbol in values}
    assert set(seen) <= known, f"{set(seen) - known} are not in the report"
    return len(seen)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    page, report = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    header, _ = html_report.unpacked(Path(page).read_text())
    assert header["events"] == ["calls", "returns"] and not header["timed"], header
    with Browser(1440, 900) as browser:
        browser.open(page)
        # A link to a view of times opens another one.
        browser.run("location.hash = 'tab=chart'")
        browser.settle()
        assert shown(browser, "flame") and not shown(browser, "chart"), "a view of times is open"
        for name in ("timeline", "tab-chart", "tab-heat", "span"):
            assert not shown(browser, name), f"{name} is shown"
        for name in ("tab-methods", "thread", "event", "legend"):
            assert shown(browser, name), f"{name} is not shown"
        assert browser.text("#event-kind") == "Measure", browser.text("#event-kind")
        total = next(found["sum"] for found in report["measures"] if found["name"] == "calls")
        assert browser.text("#subtitle").startswith(f"calls · {total:,} calls"), browser.text("#subtitle")
        calls = check_methods(browser, report, "calls")
        browser.run("document.querySelector('#methods .link').click()")
        browser.settle()
        assert "samples" not in browser.text("#method-body dl"), browser.text("#method-body dl")
        browser.click("#method-close")
        choose(browser, 1)
        assert browser.text("#subtitle").startswith("returns · "), browser.text("#subtitle")
        returns = check_methods(browser, report, "returns (calls)")
        assert not browser.errors, browser.errors
    print(json.dumps({"calls": calls, "returns": returns, "total": total}))


if __name__ == "__main__":
    main()
