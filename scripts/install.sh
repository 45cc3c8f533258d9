#!/bin/sh
# What is installed, and where? varid, its manual and its completions, and the libraries for Java that are beside it, below a prefix.
# usage: install.sh VARID PREFIX      DESTDIR, if set, stands before the prefix
set -eu

[ $# -eq 2 ] || { echo "usage: install.sh VARID PREFIX" >&2; exit 2; }
prefix=${DESTDIR:-}$2
install -D -m 755 "$1" "$prefix/bin/varid"
# Only who debugs varid needs its symbols.
if command -v strip >/dev/null; then
    strip "$prefix/bin/varid" || echo "install: $prefix/bin/varid keeps its symbols: this strip does not read it" >&2
fi
for library in libvarid_exact_agent.so libvarid_calibrate_counter.so; do
    built=$(dirname "$1")/$library
    [ ! -e "$built" ] || install -D -m 644 "$built" "$prefix/lib/varid/$library"
done
"$(dirname "$0")/manual.sh" "$1" "$prefix"
echo "install: $prefix/bin/varid, its manual and completions in $prefix/share"
