#!/bin/bash
# Do all tests pass? Runs what `make test-programs` has built, compiles the tests of single crates, runs them, and ends with the counts.
# usage: test.sh RELEASE-FOLDER WORKLOADS-FOLDER LOG [PROGRAM...]      without these programs: board, live, vm
# Tests of single crates are compiled and run in the time that those of the system leave, which wait for much. The board's tests, which keep one
# processor busy, run beside both. What these print comes after that.
set -uo pipefail

[ $# -ge 3 ] || { sed -n '3s/^# *//p' "$0" >&2; exit 2; }
cd "$(dirname "$0")/.." || exit 1
release=$1
workloads=$2
log=$3
shift 3
except=" $* "
mkdir -p "$(dirname "$log")"
failed=0

# The tunnel's tests find a real VM by this.
export VARID_ARTVM=$release/artvm
# What the system's tests would build is there.
export VARID_BUILT=1
export CARGO_TERM_COLOR=never

of_crates() { # [PROGRAM...]: prints what their tests say
    local failed=0
    scripts/test-programs.sh crates "$@" || failed=1
    cargo test --locked --release --workspace --doc || failed=1
    return "$failed"
}
export -f of_crates

until_run() { # PROCESS LOG: waits until cargo, which it is, runs tests or has ended
    while kill -0 "$1" 2>/dev/null && ! grep -q '^ *Running ' "$2"; do sleep 0.1; done
}

# Process groups of their own: the emulator, and what tests have started, ends with them. The board's go first, where that is allowed: the others
# share the work of two processors, these cannot.
set -m
groups=()
trap 'kill -- "${groups[@]/#/-}" 2>/dev/null' EXIT
trap 'exit 130' INT TERM HUP
: >"$log"
: >"$log.board"
[[ $except == *' board '* ]] || nice -n -5 scripts/test-programs.sh board >"$log.board" 2>&1 &
board=$!
groups+=("$board")
exec 3> >(tee "$log")
shown=$!
scripts/test-programs.sh system >&3 2>&1 3>&- &
system=$!
groups+=("$system")
exec 3>&-
# Cargo has nothing to build for these, and must see that before it compiles others: only one builds at a time.
until_run "$board" "$log.board"
until_run "$system" "$log"
nice -n 19 bash -c 'of_crates "$@"' crates "$@" >"$log.crates" 2>&1 &
crates=$!
groups+=("$crates")
wait "$system" || failed=1
wait "$shown"
# It starts apps of the names that tests of the system wait for.
tests/workloads/check.sh "$release/artvm" "$workloads" '' '--art 14 --no-dim' '--art 14 --no-dim --int' >"$log.workloads" 2>&1 || failed=1
wait "$crates" || failed=1
wait "$board" || failed=1
trap - EXIT
cat "$log.crates" "$log.workloads" "$log.board" | tee -a "$log"
echo "tests that took longest, in seconds:"
sed -nE 's/^test (.*) \.\.\. .*<([0-9.]+)s>$/\2 \1/p' "$log" | sort -rn | head -n 40
scripts/count-tests.sh "$log" "$failed"
