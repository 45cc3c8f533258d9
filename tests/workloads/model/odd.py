"""What must org.example.odd return? The sum of its methods' own numbers."""

NAMES = sum(1 << bit for bit in range(10))
OVERLOADS = 100 + 5 + 1001 + 2002 + 3003 + 4000 + 5003 + 6000 + 7000
DEBUG_INFO = 1 + 2 + 3 + 4 + 7 + 8
PAYLOADS = 20 + 100 + 3
GENERATED = 3 + 20000 + 7 + 7
NO_PACKAGE = 6

METHODS = {"run": lambda rounds: rounds * (NAMES + OVERLOADS + DEBUG_INFO + PAYLOADS + GENERATED + NO_PACKAGE)}
