"""How often was each method of a program called in each context? python3 tests/oracle/method_contexts.py TRACE PREFIX

TRACE: ART's method trace. Prints the calls of each context of all threads: its methods whose class starts with PREFIX, outermost first,
separated by tabs. Other methods between them are left out.
"""

import json
import sys
from collections import Counter

from method_trace import ENTER, Trace


def main():
    """Follows the stacks of all threads."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    trace, prefix = Trace(sys.argv[1]), sys.argv[2]
    stacks, calls = {}, Counter()
    for thread, method, action, _ in trace.records():
        stack = stacks.setdefault(thread, [])
        if action == ENTER:
            stack.append(method)
            if method.cls.startswith(prefix):
                own = (one for one in stack if one.cls.startswith(prefix))
                calls["\t".join(f"{one}{one.descriptor}" for one in own)] += 1
        else:
            while stack and stack.pop() != method:
                pass
    print(json.dumps(calls))


if __name__ == "__main__":
    main()
