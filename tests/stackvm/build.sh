#!/bin/sh
# Builds stackvm and the program that it runs: build.sh OUTDIR. x86-64 only: its interpreter is in assembler.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: build.sh OUTDIR}
dim=$here/../../dvm-patch
mkdir -p "$out"

python3 "$here/program.py" "$out/program.stk"
# Frame pointers, and every call a call, are what truth is read from.
# shellcheck disable=SC2086 # CFLAGS is a list
"${CC:-cc}" ${CFLAGS:-} -std=gnu11 -O2 -g -Wall -Wextra -Werror -DDIM_NO_SHADOW \
	-fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-reorder-blocks-and-partition \
	-I "$dim/include" -I "$dim/dim" -I "$here" \
	"$here/main.c" "$here/program.c" "$here/natives.c" "$here/interpreter.S" "$dim"/dim/*.c \
	-pthread -o "$out/stackvm"
