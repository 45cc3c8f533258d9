#!/bin/bash
# What does each recorder cost an app? Runs tests/board/cost.sh twice on the board, where time is exact, and writes the table.
# usage: board-cost.sh TARGET-FOLDER DOCUMENT      after make board-products; everything else that it makes is below TARGET-FOLDER/board
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
tests/board/module.sh arm64 "$(cat "$image/release")" "$target/board/module/arm64"
cp "$target/board/module/arm64/varid.ko" "$out/job"
smali assemble --api 29 -o "$out/job/depth.dex" scripts/bench/Depth.smali
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
cp "$out/table.md" "$2"
sed -n '/^|/p' "$2"
