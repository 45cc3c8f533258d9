#!/bin/bash
# What does each recorder cost an app? Runs tests/board/cost.sh twice on the board, where time is exact, and writes the table.
# usage: board-cost.sh TARGET-FOLDER DOCUMENT      after make board-products art-compiler; everything else that it makes is below TARGET-FOLDER/board
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: board-cost.sh TARGET-FOLDER DOCUMENT" >&2; exit 2; }
cd "$(dirname "$0")/.."
target=$(realpath "$1")
export CARGO_TARGET_DIR=$target
image=$target/board/image/arm64
out=$target/board/cost

rm -rf "$out"
mkdir -p "$out/job"
cp tests/board/cost.sh "$out/job/run"
cp "$target"/board/arm64/{varid,artvm,*.so} "$target/release/boot.dex" "$out/job"
cp -r "$target/board/arm64/art14" "$out/job"
tests/board/module.sh arm64 "$(cat "$image/release")" "$target/board/module/arm64"
cp "$target/board/module/arm64/varid.ko" "$out/job"
smali assemble --api 29 -o "$out/job/depth.dex" scripts/bench/Depth.smali
BOARD=/job tests/art11/compile.sh "$target/release" image "$out/job/image" "$out/job/depth.dex"
boots=()
trap 'kill "${boots[@]}" 2>/dev/null || true' EXIT
for boot in 1 2; do
    tests/board/boot.sh arm64 "$image" run "$out/job" >"$out/console.$boot" 2>&1 &
    boots+=($!)
done
for boot in "${boots[@]}"; do
    wait "$boot"
done
grep -a '^cost: ' "$out/console.1" >&2 && exit 1
scripts/board_cost.py "$out/console.1" "$out/console.2" "$(cat "$image/release")" >"$out/table.md"

# Of what these instructions are: QEMU counts them by their addresses. What lies between few calls and many is the same each call.
gcc -O2 -Wall -Wextra -Werror -shared -fPIC -o "$out/instructions.so" tests/board/instructions.c
counted() { # RECORDER DEPTH CALLS
    local run=$out/counted/$1.$2.$3
    mkdir -p "$run/job"
    cp "$out"/job/{varid,artvm,*.so,*.dex} "$run/job"
    cp tests/board/instructions.sh "$run/job/run"
    echo "$1 $2 $3" >"$run/job/parameters"
    tests/board/boot.sh arm64 "$image" run "$run/job" -plugin "$out/instructions.so,out=$run/counts" >"$run/console" 2>&1
    grep -aq '^job: exit status 0' "$run/console" || { echo "board-cost: $1 failed: $run/console" >&2; exit 1; }
}
for depth in 4 64; do
    for recorder in nothing dim varid perf; do
        boots=()
        for calls in 48 96; do
            counted $recorder $depth $calls &
            boots+=($!)
        done
        for boot in "${boots[@]}"; do
            wait "$boot"
        done
    done
done
scripts/board_instructions.py "$out/counted" "$target/cross/build/aarch64-unknown-linux-musl/release/varid" "$out/functions" >"$out/groups.md"
{
    cat <<'END'

## Where the instructions go

One more sample of the two recorders at 997 Hz, counted by QEMU at each address (`tests/board/instructions.c`): the difference of two runs that
differ in their length alone, less the same without the recorder. perf's own program is left out, because it reads at its end once more what
it has recorded. Negative numbers are work of the kernel's that the runs did not share.

END
    cat "$out/groups.md"
} >>"$out/table.md"
cp "$out/table.md" "$2"
sed -n '/^|/p' "$2"
