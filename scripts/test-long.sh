#!/bin/bash
# Runs the tests that are too slow for each change, and writes the results of a lane's steps into a document, beside those of the other lane.
# usage: test-long.sh TARGET-FOLDER DOCUMENT [long|release [STEP...]]      after make test-programs board-products
# With STEPs only these run: after a mending, the others' rows stay as they are.
# Of each step the document has its result, the commit that was tried, its minutes and its last line. A test that is skipped is a failure here.
set -uo pipefail

usage="usage: test-long.sh TARGET-FOLDER DOCUMENT [long|release [STEP...]]"
declare -A steps=(
    [long]='host board vms long boards code module bench cross golden fresh lint'
    [release]='soak fresh-full dist cost fuzz modes processors paper java'
)
lane=${3:-long}
if [ $# -lt 2 ] || [ -z "${steps[$lane]:-}" ]; then
    echo "$usage" >&2
    exit 2
fi
read -ra wanted <<<"${*:4}"
[ "${#wanted[@]}" -gt 0 ] || read -ra wanted <<<"${steps[$lane]}"
for name in "${wanted[@]}"; do
    if [[ " ${steps[$lane]} " != *" $name "* ]]; then
        echo "test-long: no step $name in the lane $lane: ${steps[$lane]}" >&2
        exit 2
    fi
done
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
. scripts/test-seconds.sh

program() { # STEP NAME [ARGUMENT...]: runs a program of system tests and shows what its tests print
    local step=$1
    cargo test --locked --release --workspace --no-fail-fast --test "$2" -- "${report_time[@]}" --nocapture "${@:3}" 2>&1 |
        tee "$logs/$step.printed"
    local status=${PIPESTATUS[0]}
    ! sed 's/^test [^ ]* \.\.\. //' "$logs/$step.printed" | grep -aE '(^|: )skipped: ' && [ "$status" -eq 0 ]
}

vms() { # what they print is in one log
    local status=0
    program vms live || status=1
    program vms vm || status=1
    return "$status"
}

is_wanted() { # STEP
    [[ " ${wanted[*]} " == *" $1 "* ]]
}

# The steps of steps.sh, of those that are wanted.
begin_wanted() { ! is_wanted "$1" || begin "$@"; }
end_wanted() { ! is_wanted "$1" || end "$1"; }
step_wanted() { ! is_wanted "$1" || step "$@"; }

# Samples of compiled code in each mode of ART: recordings go one after the other, their oracles beside each other.
modes=compiled::modes::
# Programs for RISC-V on simulated processors, a quarter of an hour of simulation.
processors=processors::

# Each emulated board keeps one processor busy, and counts instructions: beside it goes what is not timed.
long_lane() {
    local on_boards=(armv7:: compiled_board:: determinism:: make_board:: module:: pmu:: pointer_authentication:: probes_board:: unwinding::)
    local elsewhere=(--skip "$modes" --skip "$processors")
    for name in "${on_boards[@]}"; do elsewhere+=(--skip "$name"); done
    begin_wanted board program board board
    step_wanted host program host host
    step_wanted vms vms
    end_wanted board
    begin_wanted boards program boards long --test-threads 1 "${on_boards[@]}"
    step_wanted long program long long --test-threads 1 "${elsewhere[@]}"
    end_wanted boards
    step_wanted code bash -c 'cargo test --locked --release -p artvm --test vm -- --ignored &&
        cargo test --locked --profile bench --workspace --exclude=varid-{fuzz,stackvm} --test it hotspot_verifies -- --ignored'
    step_wanted module tests/board/module-kernels.sh
    step_wanted bench make bench QUICK=1
    step_wanted cross scripts/cross.sh armhf "$target/cross/armhf"
    step_wanted golden tests/workloads/expected.py verify
    step_wanted fresh scripts/fresh.sh "$target"
    step_wanted lint scripts/lint.sh
}

release_lane() {
    begin_wanted soak tests/board/module-soak.sh
    step_wanted fresh-full scripts/fresh.sh "$target" full
    # shellcheck disable=SC2016 # the inner shell's
    step_wanted dist sh -c 'scripts/dist.sh "$0/dist" && tests/dist.sh "$0/dist"' "$target"
    end_wanted soak
    begin_wanted cost scripts/board-cost.sh "$target" docs/board-cost.md
    step_wanted fuzz fuzz/run.sh 40
    end_wanted cost
    step_wanted modes program modes long --test-threads 2 "$modes"
    step_wanted processors program processors long "$processors"
    step_wanted paper scripts/paper.sh "$target" docs/evaluation.md
    step_wanted java scripts/java_programs.py "$target/release" docs/java-programs.md
}

found() { # STEP: what its log says last
    case $1 in
    host | board | vms | long | boards | code | modes | processors) grep -a '^test result:' "$logs/$1.log" | sed 's/^test result: [a-zA-Z]*\. //; s/; 0 ignored.*//' | tail -n 1 ;;
    fresh-full) grep -a '^tests: [0-9]\|^packages: [0-9]' "$logs/fresh-full.log" | sed 's/, files of.*//' | paste -sd';' ;;
    soak) grep -a '^soak' "$logs/soak.log" | tail -n 1 ;;
    *) tail -n 1 "$logs/$1.log" ;;
    esac
}

row() { # LANE STEP: its row, as this run found it, or of a run before
    if [ "$1" != "$lane" ] || ! is_wanted "$2"; then
        grep "^| $2 | $1 |" "$logs/before" || echo "| $2 | $1 | not run | – | 0 | |"
        return
    fi
    local result="passed$changes"
    [ -n "${seconds[$2]:-}" ] || result='FAILED: did not run'
    [[ " ${failed[*]} " != *" $2 "* ]] || result=FAILED
    local said
    said=$(found "$2")
    echo "| $2 | $1 | $result | $commit | $(((${seconds[$2]:-0} + 30) / 60)) | $(printf %s "${said//"$target"/target}" | tr -d '\r|' | cut -c1-160) |"
}

# What the oracles of some steps printed, if all of them ran, or else the document's list before: of the lane long the first, of release the second.
counted() { # LANE STEP...
    local of=$1 name all=1 files=()
    for name in "${@:2}"; do
        is_wanted "$name" || all=
        files+=("$logs/$name.log")
    done
    if [ "$of" = "$lane" ] && [ -n "$all" ]; then
        # A program with one thread prints a test's name before what the test prints.
        sed 's/^test [^ ]* \.\.\. //' "${files[@]}" | grep -aE "$printed" | sed 's/^/    /' | cut -c1-300
    else
        awk -v of="$of" '/^The same for each mode/ { later = 1 } /^    / && later == (of == "release")' "$logs/before"
    fi
}
printed='^(ART |shadow interpreter at|an unknown build at|unwinding|killed:|overrun:|changed:|module:|armv7:|pointer_authentication:)'

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
    for of in long release; do
        for name in ${steps[$of]}; do row "$of" "$name"; done
    done
    echo
    echo "What the oracles counted, of samples that were judged one by one:"
    echo
    counted long host long boards
    echo
    echo "The same for each mode of compiled code, by \`modes\`:"
    echo
    counted release modes
} >"$document"
echo "test-$lane: ${failed[*]:+failed: }${failed[*]:-all steps passed}, $((SECONDS / 60)) minutes: $document"
[ "${#failed[@]}" -eq 0 ]
