#!/bin/bash
# Where are the headers of a Debian kernel? Fetches and unpacks what building a module for it takes.
# usage: headers.sh ARCH SUITE RELEASE      prints the folder that KDIR is; RELEASE as uname -r says it, with its flavour
# Exit status 3: they are not in the cache and cannot be fetched.
set -euo pipefail

[ $# -eq 3 ] || { sed -n '3s/^# *//p' "$0" >&2; exit 2; }
arch=$1
suite=$2
release=$3
cd "$(dirname "$0")/../.."
prefix=$(realpath -m "${CARGO_TARGET_DIR:-target}")/board/headers/$arch-$release
folder=$prefix/usr/src/linux-headers-$release
mkdir -p "$(dirname "$prefix")"
# Two tests may want them at the same time.
exec 7>"$prefix.lock"
flock 7
if [ ! -e "$prefix/complete" ]; then
    version=${release%%-[a-z]*}
    tools=$version # 6.12.107+deb13; older ones are shared by all of 6.1
    [[ $version == *+* ]] || tools=$(cut -d. -f1,2 <<<"$version")
    debs=$(tests/board/packages.sh "$arch" "$suite" "linux-headers-$release" "linux-headers-$version-common")
    # The tools run here.
    debs+=" $(tests/board/packages.sh "$(dpkg --print-architecture)" "$suite" "linux-kbuild-$tools")"
    rm -rf "$prefix"
    mkdir -p "$prefix"
    for deb in $debs; do
        dpkg-deb -x "$deb" "$prefix"
    done
    sed -i "s,/usr/src/,$prefix/usr/src/,; s,/usr/lib/linux-kbuild,$prefix/usr/lib/linux-kbuild,; s,$prefix$prefix,$prefix," "$folder/Makefile"
    touch "$prefix/complete"
fi
echo "$folder"
