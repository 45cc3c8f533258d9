#!/bin/bash
# Installs the recorders and readers of crates.io that varid is measured beside. What cannot be had is left out, and said.
# usage: bench_peers.sh FOLDER
set -uo pipefail

[ $# -eq 1 ] || { echo "usage: bench_peers.sh FOLDER" >&2; exit 2; }
# Versions are pinned: a figure is of these.
for peer in inferno@0.12.8 samply@0.13.1; do
    [ -x "$1/bin/${peer%@*}" ] || [ -x "$1/bin/${peer%@*}-flamegraph" ] ||
        cargo install --quiet --locked --root "$1" "$peer" || echo "bench: $peer cannot be built here: its rows are left out" >&2
done
