#!/bin/bash
# Which JVM runs on the 64-bit board? Makes OUTDIR of Debian 12's JDK 17: its programs and libraries, with the files that Debian has below /etc.
# usage: java.sh OUTDIR      OUTDIR/bin/java runs wherever the board has that folder, 160 MB.
# Does nothing if OUTDIR is up to date. The package of 43 MB is kept below target/. Exit status 3: it is not in the cache and cannot be fetched.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: java.sh OUTDIR" >&2; exit 2; }
here=$(realpath "$(dirname "$0")")
out=$(realpath -m "$1")
mkdir -p "$(dirname "$out")"
exec 8>"$out.lock"
flock 8
deb=$("$here/packages.sh" arm64 bookworm openjdk-17-jre-headless) || exit
signature=$(basename "$deb")-$(sha256sum "$here/java.sh" | cut -d' ' -f1)
[ "$(cat "$out/signature" 2>/dev/null)" != "$signature" ] || exit 0

work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
dpkg-deb -x "$deb" "$work"
home=$work/usr/lib/jvm/java-17-openjdk-arm64
# Archives of classes without compressed pointers, manuals, and an older compiler's symbols are for others.
rm -rf "$home"/{docs,legal,man} "$home/lib/ct.sym" "$home/lib/server/classes_nocoops.jsa"
find "$home" -lname '/etc/*' | while read -r link; do
    file=$work$(readlink "$link")
    rm "$link"
    # Certificates are in another package.
    [ ! -e "$file" ] || cp "$file" "$link"
done
echo "$signature" >"$home/signature"
rm -rf "$out"
mv "$home" "$out"
echo "java: $(basename "$deb") is in $out, after $SECONDS s"
