#!/usr/bin/env python3
"""Which classes does the workload have too many of to write down? Parts, whose methods are all alike and all different, and hierarchies.

usage: generate.py OUTDIR
"""

import sys
from pathlib import Path

PARTS, METHODS = 64, 6
# How often Main.window calls each of its parts.
WINDOW_TIMES = 150
HIERARCHIES = 100
# How often a hierarchy's methods are called, how often they call others then, and how often in their last call.
TURNS, CALLS, LATE_CALLS = 8000, 60, 10000

PART = """package org.example.jit;

/** Hot for a while. */
final class Part{part:02} extends Part {{
    int go(int x) {{
{calls}
        return x;
    }}
{methods}}}
"""

METHOD = """
    static int work{method}(int x) {{
        for (int n = 0; n < {times}; n++) {{
{steps}
        }}
        return x;
    }}
"""

HIERARCHY = """package org.example.jit;

/** Has one subclass, which is loaded late. */
class Base{number:02} {{
    private Base{number:02} next;

    Base{number:02}() {{
        next = this;
    }}

    static int hot(Base{number:02} base, Target usual, Target other, int x) {{
        for (int n = 0; n < {turns}; n++) {{
            x = turn(base, x, {calls});
            x = guess(usual, x, {calls});
        }}
        x = turn(base, x, {late});
        return guess(other, x, {late});
    }}

    /** Calls what has one implementation; if it calls it often, only until it is half done. */
    static int turn(Base{number:02} base, int x, int calls) {{
        for (int n = 0; n < calls; n++) {{
            x = base.of(x);
            base = base.next;
            if (n == {late} / 2) {{
                x += Late{number:02}.load();
            }}
        }}
        return x;
    }}

    /** Calls what has had one class, up to now. */
    static int guess(Target target, int x, int calls) {{
        for (int n = 0; n < calls; n++) {{
            x = target.of(x);
        }}
        return x;
    }}

    int of(int x) {{
        x ^= x << 13;
        return step(x);
    }}

    static int step(int x) {{
        return x * 69069 + {number};
    }}
}}
"""

LATE = """package org.example.jit;

/** Loads the subclass when it is verified: a class is verified before its first use, and what it refers to is loaded then. */
final class Late{number:02} {{
    static int load() {{
        Base{number:02} derived = new Derived{number:02}();
        return derived.of({number});
    }}
}}
"""

DERIVED = """package org.example.jit;

/** Overrides what had one implementation. */
final class Derived{number:02} extends Base{number:02} {{
    int of(int x) {{
        return x + {number};
    }}
}}
"""


def times(part, method):
    """Turns of a method's loop."""
    return 12 + (part + method) % 7


def steps(part, method):
    """The addends of a method's loop: how many differs, so that its code's size does."""
    return [part * 31 + method * 7 + step for step in range(1 + (part * 5 + method * 3) % 17)]


def part(number):
    """The source of a part."""
    calls = "\n".join(f"        x = work{method}(x);" for method in range(METHODS))
    methods = ""
    for method in range(METHODS):
        lines = "\n".join(f"            x = (x ^ x >>> {1 + addend % 13}) * 69069 + {addend};" for addend in steps(number, method))
        methods += METHOD.format(method=method, times=times(number, method), steps=lines)
    return PART.format(part=number, calls=calls, methods=methods)


def parts():
    """The source of the class that makes all parts."""
    lines = "\n".join(f"        parts[{number}] = new Part{number:02}();" for number in range(PARTS))
    return f"""package org.example.jit;

/** All parts. */
final class Parts {{
    static Part[] all() {{
        Part[] parts = new Part[{PARTS}];
{lines}
        return parts;
    }}
}}
"""


def hierarchies():
    """The source of the class that calls the hierarchies."""
    branches = "\n".join(
        f"        if (number == {number}) {{\n            return Base{number:02}.hot(new Base{number:02}(), usual, other, x);\n        }}" for number in range(HIERARCHIES)
    )
    return f"""package org.example.jit;

/** All hierarchies. */
final class Hierarchies {{
    static final int COUNT = {HIERARCHIES};

    static int go(int number, Target usual, Target other, int x) {{
{branches}
        return 0;
    }}
}}
"""


def main():
    """Writes the classes."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    sources = {"Parts": parts(), "Hierarchies": hierarchies()}
    for number in range(PARTS):
        sources[f"Part{number:02}"] = part(number)
    for number in range(HIERARCHIES):
        sources[f"Base{number:02}"] = HIERARCHY.format(number=number, turns=TURNS, calls=CALLS, late=LATE_CALLS)
        sources[f"Late{number:02}"] = LATE.format(number=number)
        sources[f"Derived{number:02}"] = DERIVED.format(number=number)
    for name, text in sources.items():
        (out / f"{name}.java").write_text(text)


if __name__ == "__main__":
    main()
