"""org.example.alike: what its methods with equal code return."""

from .arithmetic import int32, mix


def shifted(x, times, shifts):
    """So many rounds of a generator of random numbers."""
    left, right, again = shifts
    for _ in range(times):
        x = int32(x ^ x << left)
        x = int32(x ^ (x & 0xFFFFFFFF) >> right)
        x = int32(x ^ x << again)
    return x


def chained(rounds, steps, shifts):
    """Each step goes on with what the last one has made."""
    x = 1
    for _ in range(rounds):
        for times in steps:
            x = shifted(x, times, shifts)
    return x


def turned(rounds):
    return chained(rounds, (4500, 3000, 2000), (13, 17, 5))


def moved(rounds):
    return chained(rounds, (1500,) * 6, (7, 9, 8))


def made(rounds):
    return chained(rounds, (2000,) * 3, (13, 17, 5))


def thrown(rounds):
    total = 0
    for _ in range(rounds):
        for which in range(12):
            total = mix(total, 100 * which)
    return total


def rounds_of(parts, rounds):
    """The parts, round by round: each begins anew."""
    parts = [part(1) for part in parts]
    total = 0
    for _ in range(rounds):
        for part in parts:
            total = mix(total, part)
    return total


def quiet(rounds):
    return rounds_of((turned, moved, made), rounds)


def run(rounds):
    return rounds_of((turned, moved, made, thrown), rounds)


METHODS = {"run": run, "quiet": quiet, "turned": turned, "moved": moved, "made": made, "thrown": thrown}
