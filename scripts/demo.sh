#!/bin/bash
# What does varid show of a dex app that plain perf does not? Runs SciMark and Linpack in ART and prints both profiles, then the same app
# interpreted and compiled, compared.
# usage: demo.sh RELEASE-FOLDER WORKLOADS-FOLDER OUTPUT-FOLDER
# ART's compiler, on x86-64 only, is built when it is not there: one or two minutes. VARID_DEMO_COMPILED=if-built does not build it.
set -euo pipefail

[ $# -eq 3 ] || { echo "usage: demo.sh RELEASE-FOLDER WORKLOADS-FOLDER OUTPUT-FOLDER" >&2; exit 2; }
here=$(dirname "$0")
release=$1
workloads=$2
out=$3
session=$out/session
plain=$out/plain.perf.data
rate=1000
app=("$release/artvm" --dex "$workloads/math.dex" --name org.example.math org.example.math.Main run 60)

title() {
    printf '\n== %s\n\n' "$*"
}

of_perf() { # ARGUMENT...: the first rows of a report of perf
    perf report --stdio --percent-limit 1 "$@" 2>/dev/null | sed -nE 's/^( +[0-9.]+%.*[^ -])[ -]*$/\1/p' | head -n 16 || true
}

paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null || echo 4)
if [ "$(id -u)" -ne 0 ] && [ "$paranoid" -gt 2 ]; then
    echo "demo: the kernel lets nobody but root sample (perf_event_paranoid is $paranoid): run as root," >&2
    echo "demo: or sysctl kernel.perf_event_paranoid=2 for a profile without the kernel" >&2
    exit 1
fi
mkdir -p "$out"

fail() { # WHY
    echo "demo: $1" >&2
    exit 1
}

title "varid record: the app, every method, native function and kernel function"
echo "\$ varid record -F $rate -o $session -- ${app[*]}"
"$release/varid" record -F "$rate" -o "$session" -- "${app[@]}" || fail "the app or its recording failed (exit status $?): see above"
read -r event frames < <(python3 - "$session/session.json" <<'END'
import json, sys
manifest = json.load(open(sys.argv[1]))
frames = {"bpf": "by the BPF program at the sample's instant", "perf": "from copies of the stack (not root: no BPF)"}
print(manifest["event"]["name"], frames[manifest["source"]])
END
)
echo "demo: frames were walked $frames"

title "varid report: layers, then symbols"
echo "\$ varid report -i $session"
"$release/varid" report -i "$session" >"$out/report.txt"
head -n 60 "$out/report.txt"
grep -q org.example.math.Linpack.daxpy "$out/report.txt" || fail "the report does not name the app's methods"

title "varid report --by line: the lines of its source"
echo "\$ varid report -i $session --by line"
"$release/varid" report -i "$session" --by line >"$out/lines.txt"
awk '/source line/ { table = 1 } table && rows++ < 16 { print substr($0, 1, 140) }' "$out/lines.txt"

title "perf report of the same recording: plain perf shows the same methods"
echo "\$ perf report -i $session/perf.data --sort dso,symbol"
of_perf -i "$session/perf.data" --no-children -g none --sort dso,symbol

title "plain perf record of the same command: addresses in libart"
echo "\$ perf record -e $event -F $rate -- ${app[*]}"
perf record -q -e "$event" -F "$rate" -o "$plain" -- "${app[@]}" || fail "perf record failed (exit status $?)"
of_perf -i "$plain" --no-children --sort dso,symbol

title "varid diff: the same app interpreted and compiled"
# More rounds than above, of which compiled code leaves few samples.
rounds=300
without() { # WHY: there is no compiled half
    echo "demo: the compiled half is left out: $1"
    exit 0
}
[ "$(uname -m)" = x86_64 ] || without "ART's compiler is built for x86-64 only, and this is $(uname -m)"
if [ ! -e "$release/libart-compiler.so" ]; then
    [ "${VARID_DEMO_COMPILED:-}" != if-built ] || without "ART's compiler is not built here ('make art-compiler' does that)"
    echo "demo: building ART's compiler from Debian's source: one or two minutes, this once; it stays in $release"
    "$here/deps.sh" --compiler || without "what builds ART's compiler is not installed (exit status $?)"
fi
"$here/../tests/art11/build.sh" "$release" || without "ART's compiler could not be built (exit status $?)"

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
