"""Tables and numbers in Markdown."""


def table(titles, rows, texts=1):
    """Lines of a table. The first so many columns are text, the others numbers."""
    lines = ["| " + " | ".join(map(str, titles)) + " |", "|---" * texts + "|---:" * (len(titles) - texts) + "|"]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows] + [""]


def signed(part, digits=2):
    """A part of 1 as percent, with its sign."""
    return f"{100 * part:+.{digits}f}"
