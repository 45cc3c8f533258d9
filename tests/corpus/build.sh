#!/bin/sh
# Which dex files hold what compilers seldom write? This assembles the smali files beside it, once for each version of
# the format, into OUTDIR/corpus-035.dex, -037.dex, -038.dex and -039.dex. Needs smali (apt install libsmali-java).
# usage: build.sh OUTDIR
set -eu

[ $# -eq 1 ] || { echo "usage: build.sh OUTDIR" >&2; exit 2; }
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
command -v smali >/dev/null || { echo "build.sh: smali is missing: apt install libsmali-java" >&2; exit 1; }
mkdir -p "$1"
out=$(CDPATH='' cd -- "$1" && pwd)
# Tests that run side by side may share OUTDIR.
exec 9>"$out/.lock"
flock 9
sum=$(find "$here" -type f -not -name fetch.sh -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
[ "$sum" != "$(cat "$out/.built" 2>/dev/null)" ] || exit 0

# Jumps that need 16 and 32 bits, to both sides, and a method of more code units than 16 bits count.
mkdir -p "$out/generated"
awk 'function nops(n) { while (n--) print "    nop" }
BEGIN {
    print ".class public Lorg/example/corpus/Far;\n.super Ljava/lang/Object;\n.source \"Far.java\""
    print ".method static far(I)V\n    .registers 1\n    .line 1\n    goto/32 :end\n    :start\n    .line 2\n    goto :near\n    goto/16 :middle"
    print "    if-eqz p0, :middle\n    :near"
    nops(200)
    print "    :middle\n    .line 3\n    if-eq p0, p0, :near\n    goto/16 :start\n    sparse-switch p0, :table"
    nops(70000)
    print "    :end\n    .line 4\n    goto/32 :start\n    goto/32 :self\n    :self\n    goto/32 :self\n    return-void"
    print "    :table\n    .sparse-switch\n        0x1 -> :start\n    .end sparse-switch\n.end method"
    # Room for a test to put instructions of its own into.
    print ".method static room()V\n    .registers 16\n    .line 1"
    nops(8000)
    print "    return-void\n.end method"
}' >"$out/generated/Far.smali"

assemble() { # VERSION API FOLDER...
    version=$1
    api=$2
    shift 2
    # One job: with several, the order of the strings, and so the file, would differ from run to run.
    rm -f "$out/corpus-$version.dex"
    smali assemble --jobs 1 --api "$api" --output "$out/corpus-$version.dex" "$out/generated" "$@"
    # smali's exit status is 0 even if it refuses a file.
    [ -e "$out/corpus-$version.dex" ] || { echo "build.sh: smali made no corpus-$version.dex" >&2; exit 1; }
}
assemble 035 15 "$here/smali"
assemble 037 24 "$here/smali"
assemble 038 26 "$here/smali" "$here/smali-26"
assemble 039 28 "$here/smali" "$here/smali-26" "$here/smali-28"
echo "$sum" >"$out/.built"
