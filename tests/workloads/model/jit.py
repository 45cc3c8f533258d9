"""What must org.example.jit return? The generator says what its methods do."""

import importlib.util
from functools import cache
from pathlib import Path

from .arithmetic import int32, mix

MASK = 0xFFFFFFFF
_spec = importlib.util.spec_from_file_location("generate", Path(__file__).parent.parent / "jit/generate.py")
generate = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(generate)


def part(number, x):
    """Part.go on the bits of an int."""
    for method in range(generate.METHODS):
        steps = [(1 + addend % 13, addend) for addend in generate.steps(number, method)]
        for _ in range(generate.times(number, method)):
            for shift, addend in steps:
                x = (x ^ x >> shift) * 69069 + addend & MASK
    return x


def churn(rounds):
    total = 0
    for i in range(rounds):
        x, first = i + 1 & MASK, i * 5 % 61
        for _ in range(generate.WINDOW_TIMES):
            for k in range(4):
                x = part((first + k) % generate.PARTS, x)
        total = mix(total, int32(x))
    return total


def hierarchy(rounds):
    total = 0
    for i in range(rounds):
        number, x = i % generate.HIERARCHIES, i + 1

        def turn(x, calls):
            for n in range(calls):
                x = (x ^ x << 13) * 69069 + number & MASK
                if n == generate.LATE_CALLS // 2:
                    x += 2 * number
            return x

        for _ in range(generate.TURNS):
            x = turn(x, generate.CALLS)
            for _ in range(generate.CALLS):
                x = x * 69069 + 1 & MASK
        x = turn(x, generate.LATE_CALLS)
        for _ in range(generate.LATE_CALLS):
            x = x * 5 + 3 & MASK
        total = mix(total, int32(x))
    return total


def step(x):
    for _ in range(50):
        x = int32(x * 69069 + 1)
    return x


@cache
def summed(end):
    """Of an array of 100."""
    if end > 100:
        return step(end)
    total = 0
    for i in range(end):
        total = int32(total * 31 + i * 7)
    return total


def bounds(rounds):
    total = 0
    for _ in range(rounds):
        for times in range(400):
            total = mix(total, summed(101 if times % 100 == 99 else times % 50 + 50))
    return total


def loop(rounds):
    x = 1
    for _ in range(rounds * 20000):
        x ^= x << 13 & MASK
        x ^= x >> 17
        x ^= x << 5 & MASK
        if x & 1023 == 0:
            x = step(int32(x)) & MASK
    return int32(x)


def run(rounds):
    total = 0
    for _ in range(rounds):
        for method in (churn, hierarchy, bounds, loop):
            total = mix(total, method(1))
    return total


METHODS = {"run": run, "churn": churn, "hierarchy": hierarchy, "bounds": bounds, "loop": loop}
