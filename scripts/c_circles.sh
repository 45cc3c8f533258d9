#!/bin/bash
# Fails when C files of a folder use each other in a circle. Compiles each, and sorts them by the symbols that they share.
# usage: c_circles.sh FOLDER [COMPILER-ARGUMENT...]
set -euo pipefail
export LC_ALL=C

[ $# -ge 1 ] || { sed -n '3s/^# *//p' "$0" >&2; exit 2; }
folder=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for source in "$folder"/*.c; do
    object=$work/$(basename "$source" .c)
    cc -c -o "$object" "$@" "$source"
    nm -g --defined-only -P "$object" | awk -v file="${object##*/}" '{ print $1, file }' >>"$work/defined"
    nm -g --undefined-only -P "$object" | awk -v file="${object##*/}" '{ print $1, file }' >>"$work/used"
done
# A line for each pair: who uses, who defines.
join <(sort -k1,1 "$work/used") <(sort -k1,1 "$work/defined") | awk '{ print $2, $3 }' | sort -u | tsort >/dev/null
