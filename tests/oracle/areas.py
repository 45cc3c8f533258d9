#!/usr/bin/env python3
"""Is every sample of areavm, whose frames are kept as Dalvik's, attributed to the method that ran, and its callers to theirs?

usage: areas.py SESSION MAPS AREAVM

As shadow.py: every method is a native function of its own, whose symbol tells which one ran; the kernel's own callchain, by frame pointers,
tells the callers. In a method's function every sample must have it as its leaf, in the registers' instruction, and all of its callers. Outside
(the functions that make and leave frames, the C library) the innermost method may be the one that is being called or left. Prints what it counted
as JSON, and what is wrong on standard error; exit status 1 if anything is.
"""

from shadow import CALLED_BY_LIBRARY, LIBRARY, main, method


def is_end(short, whole):
    """Whether these are the outermost ones of those."""
    return whole[len(whole) - len(short) :] == short


def judge(raw, stacks, methods, counts):
    """What is wrong with a stack of areas, or None."""
    user, is_cut, leaf, callers, chain, found = stacks
    if is_cut:
        counts["deep"] += 1
        return None
    if leaf:
        counts["method known"] += 1
        if raw.ip < methods.maps.kernel and not method(chain[0].symbol):
            return f"{leaf} was running, the leaf is {chain[0].symbol}"
        if not found or found[0] != leaf:
            return f"{leaf} was running, not {found[0] if found else None}"
        found = found[1:]
        if not callers and leaf == CALLED_BY_LIBRARY:
            # The C library has something else in the frame pointer's register.
            counts["callers not known"] += 1
            return None
        # Without a frame of its own there yet, or no longer, the kernel's chain lacks the caller.
        if found == callers or (found[1:] == callers and methods.lacks_frame(user[0])):
            counts["callers known"] += 1
            return None
        return f"{leaf} at {methods.inside(user[0]):#x} was called by {callers}, not by {found}"
    place = methods.maps.at(user[0])
    if place and LIBRARY.match(place[0].rsplit("/", 1)[-1]):
        # It has no frame pointers: of what is outermost the kernel sees all, if it sees anything.
        counts["in the C library"] += 1
        return None if is_end(callers, found) or is_end(found, callers) else f"the callers were {callers}, not {found}"
    counts["between methods"] += 1
    if not callers and any(frame.symbol == "compare" for frame in chain):
        counts["callers not known"] += 1
        return None
    if is_end(found, callers) or (is_end(callers, found) and len(found) <= len(callers) + 2):
        return None
    return f"between methods: {callers}, not {found}"


if __name__ == "__main__":
    main(__doc__, judge)
