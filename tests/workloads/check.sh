#!/bin/sh
# Does every workload return what expected.py says? Exit status 0 if all do.
# usage: check.sh ARTVM OUTDIR [ARTVM-OPTION...]        OUTDIR is build.sh's
set -eu

[ $# -ge 2 ] || { echo "usage: check.sh ARTVM OUTDIR [ARTVM-OPTION...]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
artvm=$1
out=$2
shift 2
wanted=$(mktemp)
trap 'rm -f "$wanted"' EXIT
"$here/expected.py" >"$wanted"

checked=0
wrong=0
while read -r package method rounds result; do
    library=
    [ -e "$out/lib$package.so" ] && library="--lib $out/lib$package.so"
    # shellcheck disable=SC2086 # the option and its value are two words, or none
    found=$("$artvm" --dex "$out/$package.dex" --name "org.example.$package" $library "$@" \
        "org.example.$package.Main" "$method" "$rounds" </dev/null) || found="exit status $?"
    checked=$((checked + 1))
    if [ "$found" != "$result" ]; then
        echo "org.example.$package.Main.$method($rounds): $found, not $result" >&2
        wrong=$((wrong + 1))
    fi
done <"$wanted"
echo "$checked results, $wrong wrong"
[ "$wrong" -eq 0 ] && [ "$checked" -gt 0 ]
