#!/usr/bin/env python3
"""Where does a program's time go in two recordings of it? Prints the rows of two reports of varid as one table.

usage: side_by_side.py TITLE REPORT TITLE REPORT ROWS

REPORT is of varid report --by symbol --format json. The table has the layers, then the ROWS symbols that have the largest share in either
report. Shares are of the samples whose leaf the symbol was.
"""

import json
import sys


def main():
    """Reads, prints."""
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    titles, paths, rows = sys.argv[1:5:2], sys.argv[2:5:2], int(sys.argv[5])
    reports = []
    for path in paths:
        with open(path) as file:
            reports.append(json.load(file))
    layers = [{(row["layer"], ""): cells(row) for row in report["layers"]} for report in reports]
    symbols = [{(row["layer"], row["symbol"]): cells(row) for row in report["rows"]} for report in reports]
    print(f"{titles[0]:<18}{titles[1]}")
    for table, limit, name in ((layers, None, ""), (symbols, rows, "method or function")):
        print(f"{'samples  %':<18}{'samples  %':<18}{'layer':<11}{name}".rstrip())
        for key in sorted({*table[0], *table[1]}, key=lambda key: (-max(share(each, key) for each in table), key))[:limit]:
            layer, symbol = key
            shown = "".join(f"{cell(each, key):<18}" for each in table)
            print(f"{shown}{layer:<11}{symbol if len(symbol) <= 60 else symbol[:57] + '...'}".rstrip())
        print()


def cells(row):
    """Samples and share of a row."""
    return row["self"], row["self_percent"]


def share(table, key):
    """The share of a row, which the table need not have."""
    return table.get(key, (0, 0))[1]


def cell(table, key):
    """The samples and the share of a row as they are printed."""
    samples, percent = table.get(key, (0, 0))
    return f"{samples:<9}{percent:.2f}" if samples else "-"


if __name__ == "__main__":
    main()
