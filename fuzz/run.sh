#!/bin/bash
# Does any parser fail on hostile input? Runs every fuzz target, or the named ones, and says which found something.
# usage: run.sh SECONDS [TARGET...]
# What is found stays in target/fuzz/artifacts/TARGET; the corpus grows in target/fuzz/corpus/TARGET. The C walker is
# built with the same sanitizer as the Rust around it.
set -uo pipefail

[ $# -ge 1 ] || { echo "usage: run.sh SECONDS [TARGET...]" >&2; exit 2; }
cd "$(dirname "$0")/.." || exit 1
seconds=$1
shift
build=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
unset CARGO_TARGET_DIR
export CC=${CC:-clang-16} CFLAGS=${CFLAGS:--fsanitize=address -fno-omit-frame-pointer}
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(cd fuzz/fuzz_targets && printf '%s\n' *.rs | sed 's/\.rs$//')

cargo +nightly fuzz build --fuzz-dir fuzz --target-dir "$build" || exit 1
found=()
for target in "${targets[@]}"; do
    corpus=$build/corpus/$target
    artifacts=$build/artifacts/$target
    mkdir -p "$corpus" "$artifacts"
    echo "== fuzz: $target for $seconds s"
    cargo +nightly fuzz run --fuzz-dir fuzz --target-dir "$build" "$target" "$corpus" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -artifact_prefix="$artifacts/" -rss_limit_mb=2048 -timeout=10 -max_len=65536 \
        -print_final_stats=1 -verbosity=1 2>&1 | grep -aEv '^(#[0-9]+\s+(NEW|REDUCE|pulse)|\s+NEW_FUNC)' || found+=("$target")
done
if [ "${#found[@]}" -gt 0 ]; then
    echo "fuzz: found something: ${found[*]}: the inputs are below $build/artifacts"
    exit 1
fi
echo "fuzz: ${#targets[@]} targets, nothing found"
