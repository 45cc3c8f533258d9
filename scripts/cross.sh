#!/bin/bash
# How is what goes onto a device built? varid, static, and the agent for its ART, for a processor that need not be this one.
# usage: cross.sh [--board | --trial] ARCH OUTDIR      ARCH: amd64 | arm64 | armhf (Debian's names; armhf is ARMv7 with hard floating point)
# Writes OUTDIR/varid (stripped) and OUTDIR/libvarid_art.so, and says their sizes. --board: varid without what a host does,
# as report and symbols; fails if that is larger than a board should have to store. --trial: the same to be tried, not shipped: it is
# not optimised as a whole, and in part not at all, which takes half the time. Exit status 3: rustup's standard library for ARCH is not installed.
set -euo pipefail

BOARD_LIMIT=$((5 << 20)) # bytes: 5 MiB

usage="usage: cross.sh [--board | --trial] amd64|arm64|armhf OUTDIR"
kind=
case ${1:-} in
--board | --trial)
    kind=${1#--}
    shift
    ;;
esac
[ $# -eq 2 ] || { echo "$usage" >&2; exit 2; }
features=()
optimised() { # LEVEL CRATE...: these crates are, as far as that
    local crate
    for crate in "${@:2}"; do
        features+=(--config "profile.release.package.$crate.opt-level=$1")
    done
}
[ -z "$kind" ] || features+=(--no-default-features)
# What runs at a person's pace; and what runs once.
slow=(clap_builder serde_json varid toml toml_datetime toml_parser tracing-core tracing-subscriber varid-demangle varid-symbolizer winnow)
once=(aya aya-obj lzma-rust2 object procfs procfs-core rustc-demangle ruzstd serde_core)
case $kind in
# Not at all: it is compiled in a third of the time.
trial) optimised 0 "${slow[@]}" ;;
# Small rather than fast.
board)
    optimised "'z'" "${slow[@]}" "${once[@]}"
    # It writes samples, too.
    optimised "'s'" varid-recording
    ;;
esac
# One program of many crates: optimised as a whole it is a fifth smaller.
[ "$kind" = trial ] || features+=(--config 'profile.release.lto="fat"')
# musl makes smaller static programs. There is no musl from rustup for ARMv7, so glibc is linked statically there.
musl=(-C link-arg=--icf=all) # equal functions are kept once
glibc=(-C target-feature=+crt-static)
case $1 in
amd64) target=x86_64-unknown-linux-musl gcc=gcc link=("${musl[@]}") ;;
arm64) target=aarch64-unknown-linux-musl gcc=aarch64-linux-gnu-gcc link=("${musl[@]}") ;;
armhf) target=armv7-unknown-linux-gnueabihf gcc=arm-linux-gnueabihf-gcc link=("${glibc[@]}") ;;
*) echo "$usage" >&2; exit 2 ;;
esac
if [ ! -d "$(rustc --print target-libdir --target "$target")" ]; then
    echo "cross: rust has no $target here: rustup target add $target" >&2
    exit 3
fi
mkdir -p "$2"
out=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
# A folder of its own: cargo lets one build at a time into one, and this one may run beside the host's.
built=${CARGO_TARGET_DIR:-target}/cross/build

# rustc, not build: these flags are for varid itself, so that what it is linked from can be shared with programs that are not
# static.
cargo rustc --quiet --locked --release --target-dir "$built" --target "$target" -p varid --bin varid "${features[@]}" -- "${link[@]}"
"${gcc%gcc}strip" -o "$out/.varid.new" "$built/$target/release/varid"
# By rename, so that what runs keeps its file.
mv "$out/.varid.new" "$out/varid"
CC=$gcc dvm-patch/build.sh "$out"
stat -c "cross: $1: %n %s bytes" "$out/varid" "$out/libvarid_art.so"
if readelf -lW "$out/varid" | grep INTERP; then
    echo "cross: varid is not static" >&2
    exit 1
fi
size=$(stat -c %s "$out/varid")
if [ "$kind" = board ] && [ "$size" -gt "$BOARD_LIMIT" ]; then
    echo "cross: varid for a board has $size bytes, more than $BOARD_LIMIT" >&2
    exit 1
fi
