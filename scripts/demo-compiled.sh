#!/bin/bash
# What does compiling a dex app change? Runs SciMark and Linpack interpreted and compiled by ART's JIT, and compares their profiles.
# usage: demo-compiled.sh RELEASE-FOLDER WORKLOADS-FOLDER OUTPUT-FOLDER
# x86-64 only. RELEASE-FOLDER has ART's compiler ('make art-compiler').
set -euo pipefail

[ $# -eq 3 ] || { echo "usage: demo-compiled.sh RELEASE-FOLDER WORKLOADS-FOLDER OUTPUT-FOLDER" >&2; exit 2; }
release=$1
workloads=$2
out=$3
rate=1000
# Compiled code leaves few samples of fewer rounds.
rounds=300
mkdir -p "$out"

fail() { # WHY
    echo "demo-compiled: $1" >&2
    exit 1
}

[ "$(uname -m)" = x86_64 ] || fail "ART's compiler is built for x86-64 only, and this is $(uname -m)"
[ -e "$release/libart-compiler.so" ] || fail "$release has no libart-compiler.so: make art-compiler builds it"

app_in() { # HOW: the app's command line, interpreted or compiled
    local option=()
    [ "$1" = interpreted ] || option=(--jit)
    app=("$release/artvm" "${option[@]}" --dex "$workloads/math.dex" --name org.example.math org.example.math.Main run "$rounds")
}
TIMEFORMAT='%3R s, %3U s of CPU in user space and %3S s in the kernel'
for how in interpreted compiled; do
    app_in "$how"
    echo "\$ time ${app[*]}"
    time "${app[@]}"
done
for how in interpreted compiled; do
    app_in "$how"
    echo "\$ varid record -q -F $rate -o $out/$how -- ${app[*]}"
    "$release/varid" record -q -F "$rate" -o "$out/$how" -- "${app[@]}" || fail "the app or its recording failed (exit status $?)"
done
echo "\$ varid diff $out/interpreted $out/compiled -n 16"
"$release/varid" diff "$out/interpreted" "$out/compiled" -n 16
"$release/varid" report -i "$out/compiled" --by symbol >"$out/compiled.txt"
grep -q org.example.math.LU.factor "$out/compiled.txt" || fail "the report of the compiled app does not name its methods"
