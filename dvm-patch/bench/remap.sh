#!/bin/sh
# Prints the cost and the benefit of remapping a method's address, by both ways of the paper, for the methods of dex files: remap.sh
# VARID DEX... Fails if a look-up does not find a method that has an entry.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
varid=${1:?usage: remap.sh VARID DEX...}
shift
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

"${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -Werror -I "$here/../include" -I "$here/../dim" \
	"$here/remap.c" "$here/../dim/base.c" "$here/../dim/dim.c" "$here/../dim/files.c" "$here/../dim/control.c" "$here/../dim/log.c" \
	-o "$out/remap"
number=0
for dex in "$@"; do
	"$varid" symbols "$dex" | awk -v number="$number" '
		$1 ~ /^0x/ { print number, substr($1, 3), $2 }' >>"$out/methods"
	number=$((number + 1))
done
"$out/remap" <"$out/methods"
