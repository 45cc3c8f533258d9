#!/bin/bash
# What of the project runs on a board? Builds it for the board's processor: products.sh [--trial] ARCH [OUTDIR]
# ARCH: arm64 | armhf. OUTDIR (by default TARGET/board/ARCH) gets varid as boards have it (cross.sh --board, or --trial), libvarid_art.so,
# artvm with the libraries that stand beside it, the workloads' libraries, and shadowvm/; arm64 also ART 14, areavm/ and shadowvm32/, which runs
# there as a 32-bit process. Other dex files are the same for every processor: make testbed. Exit status 3: rustup's standard library for ARCH is
# not installed, or ART 14's packages cannot be fetched.
set -euo pipefail

usage="usage: products.sh [--trial] arm64|armhf [OUTDIR]"
kind=--board
if [ "${1:-}" = --trial ]; then
    kind=$1
    shift
fi
[ $# -eq 1 ] || [ $# -eq 2 ] || { echo "$usage" >&2; exit 2; }
case $1 in
arm64) target=aarch64-unknown-linux-gnu tools=aarch64-linux-gnu ;;
armhf) target=armv7-unknown-linux-gnueabihf tools=arm-linux-gnueabihf ;;
*) echo "$usage" >&2; exit 2 ;;
esac
root=$(cd "$(dirname "$0")/../.." && pwd)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
out=${2:-$CARGO_TARGET_DIR/board/$1}
mkdir -p "$out"
out=$(cd "$out" && pwd)
# Test programs that run side by side may share OUTDIR.
exec 9>"$out/.lock"
flock 9

if [ ! -d "$(rustc --print target-libdir --target "$target")" ]; then
    echo "products: rust has no $target here: rustup target add $target" >&2
    exit 3
fi
new=$out/.new
mkdir -p "$new"
"$root/scripts/cross.sh" "$kind" "$1" "$new"
cd "$root"
# cross.sh's folder.
built=$CARGO_TARGET_DIR/cross/build
cargo build --quiet --locked --release --target "$target" --target-dir "$built" -p artvm
"$tools-strip" --strip-debug -o "$new/artvm" "$built/$target/release/artvm"
for library in libicu_jni.so libjavacore.so libopenjdk.so; do
    cp "$built/$target/release/$library" "$new/"
done

[ "$1" != arm64 ] || tests/art14/build.sh "$out" arm64

in_c() { # ARCH
    # Frames that the kernel can follow: Thumb code has none.
    local frames="-marm -mapcs-frame"
    CC=$tools-gcc tests/workloads/libraries.sh "$new"
    case $1 in
    arm64)
        CC=$tools-gcc tests/shadowvm/build.sh "$new/shadowvm"
        CC=$tools-gcc tests/areavm/build.sh "$new/areavm"
        CC=arm-linux-gnueabihf-gcc CFLAGS="$frames -static" tests/shadowvm/build.sh "$new/shadowvm32"
        ;;
    armhf) CC=$tools-gcc CFLAGS=$frames tests/shadowvm/build.sh "$new/shadowvm" ;;
    esac
}

# It takes longer to compile than to look through: only where something is newer than when it was begun last.
begun=$out/.begun
sources=(tests/workloads tests/shadowvm tests/areavm tests/methods dvm-patch tests/board/products.sh)
if [ ! -e "$begun" ] || [ -n "$(find "${sources[@]}" -newer "$begun" -not -path '*/__pycache__*' -print -quit)" ]; then
    # Until all of it is there it is not done.
    rm -f "$begun"
    touch "$new.begun"
    in_c "$1"
fi
# By rename: another test program may be reading what was there.
cd "$new"
find . -type d -exec mkdir -p "$out/{}" \;
find . -type f -exec mv {} "$out/{}" \;
[ ! -e "$new.begun" ] || mv "$new.begun" "$begun"
