"""Could such counts come from such shares? Chi-square with the variance that blocks of samples really have."""

import math
import random


def invert(matrix):
    """The inverse, by Gauss and Jordan."""
    n = len(matrix)
    rows = [list(row) + [float(i == j) for j in range(n)] for i, row in enumerate(matrix)]
    for column in range(n):
        pivot = max(range(column, n), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for row in range(n):
            if row != column:
                factor = rows[row][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column])]
    return [row[n:] for row in rows]


def chi_square_tail(x, freedom):
    """The probability of a value of at least x: the regularized incomplete gamma function Q(freedom/2, x/2)."""
    a, x = freedom / 2, x / 2
    if x <= 0:
        return 1.0
    scale = math.exp(-x + a * math.log(x) - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while abs(term) > abs(total) * 1e-15:
            n += 1
            term *= x / n
            total += term
        return 1 - total * scale
    # Lentz's continued fraction.
    b = x + 1 - a
    c, d = 1e300, 1 / b
    h = d
    for i in range(1, 500):
        an = -i * (i - a)
        b += 2
        d = 1 / (an * d + b)
        c = b + an / c
        h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return h * scale


def covariance(runs, categories, block, replicates, seed):
    """Of the categories' shares: blocks of successive samples are drawn again, with replacement."""
    blocks = []
    for run in runs:
        for start in range(0, len(run) - block + 1, block):
            part = run[start : start + block]
            blocks.append([part.count(category) for category in categories])
    if len(blocks) < 10 * len(categories):
        raise SystemExit(f"{len(blocks)} blocks of {block} samples are too few")
    draw = random.Random(seed)
    shares = []
    for _ in range(replicates):
        drawn = draw.choices(blocks, k=len(blocks))
        total = len(drawn) * block
        shares.append([sum(column) / total for column in zip(*drawn)])
    means = [sum(column) / replicates for column in zip(*shares)]
    size = range(len(categories))
    return [
        [sum((row[i] - means[i]) * (row[j] - means[j]) for row in shares) / (replicates - 1) for j in size] for i in size
    ]


def fit(runs, shares, block=100, replicates=1000, seed=1):
    """(chi-square, p) of runs, lists of categories in order of time, against the categories' known shares."""
    # The last share is what the others leave.
    categories = sorted(shares)[:-1]
    samples = sum(map(len, runs))
    differences = [sum(run.count(each) for run in runs) / samples - shares[each] for each in categories]
    inverse = invert(covariance(runs, categories, block, replicates, seed))
    size = range(len(categories))
    chi_square = sum(differences[i] * inverse[i][j] * differences[j] for i in size for j in size)
    return chi_square, chi_square_tail(chi_square, len(categories))
