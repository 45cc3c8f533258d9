"""org.example.waits: what its threads have counted when all waits are over."""


def waits(rounds):
    """Milliseconds that main slept, how often the monitor was entered, how many bytes were read."""
    return (rounds * (20 + 60) * 31 + rounds) * 31 + rounds


METHODS = {"run": waits, "waits": waits}
