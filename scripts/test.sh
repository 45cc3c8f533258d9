#!/bin/bash
# Do all tests pass? Runs what `make test-programs` has built and ends with the counts.
# usage: test.sh RELEASE-FOLDER WORKLOADS-FOLDER LOG [yes|no]
# The board's tests, which keep one processor busy, run beside the others; what they print comes after those. no: without them.
set -uo pipefail

case "$#${4:-}" in
3 | 4yes | 4no) ;;
*) echo "usage: test.sh RELEASE-FOLDER WORKLOADS-FOLDER LOG [yes|no]" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.." || exit 1
release=$1
workloads=$2
log=$3
mkdir -p "$(dirname "$log")"
failed=0

# The tunnel's tests find a real VM by this.
export VARID_ARTVM=$release/artvm
export CARGO_TERM_COLOR=never

on_this_machine() { # prints what all tests but the board's say
    local failed=0
    scripts/test-programs.sh run || failed=1
    cargo test --locked --release --workspace --doc || failed=1
    tests/workloads/check.sh "$release/artvm" "$workloads" '' '--art 14 --no-dim' '--art 14 --no-dim --int' || failed=1
    return "$failed"
}

# Process groups of their own: the emulator, and what tests have started, ends with them. The board's go first, where that is allowed: the others
# share the work of two processors, these cannot.
set -m
trap 'kill -- "-$board" "-$host" 2>/dev/null' EXIT
trap 'exit 130' INT TERM HUP
: >"$log.board"
[ "${4:-yes}" = no ] || nice -n -5 scripts/test-programs.sh board >"$log.board" 2>&1 &
board=$!
on_this_machine 2>&1 | tee "$log" &
host=$(jobs -p %%)
wait %% || failed=1
wait "$board" || failed=1
trap - EXIT
tee -a "$log" <"$log.board"
echo "tests that took longest, in seconds:"
sed -nE 's/^test (.*) \.\.\. .*<([0-9.]+)s>$/\2 \1/p' "$log" | sort -rn | head -n 40
scripts/count-tests.sh "$log" "$failed"
