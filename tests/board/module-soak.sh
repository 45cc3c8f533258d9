#!/bin/bash
# Does the module come and go thousands of times on a board under load, and take what a fuzzer does, without a trace?
# usage: module-soak.sh [ARCH [CYCLES [STEPS]]]      arm64, 10000 loads and unloads, 4 x 10000 steps of the fuzzer
# Half an hour. The board counts 16 ns an instruction: what it waits for costs this machine little.
set -euo pipefail

arch=${1:-arm64}
cycles=${2:-10000}
steps=${3:-10000}
case $arch in
arm64) compiler=aarch64-linux-gnu-gcc ;;
armhf) compiler=arm-linux-gnueabihf-gcc ;;
*) sed -n '3s/^# *//p' "$0" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/../.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
image=$target/board/image/$arch
tests/board/image.sh "$arch" "$image"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tests/board/module.sh "$arch" "$(cat "$image/release")" "$work/module"
mkdir "$work/job"
cp "$work/module/varid.ko" tests/board/module/soak.sh "$work/job/"
for program in session fuzz; do
    "$compiler" -O1 -Wall -Wextra -Werror -static -Ikmod-shim/include -Idvm-patch/include -o "$work/job/$program" \
        "tests/board/module/$program.c"
done
printf '#!/bin/sh\nexec ./soak.sh %s %s\n' "$cycles" "$steps" >"$work/job/run"
chmod +x "$work/job/run"
tests/board/boot.sh "$arch" "$image" run "$work/job" -icount "shift=4,sleep=off" | tee "$work/log"
grep -q '^job: exit status 0' "$work/log"
