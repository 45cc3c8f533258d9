#!/bin/bash
# What does varid show of a dex app that plain perf does not? Runs SciMark and Linpack in ART and prints both profiles.
# usage: demo.sh RELEASE-FOLDER WORKLOADS-FOLDER OUTPUT-FOLDER
set -euo pipefail

[ $# -eq 3 ] || { echo "usage: demo.sh RELEASE-FOLDER WORKLOADS-FOLDER OUTPUT-FOLDER" >&2; exit 2; }
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

[ "$(uname -m)" != x86_64 ] || printf '\ndemo: make demo-compiled compares this app interpreted and compiled; it first builds the compiler of ART (five CPU minutes)\n'
