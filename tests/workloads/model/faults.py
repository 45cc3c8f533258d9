"""What must org.example.faults return? One read in four is of something; what the others return says which exception was caught."""

from .arithmetic import mix


def reads(found, caught):
    """The method that reads something in every fourth round."""
    return lambda rounds: (rounds + 3) // 4 * found + (rounds - (rounds + 3) // 4) * caught


calls, elements, fields = reads(4, 100), reads(7, 1000), reads(3, 10000)


def deep(rounds):
    return rounds * (1000 + 40)


def run(rounds):
    total = 0
    for _ in range(rounds):
        for part in (calls, elements, fields, deep):
            total = mix(total, part(100))
    return mix(total, rounds * 100 * (100 + 1000))


METHODS = {"run": run, "calls": calls, "elements": elements, "fields": fields, "deep": deep}
