#!/bin/bash
# Where does compiled code of ART 14 come from? This builds ART's JIT and its ahead-of-time compiler for x86-64, which Debian's packages leave
# out, from Debian 13's source of the same version, against the libart that build.sh has fetched: OUTDIR/art14/libart-compiler.so, with the
# library it needs, and OUTDIR/art14/dex2oat, which art14's own dynamic linker starts (tests/art11/compile.sh).
# usage: compiler.sh OUTDIR
# Does nothing when they are there. The first build fetches 10 MB and compiles 120 files: it says how long it took.
# JOBS is how many compilers run at a time [default: one for each processor].
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: compiler.sh OUTDIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
name=art14
art11=$(cd "$here/../art11" && pwd)
# shellcheck source-path=SCRIPTDIR source=../art11/compiler_source.sh
. "$art11/compiler_source.sh"
jobs=${JOBS:-$(nproc)}
version=14.0.0+r15-4

[ "$(uname -m)" = x86_64 ] || { echo "art14: its compiler is only for x86-64" >&2; exit 1; }
"$here/build.sh" "$1"
out=$(cd "$1/art14" && pwd)
# One at a time: tests that run side by side all call this.
exec 9>"$out/.compiler.lock"
flock 9
key=$version-$(cat "$here"/{build,compiler}.sh "$here/repair.cc" "$art11"/{compiler_source.sh,common.h,xz_utils.cc} | sha256sum | cut -d' ' -f1)
if [ -x "$out/dex2oat" ] && [ -e "$out/libart-compiler.so" ] && [ -e "$out/liblzma.so.5" ] && [ "$(cat "$out/.compiler.built" 2>/dev/null)" = "$key" ]; then
    exit 0
fi
need clang++-16 dpkg-source python3

work=$(mktemp -d "$out/.compiler.XXXXXX")
trap 'rm -rf "$work"' EXIT
unpack trixie "$version" "$work" android-libbase-dev android-liblog-dev android-libnativehelper-dev android-libziparchive-dev \
    android-libbacktrace-dev liblzma-dev liblz4-dev zlib1g-dev libssl-dev libtinyxml2-dev libcpu-features-dev libfmt-dev liblzma5
cd "$work/art"
repair_compiler
# Else libart's own is called, which does not fit 7z.so.
repair libelffile/elf/xz_utils.cc 's/int level) {/int level, size_t) {/'

repair dexlayout/dex_ir.h 's/operator-(const Iterator& rhs) {/operator-(const Iterator\& rhs) const {/'

# As compiler/Android.bp and dex2oat/Android.bp have it.
python3 tools/generate_operator_out.py compiler compiler/{linker/linker_patch,optimizing/locations,optimizing/nodes,optimizing/optimizing_compiler_stats,utils/arm/constants_arm}.h \
    >compiler/operator_out.cc
python3 tools/generate_operator_out.py dex2oat dex2oat/linker/image_writer.h >dex2oat/operator_out.cc
sources compiler libelffile >compiler.list
sources dex2oat dexlayout | grep -v -e dexdiag.cc -e dexlayout_main.cc >dex2oat.list
cp "$here/repair.cc" dex2oat/repair.cc
echo dex2oat/repair.cc >>dex2oat.list
flags+=(-include optional -DART_TARGET -DART_TARGET_LINUX -Iodrefresh/include -isystem../dev/usr/include/android/{cpu_features,lzma})

echo "art14: building ART's compiler, $(cat ./*.list | wc -l) files, once: three minutes or four" >&2
clang++-16 "${flags[@]}" -O1 -x c++-header "$art11/common.h" -o compiler.pch
compile_compiler
# Android's compiler clears what the stack holds; what dex2oat itself does takes moments, not optimised, too.
compile dex2oat.list -O0 -ftrivial-auto-var-init=zero
lzma=$(find "$work/dev" -name 'liblzma.so.5' -print -quit)
[ -n "$lzma" ] || { echo "art14: liblzma.so.5 is in no package" >&2; exit 1; }
cp -L "$lzma" new && mv new "$out/liblzma.so.5"
# shellcheck disable=SC2046 # a list of words
link_compiler -L"$out" $(libraries art.so.0 base.so.0 log.so.0 lzma.so.5) "-Wl,-rpath,\$ORIGIN"
# libart uses libraries that it does not declare; libsigchain must come before the C library.
# shellcheck disable=SC2046 # lists of words
clang++-16 -o dex2oat.new $(sed 's,.*,objects/&.o,' dex2oat.list) -Wl,--build-id,--no-as-needed,--allow-shlib-undefined -L"$out" \
    $(libraries sigchain.so.0 art.so.0 dexfile_support.so.0 backtrace.so.0 base.so.0 log.so.0 nativebridge.so nativeloader.so.0 \
        ziparchive.so.0 lz4.so.1 z.so.1 tinyxml2.so.11 cpu_features.so.0) -l:7z.so -L. -lart-compiler \
    -L../dev/usr/lib/x86_64-linux-gnu -l:libcrypto.a
mv libart-compiler.so "$out/libart-compiler.so"
mv dex2oat.new "$out/dex2oat"
echo "$key" >"$out/.compiler.built"
echo "art14: built in $SECONDS s" >&2
