#!/bin/bash
# What did the paper measure, and what is it here? Runs tests/board/paper.sh on the board and writes docs/evaluation.md of its figures.
# usage: paper.sh TARGET-FOLDER DOCUMENT      after make build; everything else that it makes is below TARGET-FOLDER/board
# Leaves the document as it is, and says so, where the board's packages can be had neither from the cache nor by network, or varid cannot
# record. It needs no root where perf_event_paranoid is at most 2.
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: paper.sh TARGET-FOLDER DOCUMENT" >&2; exit 2; }
cd "$(dirname "$0")/.."
target=$(realpath "$1")
export CARGO_TARGET_DIR=$target
image=$target/board/image/arm64
out=$target/board/paper

skip() { # WHY
    echo "paper: skipped: $1, for the reason above: $2 stays as it is" >&2
    exit 0
}

rm -rf "$out"
mkdir -p "$out"
# Sizes of logs are measured here: whether that can be done should not come to light when the board has run for ten minutes.
if ! "$target/release/varid" record -o "$out/trial" -- true >"$out/log" 2>&1; then
    cat "$out/log" >&2
    skip "nothing can be recorded here" "$2"
fi
rm -rf "$out/trial"
status=0
tests/board/image.sh arm64 "$image" || status=$?
[ $status -ne 0 ] || tests/board/products.sh arm64 || status=$?
[ $status -ne 3 ] || skip "there is no board here" "$2"
[ $status -eq 0 ] || exit $status
# How many rounds a run of each is, and of how many steps of work an interpreter calls a method as often as it does (paper.py checks that).
cat >"$out/workloads" <<END
math 1 350
cradle 20 190
vm 1 44
scene 5 145
END
for part in times layers; do
    mkdir -p "$out/$part"
    cp tests/board/paper.sh "$out/$part/run"
    cp "$out/workloads" "$out/$part"
    cp "$target"/board/arm64/{varid,artvm,*.so} "$target/release/boot.dex" "$target"/testbed/workloads/{math,cradle,vm,scene}.dex "$out/$part"
    mkdir "$out/$part/shadowvm"
    cp "$target"/board/arm64/shadowvm/{shadowvm,plainvm,shadow.dex} "$out/$part/shadowvm"
    echo "$part" >"$out/$part/part"
done
boots=()
trap 'kill "${boots[@]}" 2>/dev/null || true' EXIT
# Time is exact: twice, to see that it is.
for boot in times times.again layers; do
    tests/board/boot.sh arm64 "$image" run "$out/${boot%.again}" >"$out/console.$boot" 2>&1 &
    boots+=($!)
done
for boot in "${boots[@]}"; do
    wait "$boot"
done
if grep -a -A 9 '^paper: ' "$out"/console.* >&2; then
    exit 1
fi
# How large the logs get is the same anywhere, and here it takes less time. Lines PAPER code WORKLOAD BYTES, of the app's dex file, and
# PAPER size WORKLOAD WHAT LENGTH BYTES, after so many times the shortest run. WHAT: load-from-dex, the substitute symbol file of the app's dex file;
# method-invoke, the log of events; of load-from-dex's session also perf.data, the samples, and all-else. What the substitute symbol file of the
# framework, if it is sampled, adds once: PAPER framework WORKLOAD BYTES. And PAPER invokes WORKLOAD LENGTH COUNT.
sizes() { # WORKLOAD ROUNDS
    local release=$target/release workloads=$target/testbed/workloads length tactic log logged
    local session=$out/$1/sizes app=("$release/artvm" --dex "$workloads/$1.dex" --name "org.example.$1")
    [ ! -e "$workloads/lib$1.so" ] || app+=(--lib "$workloads/lib$1.so")
    app+=("org.example.$1.Main" run)
    echo "PAPER code $1 $(stat -c %s "$workloads/$1.dex")"
    for length in 1 2 4 7 10; do
        for tactic in load-from-dex method-invoke; do
            log=()
            [ "$tactic" != method-invoke ] || log=(--log-calls)
            rm -rf "$session"
            "$release/varid" record --tactic "$tactic" "${log[@]}" -o "$session" -- "${app[@]}" $((length * $2)) </dev/null >"$out/log" 2>&1 ||
                { cat "$out/log" >&2; return 1; }
            case $tactic in
            load-from-dex)
                logged=("$session/symbols/$(build_id "$workloads/$1.dex").substitute.sym")
                echo "PAPER size $1 perf.data $length $(stat -c %s "$session/perf.data")"
                find "$session" -type f -not -name perf.data -printf '%s\n' | awk -v what="PAPER size $1 all-else $length" '{ sum += $1 } END { print what, sum }'
                ;;
            method-invoke)
                logged=("$session"/calls.log.*)
                echo "PAPER invokes $1 $length $(invokes "$session")"
                ;;
            esac
            cat "${logged[@]}" | wc -c | sed "s/^/PAPER size $1 $tactic $length /"
        done
    done
    find "$session/symbols" -name "$(build_id "$release/boot.dex").substitute.sym" -printf "PAPER framework $1 %s\n"
    rm -rf "$session"
}

invokes() { # SESSION
    "$target/release/varid" report -i "$1" --by calls --format csv |
        python3 -c 'import csv, sys; print(sum(int(row["calls"]) for row in csv.DictReader(sys.stdin)))'
}

build_id() { # DEX: what a session knows the file by, its header's SHA-1
    od -An -tx1 -j12 -N20 -v "$1" | tr -d ' \n'
}

# What varid says of its sessions: lines like the console's, PAPER varid WORKLOAD TABLE CSV-LINE and PAPER calls WORKLOAD CSV-LINE.
report() { # WORKLOAD OPTION...
    local workload=$1
    shift
    "$target/release/varid" report -i "$out/$workload/session" --symbols "$target/board/arm64" --by-samples --format csv "$@"
}
while read -r workload rounds _; do
    mkdir "$out/$workload"
    sizes "$workload" "$rounds"
    sed -n "s/^TAR $workload //p" "$out/console.layers" | tr -d '\r' | base64 -d | tar -xz -C "$out/$workload"
    for table in layer image dim; do
        report "$workload" --by "$table" | sed "s/^/PAPER varid $workload $table /"
    done
    report "$workload" --callgraph --min-percent 2 | sed "s/^/PAPER calls $workload /"
done <"$out/workloads" >"$out/tables"
cat "$out/tables" >>"$out/console.layers"
scripts/paper.py "$out"/console.{times,times.again,layers} "$(cat "$image/release")" >"$out/evaluation.md"
cp "$out/evaluation.md" "$2"
sed -n '/^## Said and done/,$p' "$2"
