#!/usr/bin/env python3
"""Which probabilities does scipy compute? Prints the values that the unit tests of report/src/diff/statistics.rs compare with.

usage: statistics_values.py

Needs scipy; the values are of scipy 1.17.1.
"""

from scipy import stats

PROPORTIONS = [
    ((0, 10), (0, 10)), ((4, 15), (0, 3)), ((0, 3), (4, 15)), ((1, 10), (9, 10)), ((3, 7), (2, 9)), ((0, 1000), (12, 900)), ((120, 1000), (180, 1000)), ((500, 1000), (510, 1003)),
    ((240, 1932), (45, 792)), ((568, 6679), (144, 792)), ((10000, 100000), (10400, 100000)), ((5, 1000000), (60, 1200000)), ((3000, 10000), (1000, 10000)),
]
RATES = [
    ((0, 1.0), (0, 1.0)), ((3, 1.0), (12, 1.0)), ((100, 1.0), (150, 1.0)), ((100, 2.0), (150, 3.0)), ((1000, 1.0), (1200, 1.0)), ((7, 0.25), (100, 4.5)),
    ((20000, 1.0), (21000, 1.0)), ((1000000, 1.0), (1010000, 1.0)), ((500, 3.0), (2000, 3.0)),
]
MEANS = [
    ([12.1, 12.4, 12.2], [14.0, 14.3, 13.8]), ([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 2.5, 3.5]), ([10.0, 10.1], [10.2, 10.05]),
    ([20.01, 20.02, 19.99, 20.0, 20.03], [30.0, 30.05, 29.96, 30.02, 30.01]), ([5.0], [5.5, 5.6, 5.4]), ([7.0, 7.2], [9.0]),
]
DISCOVERY = [[0.01, 0.04, 0.03, 0.5], [0.9, 0.8, 0.7], [1e-12, 0.05, 0.051, 0.0001, 1.0, 0.04], [0.2]]


def main():
    """Prints each call with its value."""
    for one, other in PROPORTIONS:
        (x, n), (y, m) = one, other
        print(f"(({x}, {n}), ({y}, {m}), {float(stats.fisher_exact([[x, n - x], [y, m - y]]).pvalue)!r}),")
    for (x, exposure), (y, other) in RATES:
        p = stats.binomtest(x, x + y, exposure / (exposure + other)).pvalue if x + y else 1.0
        print(f"(({x}, {exposure}), ({y}, {other}), {float(p)!r}),")
    for one, other in MEANS:
        p = stats.ttest_ind(one, other, equal_var=min(len(one), len(other)) == 1).pvalue
        print(f"(&{one}, &{other}, {float(p)!r}),")
    for values in DISCOVERY:
        print(f"(&{values}, &{[float(value) for value in stats.false_discovery_control(values)]}),")


if __name__ == "__main__":
    main()
