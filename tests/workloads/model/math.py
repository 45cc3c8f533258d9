"""What must org.example.math return? The five kernels and Linpack, operation by operation in the same order."""

from functools import cache
from math import pi, sin

from .arithmetic import bits, int64, mix, mix_bits, remainder, repeated

SEED = 101010


def random_doubles(seed):
    """The generator's numbers, without end."""
    jseed = abs(seed) - (seed % 2 == 0)
    j0, j1, m = jseed % 65536, jseed // 65536, []
    for _ in range(17):
        jseed = j0 * 9069
        j1 = (jseed // 65536 + j1 * 9069) % 32768
        j0 = jseed % 65536
        m.append(j0 + 65536 * j1)
    i, j = 4, 16
    scale = 1.0 / 0x7FFFFFFF
    while True:
        k = m[i] - m[j]
        m[j] = k + 0x7FFFFFFF if k < 0 else k
        yield scale * m[j]
        i, j = (i - 1) % 17, (j - 1) % 17


def take(numbers, count):
    """The next numbers as a list."""
    return [next(numbers) for _ in range(count)]


def matrix(size):
    """A square matrix of random numbers by rows."""
    numbers = random_doubles(SEED)
    return [take(numbers, size) for _ in range(size)]


def transform(data, direction):
    """The FFT of interleaved complex numbers, in place."""
    n = len(data) // 2
    width = n.bit_length() - 1
    for i in range(n):
        j = int(f"{i:0{width}b}"[::-1], 2)
        if i < j:
            data[2 * i : 2 * i + 2], data[2 * j : 2 * j + 2] = data[2 * j : 2 * j + 2], data[2 * i : 2 * i + 2]
    dual = 1
    while dual < n:
        theta = 2.0 * direction * pi / (2.0 * dual)
        s, t = sin(theta), sin(theta / 2.0)
        s2 = 2.0 * t * t
        real, imag = 1.0, 0.0
        for a in range(dual):
            if a:
                real, imag = real - s * imag - s2 * real, imag + s * real - s2 * imag
            for b in range(0, n, 2 * dual):
                i, j = 2 * (b + a), 2 * (b + a + dual)
                if a:
                    wd_real = real * data[j] - imag * data[j + 1]
                    wd_imag = real * data[j + 1] + imag * data[j]
                else:
                    wd_real, wd_imag = data[j], data[j + 1]
                data[j], data[j + 1] = data[i] - wd_real, data[i + 1] - wd_imag
                data[i], data[i + 1] = data[i] + wd_real, data[i + 1] + wd_imag
        dual *= 2


@cache
def fft_round():
    data, total = take(random_doubles(SEED), 2048), 0
    for pair in range(6):
        transform(data, -1)
        total = mix(total, int(data[pair * 10 + 2] * 1.0e6))
        transform(data, 1)
        norm = 1.0 / 1024
        data = [each * norm for each in data]
    for each in data:
        total = mix(total, int(each * 1.0e6))
    return total


@cache
def sor_round():
    grid = matrix(100)
    for _ in range(12):
        for i in range(1, 99):
            row, above, below = grid[i], grid[i - 1], grid[i + 1]
            for j in range(1, 99):
                row[j] = 1.25 * 0.25 * (above[j] + below[j] + row[j - 1] + row[j + 1]) + (1.0 - 1.25) * row[j]
    return mix_bits(grid)


@cache
def monte_carlo_round():
    numbers, under = random_doubles(113), 0
    for _ in range(20000):
        x, y = next(numbers), next(numbers)
        under += x * x + y * y <= 1.0
    return bits(float(under) / 20000 * 4.0)


@cache
def sparse_round():
    n, per_row = 1000, 5
    numbers = random_doubles(SEED)
    x, values = take(numbers, n), take(numbers, n * per_row)
    y = []
    for r in range(n):
        step, total = max(r // per_row, 1), 0.0
        for i in range(per_row):
            total += x[i * step] * values[r * per_row + i]
        y.append(total)
    return mix_bits(y)


def lu_factor(a):
    """Factors the matrix in place; returns the pivots."""
    n, pivot = len(a), []
    for j in range(n):
        jp = max(range(j, n), key=lambda i: (abs(a[i][j]), -i))
        pivot.append(jp)
        a[j], a[jp] = a[jp], a[j]
        reciprocal = 1.0 / a[j][j]
        for k in range(j + 1, n):
            a[k][j] *= reciprocal
        for row in a[j + 1 :]:
            factor = row[j]
            for k in range(j + 1, n):
                row[k] -= factor * a[j][k]
    return pivot


def lu_solve(a, pivot, b):
    """Solves for b in place."""
    n = len(a)
    for i in range(n):
        total, b[pivot[i]] = b[pivot[i]], b[i]
        for j in range(i):
            total -= a[i][j] * b[j]
        b[i] = total
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            b[i] -= a[i][j] * b[j]
        b[i] /= a[i][i]


@cache
def lu_round():
    a, b = matrix(100), take(random_doubles(SEED + 1), 100)
    lu_solve(a, lu_factor(a), b)
    return mix(mix_bits(a), mix_bits(b))


def linpack_matrix(n):
    """The columns of Linpack's matrix, the sums of its rows, and its largest element."""
    state, columns = 1325, [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            state = remainder(3125 * state, 65536)
            columns[j][i] = (state - 32768.0) / 16384.0
    sums = [0.0] * n
    for column in columns:
        sums = [total + each for total, each in zip(sums, column)]
    return columns, sums, max(0.0, *(max(column) for column in columns))


def dgefa(a):
    """Gaussian elimination of columns; returns the pivots."""
    n, pivots = len(a), []
    for k in range(n - 1):
        column = a[k]
        pivot = max(range(k, n), key=lambda i: (abs(column[i]), -i))
        pivots.append(pivot)
        column[pivot], column[k] = column[k], column[pivot]
        factor = -1.0 / column[k]
        for i in range(k + 1, n):
            column[i] *= factor
        for other in a[k + 1 :]:
            other[pivot], other[k] = other[k], other[pivot]
            factor = other[k]
            for i in range(k + 1, n):
                other[i] += factor * column[i]
    return pivots + [n - 1]


def dgesl(a, pivots, b):
    """Solves a * x = b in place."""
    n = len(a)
    for k in range(n - 1):
        b[pivots[k]], b[k] = b[k], b[pivots[k]]
        for i in range(k + 1, n):
            b[i] += b[k] * a[k][i]
    for k in reversed(range(n)):
        b[k] /= a[k][k]
        for i in range(k):
            b[i] += -b[k] * a[k][i]


def dgesl_transposed(a, pivots, b):
    """Solves trans(a) * x = b in place."""
    n = len(a)
    for k in range(n):
        total = 0.0
        for i in range(k):
            total += a[k][i] * b[i]
        b[k] = (b[k] - total) / a[k][k]
    for k in reversed(range(n - 1)):
        total = 0.0
        for i in range(k + 1, n):
            total += a[k][i] * b[i]
        b[k] += total
        b[pivots[k]], b[k] = b[k], b[pivots[k]]


@cache
def linpack_round():
    a, b, _ = linpack_matrix(100)
    pivots = dgefa(a)
    dgesl(a, pivots, b)
    total = mix_bits(b)
    dgesl_transposed(a, pivots, b)
    total = mix(total, mix_bits(b))
    columns, sums, norm = linpack_matrix(100)
    residual = [-each for each in sums]
    for column, factor in zip(columns, b):
        residual = [y + factor * each for y, each in zip(residual, column)]
    total = mix(total, mix_bits(residual))
    third = 4.0 / 3.0 - 1.0
    return mix(total, bits(norm * abs(third + third + third - 1.0)))


ROUNDS = {
    "fft": fft_round,
    "sor": sor_round,
    "monteCarlo": monte_carlo_round,
    "sparse": sparse_round,
    "lu": lu_round,
    "linpack": linpack_round,
}


def run(rounds):
    """All kernels, round by round."""
    total = 0
    for _ in range(rounds):
        for kernel in ROUNDS.values():
            total = int64(total * 31 + repeated(kernel(), 1))
    return total


METHODS = {name: (lambda n, kernel=kernel: repeated(kernel(), n)) for name, kernel in ROUNDS.items()}
METHODS["run"] = run
