"""How do a dex VM's ints, longs and doubles behave? The few rules in which Python differs."""

import struct


def int32(value):
    """The value as an int: the low 32 bits, signed."""
    return (value + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def int64(value):
    """The value as a long: the low 64 bits, signed."""
    return (value + (1 << 63) & (1 << 64) - 1) - (1 << 63)


def divide(a, b):
    """Division of ints and longs: towards zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def remainder(a, b):
    """Remainder of ints and longs: the sign is the dividend's."""
    return a - b * divide(a, b)


def bits(value):
    """Double.doubleToRawLongBits."""
    return struct.unpack("<q", struct.pack("<d", value))[0]


def mix(total, value):
    """A checksum with one value more: total * 31 + value, as a long."""
    return int64(total * 31 + value)


def mix_bits(values):
    """The checksum of a list of doubles, or of a list of such lists."""
    total = 0
    for value in values:
        total = mix(total, mix_bits(value) if isinstance(value, list) else bits(value))
    return total


def repeated(value, rounds):
    """The checksum of a workload whose every round gives the same value."""
    total = 0
    for _ in range(rounds):
        total = mix(total, value)
    return total
