#!/bin/sh
# Builds areavm: build.sh OUTDIR. As 32-bit code, too (areavm32), where the compiler can.
# CC and CFLAGS are heeded, so that it can be built for another machine.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: build.sh OUTDIR}
dim=$here/../../dvm-patch
methods=$here/../methods
mkdir -p "$out"

# Frame pointers, and every call a call, are what truth is read from.
build() { # NAME [OPTION...]
	name=$1
	shift
	# shellcheck disable=SC2086 # CFLAGS is a list
	"${CC:-cc}" "$@" ${CFLAGS:-} -std=gnu11 -O2 -g -Wall -Wextra -Werror -Wno-clobbered -DDIM_NO_SHADOW \
		-fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-reorder-blocks-and-partition \
		-I "$dim/include" -I "$dim/dim" -I "$methods" -I "$here" \
		"$here/main.c" "$here/methods.c" "$here/areas.c" "$methods/dex.c" "$dim"/dim/*.c \
		-pthread -o "$out/$name"
}

rm -f "$out/areavm32"
if [ -z "${CC:-}" ] && echo 'int main(void) { return 0; }' | cc -m32 -x c -o "$out/areavm32" - 2>/dev/null; then
	# The kernel's headers are where the other word size has them.
	build areavm32 -m32 -fno-pie -no-pie -idirafter /usr/include/x86_64-linux-gnu
fi
build areavm
