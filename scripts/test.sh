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

if cargo nextest --version >/dev/null 2>&1; then
    runner="nextest run --no-tests=pass"
else
    runner="test"
fi
# shellcheck disable=SC2086 # words of a command
NO_COLOR=1 CARGO_TERM_COLOR=never cargo $runner --locked --release --workspace --no-fail-fast 2>&1 | tee "$log" || failed=1
if [ "$runner" != test ]; then
    CARGO_TERM_COLOR=never cargo test --locked --release --workspace --doc 2>&1 | tee -a "$log" || failed=1
fi
tests/workloads/check.sh "$release/artvm" "$workloads" 2>&1 | tee -a "$log" || failed=1

# libtest: "test result: ok. 3 passed; 0 failed; 1 ignored; ...". nextest: "Summary [ 1.2s] 3 tests run: 3 passed, 1 skipped".
# check.sh: "12 results, 10 traces, 0 wrong", each result and each trace a test.
awk -v failed="$failed" '
    /^test result:/ { passed += $4; wrong += $6; skipped += $8 }
    /Summary \[/ {
        for (i = 2; i <= NF; i++) {
            if ($i ~ /^passed/) passed += $(i - 1)
            if ($i ~ /^failed/) wrong += $(i - 1)
            if ($i ~ /^skipped/) skipped += $(i - 1)
        }
    }
    /^[0-9]+ results, [0-9]+ traces, [0-9]+ wrong$/ { checked += $1 + $3; mistaken += $5; ran = 1 }
    END {
        passed += checked - mistaken
        wrong += mistaken
        if (!ran) print "tests: the workloads could not be checked"
        if (failed && !wrong) print "tests: something failed that is no test: see above"
        printf "tests: %d passed, %d failed, %d ignored\n", passed, wrong, skipped
        exit failed || wrong || !ran || !passed
    }' "$log"
