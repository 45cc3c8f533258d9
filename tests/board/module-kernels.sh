#!/bin/bash
# Does the module build, without a warning, for every kernel whose headers can be had?
# usage: module-kernels.sh      builds it for Debian's kernels of several releases and processors, with sparse where installed
set -euo pipefail

cd "$(dirname "$0")/../.."
out=$(realpath -m "${CARGO_TARGET_DIR:-target}")/board/module-kernels
checker=()
if command -v sparse >/dev/null; then
    checker=(C=2 "CF=-D__CHECK_ENDIAN__")
else
    echo "module-kernels: without sparse, which is not installed"
fi
failed=0
try() { # ARCH SUITE METAPACKAGE
    local arch=$1 suite=$2 release deb log status
    # Exit status 3: it can be had neither from the cache nor by network.
    status=0
    deb=$(tests/board/packages.sh "$arch" "$suite" "$3") || status=$?
    case $status in
    0) ;;
    3) echo "skipped: $arch, $suite"; return ;;
    *) echo "failed: $arch, $suite"; failed=1; return ;;
    esac
    release=$(basename "$deb" | sed 's/^linux-headers-//; s/_.*//')
    rm -rf "${out:?}/$arch-$release"
    mkdir -p "$out/$arch-$release"
    log=$out/$arch-$release/log
    tests/board/module.sh "$arch" "$release" "$out/$arch-$release" "$suite" W=1 "${checker[@]}" 2>"$log" || status=$?
    if [ $status -eq 3 ]; then
        echo "skipped: $arch, $release: $(cat "$log")"
    elif [ $status -eq 0 ] && [ ! -s "$log" ]; then
        echo "ok: $arch, $release"
    else
        echo "failed: $arch, $release"
        cat "$log"
        failed=1
    fi
}
try arm64 bookworm +linux-headers-cloud-arm64
try amd64 bookworm +linux-headers-amd64
try armhf bookworm +linux-headers-armmp
try arm64 bullseye +linux-headers-arm64
try amd64 bullseye +linux-headers-amd64
try armhf bullseye +linux-headers-armmp
try arm64 bookworm-backports +linux-headers-arm64
try amd64 bookworm-backports +linux-headers-amd64
try armhf bookworm-backports +linux-headers-armmp
exit $failed
