#!/bin/sh
# Which code does ART's compiler write ahead of time? This runs dex2oat, which build.sh has put into RELEASE-FOLDER beside boot.dex. ART 14's
# is in RELEASE-FOLDER/art14, which is given instead (tests/art14/compiler.sh): it runs under the dynamic linker there.
# usage: compile.sh RELEASE-FOLDER image DIR [DEX...] [-- OPTION...]
#            boot.dex and DEX become a boot image, DIR/x86_64/boot.art with code and vdex: for artvm --image DIR --dex DEX...
#        compile.sh RELEASE-FOLDER app IMAGE-DIR DIR DEX [-- OPTION...]
#            DEX is copied to DIR, beside its code, oat/x86_64/NAME.odex and NAME.vdex: for artvm --image IMAGE-DIR --app-dex DIR/NAME.dex
# OPTION is one of dex2oat, such as --compact-dex-level=none. What is written is the same each time, and stays if nothing has changed.
# With BOARD=FOLDER in the environment it is code for arm64, below arm64 instead of x86_64, of a board: it has all dex files in FOLDER.
set -eu

usage() {
    sed -n 's/^# usage: /usage: /p; s/^#\(        compile.sh\)/\1/p' "$0" >&2
    exit 2
}
[ $# -ge 3 ] || usage
# The names must be those that artvm gives.
release=$(realpath "$1")
kind=$2
board=${BOARD:-}
set=x86_64
[ -z "$board" ] || set=arm64
mkdir -p "$3"
image=$(realpath "$3")
shift 3
out=$image
case $kind in
image) ;;
app)
    [ $# -ge 2 ] || usage
    mkdir -p "$1"
    out=$(realpath "$1")
    shift
    ;;
*) usage ;;
esac
# Tests that run side by side may share DIR.
exec 9>"$out/.lock"
flock 9

files=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    files="$files $(realpath "$1")"
    shift
done
[ $# -eq 0 ] || shift

is_new() { # NAME FILE...: whether NAME is not yet made of just these files, with the options; notes the files for made
    made=$out/.$1.made
    shift
    key=$(echo "$options"; sha256sum "$0" "$release/dex2oat" "$release/libart-compiler.so" "$@")
    [ "$key" != "$(cat "$made" 2>/dev/null)" ]
}

linker=$release/ld-linux-x86-64.so.2

dex2oat() { # OPTION...
    if [ -x "$linker" ]; then
        set -- "$linker" --library-path "$release" "$release/dex2oat" "$@"
    else
        set -- "$release/dex2oat" "$@"
    fi
    # Its log: errors only, unless the caller wants more.
    ANDROID_LOG_TAGS=${ANDROID_LOG_TAGS:-*:e} "$@" --android-root="$image" --instruction-set="$set" -j1 \
        --force-determinism --runtime-arg -Xms64m --runtime-arg -Xmx64m
    echo "$key" >"$made"
}

there() { # FILE: what the process that runs the code calls it
    if [ "$board" ]; then echo "$board/${1##*/}"; else echo "$1"; fi
}

options="$board $*"
if [ "$kind" = image ]; then
    # shellcheck disable=SC2086 # a list
    is_new image "$release/boot.dex" $files || exit 0
    mkdir -p "$out/$set"
    rm -f "$out/$set"/boot*
    for file in "$release/boot.dex" $files; do
        set -- "$@" --dex-file="$file" --dex-location="$(there "$file")"
    done
    dex2oat --image="$out/$set/boot.art" --oat-file="$out/$set/boot.oat" --base=0x70000000 "$@"
else
    file=${files# }
    name=$(basename "$file")
    # The image's oat file depends on all that is in the image.
    is_new "$name" "$image/$set/boot.oat" "$file" || exit 0
    mkdir -p "$out/oat/$set"
    cp "$file" "$out/$name"
    dex2oat --boot-image="$image/boot.art" --runtime-arg -Xbootclasspath:"$release/boot.dex" \
        --runtime-arg -Xbootclasspath-locations:"$(there "$release/boot.dex")" \
        --dex-file="$out/$name" --dex-location="$(there "$out/$name")" --oat-file="$out/oat/$set/${name%.*}.odex" "$@"
fi
