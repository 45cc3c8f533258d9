#!/bin/sh
# Builds the libraries of those workloads that have native methods: libraries.sh OUTDIR
# CC is heeded, so that they can be built for another machine.
set -eu

[ $# -eq 1 ] || { echo "usage: libraries.sh OUTDIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

library() { # NAME SOURCE...: the C sources become OUTDIR/libNAME.so, optimised and without frame pointers as real ones are
    name=$1
    shift
    "${CC:-cc}" -std=c11 -O2 -g -fomit-frame-pointer -fPIC -shared -Wall -Wextra -Werror -I "$here/jni" -I "$here/framebuffer" \
        -Wl,-soname,"lib$name.so" -o "$out/lib$name.so.new" "$@"
    mv "$out/lib$name.so.new" "$out/lib$name.so"
}

library truth "$here/truth/truth.c"
library waits "$here/waits/waits.c"
framebuffer=$here/framebuffer/framebuffer.c
library cradle "$here/cradle/canvas.c" "$here/cradle/raster.c" "$framebuffer"
library scene "$here/scene/screen.c" "$here/scene/triangles.c" "$framebuffer"
