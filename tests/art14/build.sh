#!/bin/bash
# What does ART 14 need beside artvm? Puts it into OUTDIR/art14: Debian 13's libart with its libraries, that release's C library and
# dynamic linker, and the boot class path.
# usage: build.sh OUTDIR [ARCH]      ARCH: amd64 or arm64 [default: this machine's]
# Does nothing if OUTDIR/art14 is up to date. The packages are fetched by tests/board/packages.sh, 9 MB, and kept below target/; the
# first build takes about 10 seconds and says how many. Exit status 3: there is no ART 14 for this machine, or a package is not in the
# cache and cannot be fetched.
set -euo pipefail

[ $# -eq 1 ] || [ $# -eq 2 ] || { echo "usage: build.sh OUTDIR [ARCH]" >&2; exit 2; }
here=$(realpath "$(dirname "$0")")
out=$(realpath -m "$1")/art14
command -v apt-get >/dev/null || { echo "art14: no apt here: ART 14 is fetched from Debian 13" >&2; exit 3; }
arch=${2:-$(dpkg --print-architecture)}
packages=(android-libart android-libbacktrace android-libbase android-liblog android-libnativebridge android-libnativeloader
    android-libziparchive 7zip liblz4-1 libtinyxml2-11 libxxhash0 zlib1g libc6 libgcc-s1 libstdc++6)
# Not declared by libart: see tests/artvm/src/release/art14.rs.
libraries=(libart.so.0 libbacktrace.so.0 libbase.so.0 libcpu_features.so.0 libdexfile_support.so.0 liblog.so.0
    libnativebridge.so libnativeloader.so.0 libsigchain.so.0 libziparchive.so.0 7z.so liblz4.so.1 libtinyxml2.so.11 libxxhash.so.0 libz.so.1
    libc.so.6 libgcc_s.so.1 libm.so.6 libstdc++.so.6)
case $arch in
amd64) libraries+=(ld-linux-x86-64.so.2) ;;
arm64) libraries+=(ld-linux-aarch64.so.1) ;;
*) echo "art14: artvm starts no ART 14 on $arch: there are amd64 and arm64" >&2; exit 3 ;;
esac

mkdir -p "$out"
# Test programs that run side by side may share OUTDIR.
exec 8>"$out/.lock"
flock 8
"$here/../bootclasspath/build.sh" "$out" 14
signature=$(sha256sum "$here/build.sh" | cut -d' ' -f1)-$arch
[ "$(cat "$out/signature" 2>/dev/null)" != "$signature" ] || exit 0

list=$("$here/../board/packages.sh" "$arch" trixie "${packages[@]}") || exit
work=$(mktemp -d "$out/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
while read -r deb; do
    dpkg-deb -x "$deb" "$work"
done <<<"$list"
for name in "${libraries[@]}"; do
    file=$(find "$work"/usr/lib -name "$name" | head -n 1)
    [ -n "$file" ] || { echo "art14: $name is in no package" >&2; exit 1; }
    # By rename, so that a VM that has the old one mapped keeps it.
    cp -L "$file" "$work/new"
    mv "$work/new" "$out/$name"
done
echo "$signature" >"$out/signature"
echo "art14: ART 14 for $arch is in $out, after $SECONDS s"
