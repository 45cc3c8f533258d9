"""org.example.corner: what its parts return, however they come to it."""

from functools import cache

from .arithmetic import int32, mix

MASK = 0xFFFFFFFF


@cache
def stir(times):
    """Work.stir."""
    x = times
    for i in range(times):
        x = x * 69069 + i & MASK
        x ^= x >> 7
    return int32(x)


def checksum(values):
    """An int that each value has been mixed into."""
    total = 0
    for value in values:
        total = int32(total * 31 + value)
    return total


def sprinter(size):
    left = 4 + size % 40
    return sum(stir(size + i) + left * (left + 1) // 2 for i in range(20))


def stacker(size):
    # The crates' sizes at the bottom, and of each but that one what is in its middle, if that is where it was put.
    weight = sum(range(1, size + 2))
    loads = sum(left + 1 for left in range(1, size + 1) if left // 2 == (left + 1) // 2)
    return 40 * (weight + loads)


def threads(i):
    return int32(stir(3000) + sprinter(200 + i % 5 * 40) + sprinter(160 + i % 3 * 60) * 3 + stacker(24 + i % 7) * 5)


def failure(code):
    """`code` and `again` of an exception."""
    value = int32(stir(20 + code % 8) + code)
    total = 0
    for i in range(3):
        total = int32(total * 31 + stir(code % 16 + i)) ^ int32(value + i)
    return value, total


def constructors(i):
    def caught(number):
        code, again = failure(number)
        return int32((again + 1, again + code, code - 1)[number % 3])

    return checksum(caught(i + k) for k in range(300))


def nulls(i):
    def caught(number):
        kind = number % 6
        if kind == 1 and number < 2:
            return 2 + number % 11 + descents(2 + number % 11)
        return stir((14, 15)[kind] if kind < 2 else 10 + number % 3)

    return checksum(caught(i + k) for k in range(300))


def descents(left):
    """How many of so many levels are guarded, which add one more."""
    return sum(level % 5 == 4 for level in range(1, left + 1))


def small(x):
    return sum((x + i) * 31 + 7 for i in range(6))


def depth(i):
    def recursion(left):
        bottom = sum(map(small, range(60))) if left % 2 == 0 else small(5)
        levels = range(left, 0, -1)
        return bottom + sum(level * 31 + 7 if at % 2 == 0 else small(level) for at, level in enumerate(levels))

    total = checksum(recursion(60 + (i + k) % 60) for k in range(20)) + 1500 + stir(500 + i % 4)
    return int32(total + (stir(100) if i % 128 == 100 else 0))


def gauge(i):
    """What is added to the argument and to the result of a gauge's read."""
    for start, rest, more in ((10, 1, 1), (20, 2, 2), (30, 3, 3)):
        if i >= start and i % 4 == rest:
            return more
    return 0


def hierarchy(i):
    def twice(more, k):
        return int32(stir(k + more) + 1 + more) ^ int32(stir(k + 1 + more) + 1 + more)

    return checksum(twice(gauge(i if k <= 500 else i + 1), k % 5) for k in range(1000))


PARTS = {"threads": threads, "constructors": constructors, "nulls": nulls, "depth": depth, "hierarchy": hierarchy}


def repeated(parts):
    """The checksum of these parts in turn."""

    def method(rounds):
        total = 0
        for i in range(rounds):
            for part in parts:
                total = mix(total, part(i))
        return total

    return method


METHODS = {name: repeated([part]) for name, part in PARTS.items()} | {"run": repeated(list(PARTS.values()))}
