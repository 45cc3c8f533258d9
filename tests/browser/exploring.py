"""Does a page select, leave out, find and link what a reader of its own finds in it? Parts of report.py."""

import re

from chromium import Browser

COUNT = "document.getElementById('subtitle').textContent"
ROWS = "Array.from(document.querySelectorAll('#methods tr'), (row) => Array.from(row.cells, (cell) => cell.textContent))"
SECOND = 10**9
CELL = SECOND // 50


def count(browser):
    """Samples that are selected."""
    return int(re.search(r"([\d,]+) samples", browser.run(COUNT))[1].replace(",", ""))


def open_method(browser, name):
    """Opens a method from the table."""
    browser.click("#tab-methods")
    browser.type("#query", f"/^{re.escape(name)}$/")
    browser.click("#methods .link")
    assert browser.text("#method-name") == name, browser.text("#method-name")


def of_table(browser, name):
    """Own and total samples of a method in the table; none: it is not there."""
    browser.type("#query", f"/^{re.escape(name)}$/")
    rows = browser.run(ROWS)
    number = lambda text: int(text.replace(",", ""))
    return (number(rows[0][1]), number(rows[0][3])) if rows else None


def button(browser, kind):
    """One of the buttons of the method that is open."""
    browser.run(f"Array.from(document.querySelectorAll('#method-frames button')).find((one) => one.textContent === '{kind}').click()")
    browser.settle()


def finding(browser, header):
    """The sentence is above all views; its line opens the method at its hottest line."""
    said = header["finding"]
    assert browser.run("document.getElementById('finding').hidden") is (said is None), said
    if said is None:
        return
    assert browser.text("#finding-text") == said["text"], browser.text("#finding-text")
    if browser.run("document.getElementById('finding-line').hidden"):
        return
    browser.click("#finding-line")
    browser.settle()
    assert said["text"].find(browser.text("#method-name")) > 0, browser.text("#method-name")
    browser.click("#method-close")


def hits(browser, name):
    """Next and previous hit go around among the frames that match."""
    browser.click("#tab-flame")
    browser.type("#query", f"/^{re.escape(name)}$/")
    browser.click("#next")
    first = browser.text("#hit")
    assert re.fullmatch(r"1 of [\d,]+", first), first
    assert browser.text("#flame-details").startswith(f"{name}: "), browser.text("#flame-details")
    browser.click("#previous")
    last = browser.text("#hit")
    assert last == f"{first[5:]} of {first[5:]}", f"{first}, then {last}"
    browser.run("document.getElementById('query').focus()")
    browser.key("Enter")
    assert browser.text("#hit") == first, "Enter is the next hit"
    browser.key("Enter", shift=True)
    assert browser.text("#hit") == last, "Shift and Enter the previous one"
    for tab in ("down", "up", "methods"):
        browser.click(f"#tab-{tab}")
        browser.click("#next")
        marked = browser.run(f"document.querySelector('#{tab} .hit .symbol, #{tab} .hit .link')?.textContent")
        assert marked == name, f"{tab}: {marked}"
    browser.type("#query", "")


def frames(browser, samples, name):
    """Focus, collapse and hide of a method leave the samples and weights that its stacks have then."""
    stacks = [[frame for frame, _ in frames] for _, _, frames, _ in samples]
    inside = [stack for stack in stacks if name in stack]
    leaves = sum(stack[-1] == name for stack in inside)
    before = count(browser)
    open_method(browser, name)
    button(browser, "focus")
    assert count(browser) == len(inside), f"focus: {count(browser)}, not {len(inside)}"
    assert of_table(browser, name) == (leaves, len(inside)), "a focus leaves what it calls"
    outside = {frame for stack in stacks for frame in stack} - {frame for stack in inside for frame in stack[stack.index(name):]}
    for other in sorted(outside)[:1]:
        assert of_table(browser, other) is None, f"{other} is not below {name}"
    button(browser, "collapse")
    assert of_table(browser, name) == (len(inside), len(inside)), "collapsed, all is its own"
    assert browser.run("document.querySelectorAll('#transforms .chip').length") == 2
    browser.click("#transforms .chip")
    browser.click("#transforms .chip")
    assert count(browser) == before, "undone"
    button(browser, "hide")
    assert count(browser) == before and of_table(browser, name) is None, "hidden, its samples are its callers'"
    browser.click("#transforms .chip")
    browser.type("#query", "")
    browser.click("#method-close")


def chart(browser, samples):
    """The stack chart has the heaviest thread's frames; a drag selects a time."""
    browser.click("#tab-chart")
    browser.run("document.getElementById('chart').focus()")
    browser.key("ArrowDown")
    shown = browser.text("#chart-details")
    roots = {frames[0][0] for _, _, frames, _ in samples if frames}
    assert any(shown.startswith(f"{root}: ") for root in roots), shown
    browser.drag("#chart", 0.25, 0.75)
    part = count(browser)
    end = max(samples[-1][0], browser.duration)
    inside = sum(0.25 <= sample[0] / end < 0.75 for sample in samples)
    assert abs(part - inside) <= max(10, len(samples) / 50), f"{part} samples in half of the time, not about {inside}"
    browser.run("document.getElementById('chart').focus()")
    browser.key("Escape")
    assert count(browser) == len(samples), "Escape selects all again"


def heat(browser, samples):
    """A cell of the heat map has the samples of its 20 ms."""
    browser.click("#tab-heat")
    cells = [sample[0] // CELL for sample in samples]
    most = max(set(cells), key=cells.count)
    second, row = divmod(most, 50)
    step = browser.run("(document.getElementById('heat').clientWidth - 58) / %d" % (max(samples[-1][0], browser.duration) // SECOND + 1))
    browser.click("#heat", pixels=(58 + (second + 0.5) * step, (49 - row + 0.5) * 7))
    assert count(browser) == cells.count(most), f"{count(browser)} samples in a cell, not {cells.count(most)}"
    browser.run("document.getElementById('heat').focus()")
    browser.key("Escape")
    assert count(browser) == len(samples), "Escape selects all again"


def groups(browser, header):
    """Threads whose names differ by numbers only are one row, if there are some."""
    names = {re.sub(r"\d+", "#", thread[2]) for thread in header["threads"]}
    hidden = browser.run("document.getElementById('grouped').hidden")
    assert hidden is (len(names) == len(header["threads"])), "threads can be grouped where there are groups"
    if hidden:
        return
    browser.click("#grouped")
    options = browser.run("document.getElementById('thread').options.length")
    assert options == len(names) + 1, f"{options}, not {names}"
    browser.click("#grouped")


def link(browser, page, name):
    """The page's address, opened elsewhere, shows the same."""
    browser.drag("#timeline", 0.2, 0.8)
    open_method(browser, name)
    button(browser, "focus")
    browser.click("#method-close")
    browser.type("#query", name)
    browser.click("#tab-flame")
    browser.run("document.getElementById('flame').focus()")
    browser.key("ArrowDown")
    browser.key("ArrowDown")
    browser.key("ArrowDown")
    browser.key("Enter")
    seen = lambda one: [one.text(at) for at in ("#subtitle", "#span", "#matches", "#transforms")] + [one.run("document.getElementById('reset').disabled")]
    expected = seen(browser)
    # A change is in the address after a moment.
    browser.wait("['from=', 'frames=focus', 'search=', 'zoom='].every((part) => location.hash.includes(part))")
    address = browser.run("location.hash")
    with Browser(1440, 900) as other:
        other.open(f"{page}{address}")
        assert seen(other) == expected, f"{address}: {seen(other)}, not {expected}"
        assert not other.errors, other.errors
    with Browser(1440, 900) as other:
        other.open(f"{page}#zoom=9.9.9&frames=hide.123456&method=99999&event=7&from=9&to=1&thread=1&tab=__proto__&layers=999")
        assert not other.errors, other.errors
    return address
