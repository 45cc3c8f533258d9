#!/bin/sh
# Does every workload return what expected.py says, and does the VM's own trace of the truth workload say what truth.json says?
# Exit status 0 if all do.
# usage: check.sh ARTVM OUTDIR [OPTIONS...]      OUTDIR is build.sh's; each OPTIONS, one word such as '--art 14 --int', is a VM to check
set -eu

[ $# -ge 2 ] || { echo "usage: check.sh ARTVM OUTDIR [OPTIONS...]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
artvm=$1
out=$2
shift 2
[ $# -gt 0 ] || set -- ''
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
wanted=$scratch/expected
trace=$scratch/trace
"$here/expected.py" >"$wanted"

checked=0
traced=0
wrong=0
# shellcheck disable=SC2086 # options are words
for options in "$@"; do
    while read -r package method rounds result; do
        library=
        [ -e "$out/lib$package.so" ] && library="--lib $out/lib$package.so"
        found=$("$artvm" --dex "$out/$package.dex" --name "org.example.$package" $library $options \
            "org.example.$package.Main" "$method" "$rounds" </dev/null) || found="exit status $?"
        checked=$((checked + 1))
        if [ "$found" != "$result" ]; then
            echo "org.example.$package.Main.$method($rounds)${options:+ with $options}: $found, not $result" >&2
            wrong=$((wrong + 1))
        fi
    done <"$wanted"

    for scenario in shares recursion pingPong interfaces exceptions threads tiny virtual locked jni; do
        "$artvm" --dex "$out/truth.dex" --name org.example.truth --lib "$out/libtruth.so" $options \
            --vm-option -Xmethod-trace --vm-option "-Xmethod-trace-file:$trace" --vm-option -Xmethod-trace-file-size:100000000 \
            org.example.truth.Main "$scenario" 1 </dev/null >/dev/null || wrong=$((wrong + 1))
        "$here/truth/compare_trace.py" "$out/truth.json" "$scenario" "$trace" || wrong=$((wrong + 1))
        traced=$((traced + 1))
    done
done
echo "$checked results, $traced traces, $wrong wrong"
[ "$wrong" -eq 0 ] && [ "$checked" -gt 0 ]
