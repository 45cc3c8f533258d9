#!/bin/bash
# How is the kernel module built for the board? From the sources that users get, against its kernel's headers.
# usage: module.sh ARCH RELEASE OUT [SUITE] [ARGUMENT-OF-MAKE...]      OUT gets varid.ko; RELEASE as image.sh names the kernel
# Exit status 3: the headers are not in the cache and cannot be fetched. A cross compiler does the work.
set -euo pipefail

[ $# -ge 3 ] || { sed -n '3s/^# *//p' "$0" >&2; exit 2; }
arch=$1
release=$2
out=$(realpath -m "$3")
suite=${4:-bookworm}
shift $(($# < 4 ? $# : 4))
case $arch in
arm64) kernel=arm64 tools=aarch64-linux-gnu- ;;
armhf) kernel=arm tools=arm-linux-gnueabihf- ;;
amd64) kernel=x86 tools='' ;;
*) echo "module: unknown architecture $arch" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/../.."
headers=$(tests/board/headers.sh "$arch" "$suite" "$release")
sources=$out/varid-module
kmod-shim/module/sources.sh "$sources"
# Debian's headers name the compiler of their release; this one will do. A module without BTF will do, too.
make -s -C "$sources" KDIR="$headers" ARCH=$kernel CROSS_COMPILE=$tools CC="${tools}gcc" CONFIG_DEBUG_INFO_BTF_MODULES= "$@" 2>&1 |
    { grep -v -e 'Skipping BTF generation' -e 'compiler differs' -e 'kernel was built by' -e 'You are using' || true; } >&2
"${tools}strip" --strip-debug -o "$out/varid.ko" "$sources/varid.ko"
