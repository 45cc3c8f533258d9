"""What must org.example.truth return? By algebra where a loop is linear, so that any number of rounds is cheap."""

from functools import cache

from .arithmetic import int32, int64, mix

MASK = 0xFFFFFFFF


def xorshift(x):
    """One iteration of the loop that all the measured methods share, on the bits of an int."""
    x ^= (x << 13) & MASK
    x ^= x >> 17
    return x ^ ((x << 5) & MASK)


def apply(columns, x):
    """A 32 by 32 bit matrix times x."""
    result = 0
    for bit, column in enumerate(columns):
        if x >> bit & 1:
            result ^= column
    return result


@cache
def power(exponent):
    """The matrix of 2 ** exponent iterations."""
    if exponent == 0:
        return tuple(xorshift(1 << bit) for bit in range(32))
    half = power(exponent - 1)
    return tuple(apply(half, column) for column in half)


def spin(x, times):
    """The int after so many iterations."""
    x &= MASK
    for exponent in range(times.bit_length()):
        if times >> exponent & 1:
            x = apply(power(exponent), x)
    return int32(x)


def steps(*addends):
    """Steps x * 69069 + addend of a congruential generator, as one: (factor, addend)."""
    factor, sum_of_all = 1, 0
    for addend in addends:
        factor, sum_of_all = factor * 69069 & MASK, sum_of_all * 69069 + addend & MASK
    return factor, sum_of_all


STIR = steps(*[1] * 200)
PING_PONG = steps(*(5 if level % 2 else 1 for level in range(71) for _ in range(40)))


def stepped(x, step):
    """The int after such steps."""
    return int32(x * step[0] + step[1])


def stir(x):
    """200 steps of the generator, as the native library makes them."""
    return stepped(x, STIR)


def shares(rounds):
    x = 1
    for i in range(rounds):
        x = spin(x, 100 * (600 + i * 389 % 801))
    return x


def recursion(rounds):
    total = 0
    for i in range(rounds):
        total = mix(total, spin(i + 1, 81 * 20 + 2000 + 80 * 20))
    return total


def ping_pong(rounds):
    total = 0
    for i in range(rounds):
        total = mix(total, stepped(i + 1, PING_PONG))
    return total


def interfaces(rounds):
    round_alone, factor = 0, 31**3000 % (1 << 64)
    for side in range(3000):
        square, triangle = side * side, side * side // 2
        comb = sum((side + i) ** 2 for i in range(3))
        round_alone = mix(round_alone, (square, triangle, comb)[side % 3])
    total = 0
    for _ in range(rounds):
        total = int64(total * factor + round_alone)
    return total


def exceptions(rounds):
    total = 0
    for i in range(rounds):
        for depth in range(40, 60):
            total = mix(total, depth + sum(range(16, depth + 1, 16)))
        total = mix(total, int32(sum(i + k for k in range(4)) + 4 * 1000 + 4 * 4 + 4 * 50000))
    return total


def threads(rounds):
    total = 0
    for share in (50, 30, 20):
        total = mix(total, spin(1, share * 100 * rounds))
    return total


def tiny(rounds):
    return int32(rounds * sum(2 * k for k in range(5000)))


def shifted(x):
    """The ten rounds of shifts of a long step."""
    for _ in range(10):
        x ^= (x << 7) & MASK
        x ^= x >> 9
    return x


def virtual(rounds):
    # Shifts are linear: those of an int are those of its halves.
    low, high = [shifted(half) for half in range(1 << 16)], [shifted(half << 16) for half in range(1 << 16)]
    x = 1
    for _ in range(rounds * 1000):
        x = x * 69069 + 1 & MASK
        x = (low[x & 0xFFFF] ^ high[x >> 16]) * 69069 + 1 & MASK
    return int32(x)


def locked(rounds):
    return rounds * (sum(range(2000)) + sum(range(1000)))


@cache
def bounce(levels, x):
    x = spin(stir(stir(x)) + 1, 50)
    if levels:
        x = bounce(levels - 1, x)
    return stir(x) ^ 0x5A


def jni(rounds):
    total = 0
    for i in range(rounds):
        for levels in range(100):
            total = mix(total, bounce(levels % 8, i + levels))
    return total


SCENARIOS = {
    "shares": shares,
    "recursion": recursion,
    "pingPong": ping_pong,
    "interfaces": interfaces,
    "exceptions": exceptions,
    "threads": threads,
    "tiny": tiny,
    "virtual": virtual,
    "locked": locked,
    "jni": jni,
}


def run(rounds):
    """Every scenario once a round."""
    each = [scenario(1) for scenario in SCENARIOS.values()]
    total = 0
    for _ in range(rounds):
        for value in each:
            total = mix(total, value)
    return total


METHODS = SCENARIOS | {"run": run}
