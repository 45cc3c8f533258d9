#!/bin/bash
# How is the kernel module built for the board? From the sources that users get, against its kernel's headers.
# usage: module.sh ARCH RELEASE OUT      OUT gets varid.ko; RELEASE as image.sh names the kernel
# Exit status 3: the headers are not in the cache and cannot be fetched. A cross compiler does the work.
set -euo pipefail

[ $# -eq 3 ] || { sed -n '3s/^# *//p' "$0" >&2; exit 2; }
arch=$1
release=$2
out=$(realpath -m "$3")
case $arch in
arm64) kernel=arm64 tools=aarch64-linux-gnu- ;;
armhf) kernel=arm tools=arm-linux-gnueabihf- ;;
*) echo "module: unknown architecture $arch" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/../.."
headers=$(realpath -m "${CARGO_TARGET_DIR:-target}")/board/headers/$arch-$release
common=linux-headers-${release%%-[a-z]*}-common
base=${release%%-*}

if [ ! -e "$headers/complete" ]; then
    rm -rf "$headers"
    mkdir -p "$headers"
    # The tools that build run here; the headers are the board's.
    debs=$(tests/board/packages.sh "$arch" bookworm "linux-headers-$release" "$common")
    debs+=" $(tests/board/packages.sh "$(dpkg --print-architecture)" bookworm "linux-kbuild-${base%.*}")"
    for deb in $debs; do
        dpkg-deb -x "$deb" "$headers"
    done
    sed -i "s,^include /usr/src/,include $headers/usr/src/," "$headers/usr/src/linux-headers-$release/Makefile"
    touch "$headers/complete"
fi
sources=$out/varid-module
kmod-shim/module/sources.sh "$sources"
# Without the kernel's image there is no BTF for a module, which needs none.
make -s -C "$sources" KDIR="$headers/usr/src/linux-headers-$release" ARCH=$kernel CROSS_COMPILE=$tools 2>&1 >&2 |
    { grep -v 'Skipping BTF generation' >&2 || true; }
cp "$sources/varid.ko" "$out/"
