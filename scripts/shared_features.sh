#!/bin/bash
# Do the tests link the crates that the shipped programs are linked from? Cargo builds a crate, and all that depend on it, once more where a
# test's dependency enables another feature of it.
# usage: shared_features.sh
set -euo pipefail

cd "$(dirname "$0")/.."
features() { # OPTIONS...: crates and their enabled features, a line each
    cargo tree --locked --prefix none --format '{p} [{f}]' "$@" | sed 's/ (\*)$//' | sort -u
}
shipped=$(features --edges normal,build --package varid --package artvm)
tested=$(features --edges normal,build,dev --workspace)
names=$(cut -d ' ' -f 1 <<<"$shipped" | sort -u)
other=$(comm -13 <(echo "$shipped") <(echo "$tested") | awk 'NR == FNR { names[$1]; next } $1 in names' <(echo "$names") -)
[ -z "$other" ] || {
    echo "shared features: tests enable more features of these crates; let Cargo.toml enable them, too:" >&2
    echo "$other" >&2
    exit 1
}
