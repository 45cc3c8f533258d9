#!/bin/bash
# Do all tests pass? Runs the workspace's and the workloads' and ends with their counts.
# usage: test.sh RELEASE-FOLDER WORKLOADS-FOLDER LOG
set -uo pipefail

[ $# -eq 3 ] || { echo "usage: test.sh RELEASE-FOLDER WORKLOADS-FOLDER LOG" >&2; exit 2; }
cd "$(dirname "$0")/.." || exit 1
release=$1
workloads=$2
log=$3
mkdir -p "$(dirname "$log")"
: >"$log"
failed=0

# The tunnel's tests find a real VM by this.
export VARID_ARTVM=$release/artvm

# One process a test program: what tests of a program share is built once. (cargo-nextest would build it in each test.)
CARGO_TERM_COLOR=never cargo test --locked --release --workspace --no-fail-fast 2>&1 | tee "$log" || failed=1
tests/workloads/check.sh "$release/artvm" "$workloads" 2>&1 | tee -a "$log" || failed=1

# libtest: "test result: ok. 3 passed; 0 failed; 1 ignored; ..."; check.sh: "12 results, 10 traces, 0 wrong", each a test.
awk -v failed="$failed" '
    /(^|: )skipped: / { skipped++ }
    /^test result:/ { passed += $4; wrong += $6; ignored += $8 }
    /^[0-9]+ results, [0-9]+ traces, [0-9]+ wrong$/ { checked += $1 + $3; mistaken += $5; ran = 1 }
    END {
        passed += checked - mistaken
        wrong += mistaken
        if (!ran) print "tests: the workloads could not be checked"
        if (failed && !wrong) print "tests: something failed that is no test: see above"
        if (skipped) printf "tests: %d skips among those that passed: see \"skipped:\" above\n", skipped
        printf "tests: %d passed, %d failed, %d ignored\n", passed, wrong, ignored
        exit failed || wrong || !ran || !passed
    }' "$log"
