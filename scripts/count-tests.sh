#!/bin/sh
# How many tests passed? Counts them in the log of test.sh; exit status 0 if none failed, all were run, and nothing else failed.
# usage: count-tests.sh LOG FAILED      FAILED: 1 if a program that ran them failed, else 0
# libtest: "test result: ok. 3 passed; 0 failed; 1 ignored; ..."; check.sh: "12 results, 10 traces, 0 wrong", each a test.
set -eu

[ $# -eq 2 ] || { echo "usage: count-tests.sh LOG FAILED" >&2; exit 2; }
awk -v failed="$2" '
    /(^|: )skipped: / { skipped++ }
    /^test result:/ { passed += $4; wrong += $6; ignored += $8 }
    /^[0-9]+ results, [0-9]+ traces, [0-9]+ wrong$/ { passed += $1 + $3 - $5; wrong += $5; checked = 1 }
    END {
        if (!checked) print "tests: the workloads could not be checked"
        if (failed && !wrong) print "tests: something failed that is no test: see above"
        if (skipped) printf "tests: %d skips among those that passed: see \"skipped:\" above\n", skipped
        printf "tests: %d passed, %d failed, %d ignored\n", passed, wrong, ignored
        exit failed || wrong || !checked || !passed
    }' "$1"
