#!/bin/bash
# What does a JVM of Debian 13 need beside itself? Makes OUTDIR/jvm/VERSION: a root with that JVM, its C library and its dynamic linker.
# usage: build.sh OUTDIR VERSION      VERSION: 21 or 25
# Does nothing if the root is up to date. The packages are fetched by tests/board/packages.sh, 45 or 57 MB, and kept below target/; a root
# has 200 MB. Exit status 3: there is no such JVM for this machine, or a package is not in the cache and cannot be fetched.
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: build.sh OUTDIR VERSION" >&2; exit 2; }
here=$(realpath "$(dirname "$0")")
version=$2
out=$(realpath -m "$1")/jvm
command -v apt-get >/dev/null || { echo "jvm: no apt here: JVMs are fetched from Debian 13" >&2; exit 3; }
arch=$(dpkg --print-architecture)
[ "$arch" = amd64 ] || { echo "jvm: roots are made on amd64 only" >&2; exit 3; }
case $version in
21 | 25) ;;
*) echo "jvm: Debian 13 has JDK 21 and 25" >&2; exit 2 ;;
esac

mkdir -p "$out"
exec 8>"$out/.lock"
flock 8
signature=$(sha256sum "$here/build.sh" | cut -d' ' -f1)
[ "$(cat "$out/$version/signature" 2>/dev/null)" != "$signature" ] || exit 0

list=$("$here/../board/packages.sh" "$arch" trixie "openjdk-$version-jre-headless" libc6 libgcc-s1 libstdc++6 zlib1g liblcms2-2 libjpeg62-turbo) || exit
rm -rf "${out:?}/$version"
work=$(mktemp -d "$out/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
while read -r deb; do
    dpkg-deb -x "$deb" "$work"
done <<<"$list"
# Debian's base-files has these.
ln -s usr/lib64 "$work/lib64"
mkdir -p "$work/proc" "$work/tmp"
chmod 755 "$work"
echo "$signature" >"$work/signature"
mv "$work" "$out/$version"
echo "jvm: JDK $version is in $out/$version, after $SECONDS s"
