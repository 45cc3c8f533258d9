#!/bin/bash
# Runs all benchmarks and, unless they are quick, writes what they print into a document, with the machine that they ran on.
# usage: bench.sh TARGET-FOLDER DOCUMENT [quick]
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
written=$out/document
load=$(cut -d' ' -f1-3 /proc/loadavg)

cat >"$written" <<END
# What things cost here

What \`make bench\` printed last. Compare figures of one run only: machines differ, and so does one machine from hour to hour.
perf's rows are of the same app, rate and run. [What profiling costs](board-cost.md) has exact counts of instructions, which depend on no
machine's load.

| | |
|---|---|
| commit | $(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD -- || echo ', with changes') |
| processors | $(nproc), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1) |
| kernel | $(uname -r) |
| perf | $(perf --version | sed 's/^perf version //') |
| load before the run | $load |
END

section() { # TITLE COMMAND...: runs it, and adds what it prints to the document
    printf '\n## %s\n\n```text\n' "$1" >>"$written"
    "${@:2}" | tee -a "$written"
    printf '```\n' >>"$written"
}

section 'A sample' scripts/bench.py "$release" "$out" "${quick[@]}"
section 'A call that a shadow stack records' dvm-patch/bench/shadow_call.sh
section 'The name of a method by remapping' dvm-patch/bench/remap.sh "$release/varid" "$release/boot.dex" "$target"/testbed/workloads/*.dex
section 'The name of an address' scripts/bench_symbols.py "$release" "$out" "${quick[@]}"
section 'A report, and an export' scripts/bench_reports.py "$release" "$out" "${quick[@]}"
[ "${#quick[@]}" -gt 0 ] || mv "$written" "$document"
