#!/bin/bash
# Where does compiled code of ART 14 come from? This builds ART's JIT for x86-64, which Debian's packages leave out, from Debian 13's source
# of the same version, against the libart that build.sh has fetched: OUTDIR/art14/libart-compiler.so, with the library it needs.
# usage: compiler.sh OUTDIR
# Does nothing when it is there. The first build fetches 10 MB and compiles 90 files: it says how long it took.
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
key=$version-$(cat "$here"/{build,compiler}.sh "$art11"/{compiler_source.sh,common.h,xz_utils.cc} | sha256sum | cut -d' ' -f1)
if [ -e "$out/libart-compiler.so" ] && [ -e "$out/liblzma.so.5" ] && [ "$(cat "$out/.compiler.built" 2>/dev/null)" = "$key" ]; then
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

# As compiler/Android.bp has it.
python3 tools/generate_operator_out.py compiler compiler/{linker/linker_patch,optimizing/locations,optimizing/nodes,optimizing/optimizing_compiler_stats,utils/arm/constants_arm}.h \
    >compiler/operator_out.cc
sources compiler libelffile >compiler.list
flags+=(-include optional -DART_TARGET -DART_TARGET_LINUX -Iodrefresh/include -isystem../dev/usr/include/android/{cpu_features,lzma})

echo "art14: building ART's compiler, $(wc -l <compiler.list) files, once: two minutes or three" >&2
clang++-16 "${flags[@]}" -O1 -x c++-header "$art11/common.h" -o compiler.pch
compile_compiler
lzma=$(find "$work/dev" -name 'liblzma.so.5' -print -quit)
[ -n "$lzma" ] || { echo "art14: liblzma.so.5 is in no package" >&2; exit 1; }
cp -L "$lzma" new && mv new "$out/liblzma.so.5"
# shellcheck disable=SC2046 # a list of words
link_compiler -L"$out" $(libraries art.so.0 base.so.0 log.so.0 lzma.so.5) "-Wl,-rpath,\$ORIGIN"
mv libart-compiler.so "$out/libart-compiler.so"
echo "$key" >"$out/.compiler.built"
echo "art14: built in $SECONDS s" >&2
