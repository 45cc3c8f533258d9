#!/bin/sh
# Builds the libraries that are loaded into VMs: build.sh OUTDIR -> OUTDIR/libvarid_art.so
# CC and CFLAGS select the compiler, also for another machine.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: build.sh OUTDIR}

mkdir -p "$out"
# Never unloaded: ART may call its hook at any time.
# shellcheck disable=SC2086 # CFLAGS is a list
"${CC:-cc}" ${CFLAGS:-} -std=gnu11 -O2 -g -Wall -Wextra -Werror \
	-shared -fPIC -fvisibility=hidden -DDIM_NO_SHADOW \
	-I "$here/include" -I "$here/dim" -I "$here/art" \
	"$here"/art/*.c "$here"/dim/*.c \
	-pthread -ldl -Wl,-z,defs -Wl,-z,nodelete -Wl,-soname,libvarid_art.so \
	-o "$out/libvarid_art.so"
