#!/bin/sh
# Where does boot.dex come from? This writes it: the boot class path of artvm, assembled into OUTDIR/boot.dex.
# usage: build.sh OUTDIR [RELEASE]      RELEASE of ART: 11 (the default) or 14
# Does nothing when the sources are those of OUTDIR/boot.sig. Needs python3 and smali (apt install libsmali-java).
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
demands=boot-class-path-${2:-11}.tsv
if [ $# -lt 1 ] || [ $# -gt 2 ] || [ ! -e "$here/$demands" ]; then
    echo "usage: $0 OUTDIR [11|14]" >&2
    exit 2
fi
for tool in python3 smali flock; do
    if ! command -v "$tool" >/dev/null; then
        echo "$0: $tool is missing: apt install python3 libsmali-java util-linux" >&2
        exit 1
    fi
done
mkdir -p "$1"
out=$(CDPATH='' cd -- "$1" && pwd)

# One at a time: tests that run side by side all call this.
exec 9>"$out/.boot.lock"
flock 9

signature=$(cd "$here" && find build.sh generate.py "$demands" overlay -type f -print0 | LC_ALL=C sort -z |
    xargs -0 sha256sum | sha256sum | cut -d' ' -f1)
if [ -f "$out/boot.dex" ] && [ "$(cat "$out/boot.sig" 2>/dev/null)" = "$signature" ]; then
    exit 0
fi
work=$(mktemp -d "$out/.boot.XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 "$here/generate.py" "$here/$demands" "$work/smali"
# Dex 039: the newest that libart 11 reads; 14 reads it, too. One job: with several, the order of the strings, and so the file, would
# differ from run to run.
smali assemble --jobs 1 --api 29 --output "$work/boot.dex" "$work/smali"
mv "$work/boot.dex" "$out/boot.dex"
echo "$signature" >"$out/boot.sig"
