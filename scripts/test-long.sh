#!/bin/bash
# Runs the tests that are too slow for each change, in two lanes, and writes the results.
# usage: test-long.sh TARGET-FOLDER DOCUMENT      after make test-programs board-products
# DOCUMENT gets the commit and, for each step, its result, its time and its last line. A test that is skipped is a failure here.
set -uo pipefail

[ $# -eq 2 ] || { echo "usage: test-long.sh TARGET-FOLDER DOCUMENT" >&2; exit 2; }
cd "$(dirname "$0")/.." || exit 1
target=$(realpath "$1")
document=$2
export CARGO_TARGET_DIR=$target
export VARID_TEST_SCALE=long
export VARID_ARTVM=$target/release/artvm
logs=$target/test-long
rm -rf "$logs"
mkdir -p "$logs"
. scripts/steps.sh

commit=$(git rev-parse HEAD)
program() { # NAME: runs a program of system tests and shows what its tests print
    cargo test --locked --release --workspace --no-fail-fast --test "$1" -- --nocapture 2>&1 | tee "$logs/$1.printed"
    local status=${PIPESTATUS[0]}
    ! grep -aE '(^|: )skipped: ' "$logs/$1.printed" && [ "$status" -eq 0 ]
}

# Each emulated board keeps one processor busy, and counts instructions: beside it goes what is not timed.
begin soak tests/board/module-soak.sh
step fresh scripts/fresh.sh "$target" full
# shellcheck disable=SC2016 # the inner shell's
step dist sh -c 'scripts/dist.sh "$0/dist" && tests/dist.sh "$0/dist"' "$target"
end soak
begin board program board
step host program host
end board
step long program long
step code cargo test --locked --release -p artvm --test vm -- --ignored
begin cost scripts/board-cost.sh "$target" docs/board-cost.md
step fuzz fuzz/run.sh 40
end cost
begin paper scripts/paper.sh "$target" docs/evaluation.md
step module tests/board/module-kernels.sh
step bench make bench QUICK=1
step cross scripts/cross.sh armhf "$target/cross/armhf"
step golden tests/workloads/expected.py verify
end paper

{
    echo "# The long tests"
    echo
    echo "What \`make test-long\` ran last, and what it found. [Testing](testing.md) says what each step is for."
    echo
    echo "Commit: \`$commit\`$(git diff --quiet HEAD -- ':!docs' || echo ' with changes'), $((SECONDS / 60)) minutes in all."
    echo
    echo "| step | result | minutes | |"
    echo "|---|---|---|---|"
    for name in host board golden long code soak module fuzz bench cost paper cross dist fresh; do
        result=passed
        [ -n "${seconds[$name]:-}" ] || result='FAILED: did not run'
        [[ " ${failed[*]} " != *" $name "* ]] || result=FAILED
        case $name in
        host | board | long | code) found=$(grep -a '^test result:' "$logs/$name.log" | sed 's/^test result: [a-zA-Z]*\. //; s/; 0 ignored.*//' | tail -n 1) ;;
        fresh) found=$(grep -a '^tests: [0-9]\|^packages: [0-9]' "$logs/$name.log" | sed 's/, files of.*//' | paste -sd';') ;;
        soak) found=$(grep -a '^soak' "$logs/$name.log" | tail -n 1) ;;
        *) found=$(tail -n 1 "$logs/$name.log") ;;
        esac
        echo "| $name | $result | $(((${seconds[$name]:-0} + 30) / 60)) | $(printf %s "${found//"$target"/target}" | tr -d '\r|' | cut -c1-160) |"
    done
    echo
    echo "What the oracles counted, of samples that were judged one by one:"
    echo
    grep -ahE '^(ART at|shadow interpreter at|an unknown build at|unwinding|killed:|overrun:|changed:|module:|armv7:|pointer_authentication:)' \
        "$logs/host.log" "$logs/long.log" |
        sed 's/^/    /' | cut -c1-300
} >"$document"
echo "test-long: ${failed[*]:+failed: }${failed[*]:-all steps passed}, $((SECONDS / 60)) minutes: $document"
[ "${#failed[@]}" -eq 0 ]
