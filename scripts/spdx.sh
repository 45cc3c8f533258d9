#!/bin/sh
# Does every source that goes into somebody else's kernel or VM say its licence in its first line?
# The kernel's part (kmod-shim) must offer GPL-2.0 or MIT, what both sides include GPL-2.0, too.
set -eu

cd "$(dirname "$0")/.."
wrong=0
checked=0

check() { # FILE PATTERN: the first line is an SPDX line that matches
    checked=$((checked + 1))
    if ! head -n 1 "$1" | grep -Eq "SPDX-License-Identifier: $2( \*/)?\$"; then
        echo "$1: the first line is not 'SPDX-License-Identifier: $2'" >&2
        wrong=$((wrong + 1))
    fi
}

sources() { # FOLDER...: the C sources below it, one a line
    find "$@" -type f \( -name '*.c' -o -name '*.h' \) | LC_ALL=C sort
}

for file in $(sources kmod-shim); do
    check "$file" 'GPL-2\.0 OR MIT'
done
for file in $(sources dvm-patch/include); do
    check "$file" '.*GPL-2\.0.*'
done
for file in $(sources dvm-patch/art dvm-patch/dalvik dvm-patch/dim); do
    check "$file" 'MIT OR Apache-2\.0( OR GPL-2\.0)?'
done
for licence in LICENSE-MIT LICENSE-APACHE LICENSE-GPL-2.0; do
    [ -s "$licence" ] || { echo "$licence is missing" >&2; wrong=$((wrong + 1)); }
done
echo "$checked C sources, $wrong problems"
[ "$wrong" -eq 0 ]
