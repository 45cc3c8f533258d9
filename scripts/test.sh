#!/bin/bash
# Do all tests pass? Runs what `make test-programs` has built and ends with the counts.
# usage: test.sh RELEASE-FOLDER WORKLOADS-FOLDER LOG
# The board's tests, which keep one processor busy, run beside the others; what they print comes after those.
set -uo pipefail

[ $# -eq 3 ] || { echo "usage: test.sh RELEASE-FOLDER WORKLOADS-FOLDER LOG" >&2; exit 2; }
cd "$(dirname "$0")/.." || exit 1
release=$1
workloads=$2
log=$3
mkdir -p "$(dirname "$log")"
failed=0

# The tunnel's tests find a real VM by this.
export VARID_ARTVM=$release/artvm
export CARGO_TERM_COLOR=never

# A process group of its own: the emulator ends with it. They go first, where that is allowed: the others share the work of two processors, these
# cannot.
set -m
nice -n -5 cargo test --locked --release --workspace --no-fail-fast --test board >"$log.board" 2>&1 &
board=$!
trap 'kill -- "-$board" 2>/dev/null' EXIT
trap 'exit 130' INT TERM HUP
scripts/test-programs.sh run 2>&1 | tee "$log" || failed=1
cargo test --locked --release --workspace --doc 2>&1 | tee -a "$log" || failed=1
tests/workloads/check.sh "$release/artvm" "$workloads" '' '--art 14 --no-dim' '--art 14 --no-dim --int' 2>&1 | tee -a "$log" || failed=1
wait "$board" || failed=1
trap - EXIT
tee -a "$log" <"$log.board"
scripts/count-tests.sh "$log" "$failed"
