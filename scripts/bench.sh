#!/bin/bash
# Runs all benchmarks and, unless they are quick, writes what they print into a document, with the machine that they ran on.
# usage: bench.sh TARGET-FOLDER DOCUMENT [quick]
# A document is written on an idle machine only: other processes must take less than BUSY percent of its processors (default: 3) in the
# two seconds before the run. What they take during the run is in the document.
set -euo pipefail

usage="usage: bench.sh TARGET-FOLDER DOCUMENT [quick]"
case "$#${3:-}" in
2 | 3quick) ;;
*) echo "$usage" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
target=$(realpath "$1")
document=$2
quick=(${3:+quick})
release=$target/release
out=$target/bench
mkdir -p "$out"
export PYTHONDONTWRITEBYTECODE=1
export VARID_BENCH_RESULTS=$out/results.jsonl
rm -f "$VARID_BENCH_RESULTS"

busy_seconds() { # seconds of CPU time of all processes so far
    awk -v ticks="$(getconf CLK_TCK)" '/^cpu / { printf "%.2f\n", ($2 + $3 + $4 + $7 + $8 + $9) / ticks; exit }' /proc/stat
}

own=0
count_own() { # into `own`: seconds of CPU time of what this script has run and waited for. A subshell would have none.
    times >"$out/times"
    own=$(awk -F'[ms ]+' 'NR == 2 { printf "%.2f\n", $1 * 60 + $2 + $3 * 60 + $4 }' "$out/times")
}

percent() { # BEFORE OWN WALL: what others have taken of all processors in WALL seconds, since BEFORE seconds; OWN seconds of it are ours
    awk -v now="$(busy_seconds)" -v before="$1" -v own="$2" -v wall="$3" -v processors="$(nproc)" \
        'BEGIN { part = 100 * (now - before - own) / (wall * processors); printf "%.1f\n", (part < 0 ? 0 : part > 100 ? 100 : part) }'
}

before=$(busy_seconds)
sleep 2
others=$(percent "$before" 0 2)
if [ "${#quick[@]}" -eq 0 ]; then
    if awk -v others="$others" -v most="${BUSY:-3}" 'BEGIN { exit others <= most }'; then
        echo "bench: other processes take $others % of the processors: figures are made on an idle machine, or with BUSY=100" >&2
        exit 1
    fi
fi

[ "${#quick[@]}" -gt 0 ] || scripts/bench_peers.sh "$out/peers"
details=$out/details
: >"$details"
begun=$SECONDS
before=$(busy_seconds)
count_own
own_before=$own

section() { # TITLE COMMAND...: runs it, and adds what it prints to the document
    local from=$SECONDS
    printf '\n## %s\n\n```text\n' "$1" >>"$details"
    "${@:2}" | tee -a "$details"
    printf '```\n' >>"$details"
    echo "bench: $1: $((SECONDS - from)) s"
}

section 'Floors' scripts/bench_floors.py "$out" "${quick[@]}"
section 'A sample' scripts/bench.py "$release" "$out" "${quick[@]}"
section 'Many threads, and memory' scripts/bench_threads.py "$release" "$out" "${quick[@]}"
section 'A report, an export, a recording' scripts/bench_reports.py "$release" "$out" "${quick[@]}"
section 'A call that a shadow stack records' dvm-patch/bench/shadow_call.sh
section 'The name of a method by remapping' dvm-patch/bench/remap.sh "$release/varid" "$release/boot.dex" "$target"/testbed/workloads/*.dex
section 'The name of an address' scripts/bench_symbols.py "$release" "$out" "${quick[@]}"
wall=$((SECONDS - begun))
count_own
foreign=$(percent "$before" "$(awk -v now="$own" -v before="$own_before" 'BEGIN { print now - before }')" "$wall")

written=$out/document
{
    cat <<END
# What things cost here

What \`make bench\` printed last. Compare figures of one run only: machines differ, and so does one machine from hour to hour. A goal is
therefore a ratio of two figures of this run, or a size. What else is measured stands beside the same of perf, samply and inferno, with the
range of the rounds, in which they took turns. What is measured on the board are [exact counts of instructions](board-cost.md), which depend
on no machine's load. A floor is what no recorder or reader can be below.

| | |
|---|---|
| commit | $(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD -- || echo ', with changes') |
| processors | $(nproc), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1) |
| kernel | $(uname -r) |
| perf | $(perf --version | sed 's/^perf version //') |
| from crates.io | $(find "$out/peers/.crates.toml" -exec sed -nE 's/^"([^ ]+) ([^ ]+) .*/\1 \2/p' {} + 2>/dev/null | paste -sd, | sed 's/,/, /; s/^$/nothing/') |
| other processes before the run | $others % of the processors |
| other processes in the run | $foreign % of the processors; the kernel's own, and what the measured programs left to them, included |
| minutes | $(((wall + 30) / 60)) |

## Goals

END
    scripts/bench_goals.py "$VARID_BENCH_RESULTS" docs/board-cost.md
    cat "$details"
} >"$written"
[ "${#quick[@]}" -gt 0 ] || mv "$written" "$document"
echo "bench: $(sed -n 's/^Met: /goals met: /p' "${written}" "$document" 2>/dev/null | tail -n 1) $wall s"
