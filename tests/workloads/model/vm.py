"""What must org.example.vm return? Sizes of trees by formula, sums of arrays in the same order."""

from functools import cache

from .arithmetic import bits, mix, repeated


@cache
def trees_round():
    def nodes(depth):
        return 2 ** (depth + 1) - 1

    total = nodes(11)
    for depth in (4, 6, 8, 10):
        total = mix(total, 2 ** (14 - depth) * nodes(depth))
    return mix(total, nodes(10))


@cache
def arrays_round():
    def summed(seed):
        """Only elements that are a multiple of 16 are summed, and only every 64th is not zero."""
        total = 0.0
        if seed % 64 % 16 == 0:
            for i in range(seed % 64, 32768, 64):
                total += seed + 1.0 / (i + 1)
        return total

    kept, total = {}, 0.0
    for i in range(60):
        slot = i * 5 % 8
        if slot in kept:
            total += summed(kept[slot])
        kept[slot] = i
    return bits(total)


@cache
def chain_round():
    """The cells that leave the window: the first one holds 1, cell i holds i."""
    return 1 + sum(range(1, 20000 - 2000))


ROUNDS = {"trees": trees_round, "arrays": arrays_round, "chain": chain_round}


def run(rounds):
    """The three parts, round by round."""
    total = 0
    for _ in range(rounds):
        for part in ROUNDS.values():
            total = mix(total, part())
    return total


METHODS = {name: (lambda n, part=part: repeated(part(), n)) for name, part in ROUNDS.items()}
METHODS["run"] = run
