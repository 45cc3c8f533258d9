#!/bin/bash
# Runs the tests that are too slow for each change, and writes the results of a lane's steps into a document, beside those of the other lane.
# usage: test-long.sh TARGET-FOLDER DOCUMENT [long|release]      after make test-programs board-products
# Of each step the document has its result, the commit that was tried, its minutes and its last line. A test that is skipped is a failure here.
set -uo pipefail

usage="usage: test-long.sh TARGET-FOLDER DOCUMENT [long|release]"
lane=${3:-long}
case $#:$lane in
[23]:long | 3:release) ;;
*) echo "$usage" >&2 && exit 2 ;;
esac
cd "$(dirname "$0")/.." || exit 1
target=$(realpath "$1")
document=$2
export CARGO_TARGET_DIR=$target
export VARID_TEST_SCALE=long
export VARID_ARTVM=$target/release/artvm
logs=$target/test-$lane
rm -rf "$logs"
mkdir -p "$logs"
. scripts/steps.sh

program() { # NAME: runs a program of system tests and shows what its tests print
    cargo test --locked --release --workspace --no-fail-fast --test "$1" -- --nocapture 2>&1 | tee "$logs/$1.printed"
    local status=${PIPESTATUS[0]}
    ! grep -aE '(^|: )skipped: ' "$logs/$1.printed" && [ "$status" -eq 0 ]
}

# Each emulated board keeps one processor busy, and counts instructions: beside it goes what is not timed.
long_lane() {
    begin board program board
    step host program host
    end board
    step long program long
    step code cargo test --locked --release -p artvm --test vm -- --ignored
    step module tests/board/module-kernels.sh
    step bench make bench QUICK=1
    step cross scripts/cross.sh armhf "$target/cross/armhf"
    step golden tests/workloads/expected.py verify
}

release_lane() {
    begin soak tests/board/module-soak.sh
    step fresh scripts/fresh.sh "$target" full
    # shellcheck disable=SC2016 # the inner shell's
    step dist sh -c 'scripts/dist.sh "$0/dist" && tests/dist.sh "$0/dist"' "$target"
    end soak
    begin cost scripts/board-cost.sh "$target" docs/board-cost.md
    step fuzz fuzz/run.sh 40
    end cost
    step paper scripts/paper.sh "$target" docs/evaluation.md
}

found() { # STEP: what its log says last
    case $1 in
    host | board | long | code) grep -a '^test result:' "$logs/$1.log" | sed 's/^test result: [a-zA-Z]*\. //; s/; 0 ignored.*//' | tail -n 1 ;;
    fresh) grep -a '^tests: [0-9]\|^packages: [0-9]' "$logs/fresh.log" | sed 's/, files of.*//' | paste -sd';' ;;
    soak) grep -a '^soak' "$logs/soak.log" | tail -n 1 ;;
    *) tail -n 1 "$logs/$1.log" ;;
    esac
}

row() { # LANE STEP: its row, as this run found it, or of a run before
    if [ "$1" != "$lane" ]; then
        grep "^| $2 | $1 |" "$logs/before" || echo "| $2 | $1 | FAILED: did not run | – | 0 | |"
        return
    fi
    local result="passed$changes"
    [ -n "${seconds[$2]:-}" ] || result='FAILED: did not run'
    [[ " ${failed[*]} " != *" $2 "* ]] || result=FAILED
    local said
    said=$(found "$2")
    echo "| $2 | $1 | $result | $commit | $(((${seconds[$2]:-0} + 30) / 60)) | $(printf %s "${said//"$target"/target}" | tr -d '\r|' | cut -c1-160) |"
}

commit=$(git rev-parse --short=12 HEAD)
cp "$document" "$logs/before"
"${lane}_lane"
changes=$(git diff --quiet HEAD -- ':!docs' || echo ', with changes')
{
    echo "# The long tests"
    echo
    echo "What \`make test-long\` and \`make test-release\` ran last, and what they found. [Testing](testing.md) says what each step is for."
    echo
    echo "| step | lane | result | commit | minutes | |"
    echo "|---|---|---|---|---|---|"
    for name in host board long code module bench cross golden; do row long $name; done
    for name in soak fresh dist cost fuzz paper; do row release $name; done
    echo
    echo "What the oracles counted, of samples that were judged one by one:"
    echo
    if [ "$lane" = long ]; then
        grep -ahE '^(ART |shadow interpreter at|an unknown build at|unwinding|killed:|overrun:|changed:|module:|armv7:|pointer_authentication:)' \
            "$logs/host.log" "$logs/long.log" |
            sed 's/^/    /' | cut -c1-300
    else
        grep '^    ' "$logs/before"
    fi
} >"$document"
echo "test-$lane: ${failed[*]:+failed: }${failed[*]:-all steps passed}, $((SECONDS / 60)) minutes: $document"
[ "${#failed[@]}" -eq 0 ]
