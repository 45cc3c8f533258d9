#!/bin/bash
# Where does compiled code of ART 11 come from? This builds ART's JIT for x86-64 and its ahead-of-time compiler for x86-64 and arm64, which
# Debian's packages leave out, from Debian's source of the same version, against Debian's libart: OUTDIR/libart-compiler.so and
# OUTDIR/dex2oat, with the assembler for arm64 beside them.
# usage: build.sh OUTDIR
# Does nothing when they are there. The first build fetches 10 MB and compiles 125 files: it says how long it took.
# JOBS is how many compilers run at a time [default: one for each processor].
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: build.sh OUTDIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
name=art11
art11=$here
# shellcheck source-path=SCRIPTDIR source=compiler_source.sh
. "$here/compiler_source.sh"
mkdir -p "$1"
out=$(cd "$1" && pwd)
jobs=${JOBS:-$(nproc)}
version=11.0.0+r48-5
android=/usr/lib/x86_64-linux-gnu/android

[ "$(uname -m)" = x86_64 ] || { echo "art11: only for x86-64" >&2; exit 1; }
# One at a time: tests that run side by side all call this.
exec 9>"$out/.art11.lock"
flock 9
key=$version-$(cat "$here"/{build.sh,compiler_source.sh,common.h,dex2oat.h,xz_utils.cc} | sha256sum | cut -d' ' -f1)
if [ -x "$out/dex2oat" ] && [ -e "$out/libart-compiler.so" ] && [ "$(cat "$out/.art11.built" 2>/dev/null)" = "$key" ]; then
    exit 0
fi
need clang++-16 dpkg-source python3

work=$(mktemp -d "$out/.art11.XXXXXX")
trap 'rm -rf "$work"' EXIT
unpack bookworm "$version" "$work" android-libbase-dev android-liblog-dev android-libnativehelper-dev android-libziparchive-dev \
    android-libbacktrace-dev liblzma-dev liblz4-dev zlib1g-dev libssl-dev libvixl-dev libvixl5
cd "$work/art"

repair_compiler
repair dexlayout/dex_ir.h 's/operator-(const Iterator& rhs) {/operator-(const Iterator\& rhs) const {/'
# Debian's vixl is newer: registers are made by constructors.
for file in compiler/optimizing/{code_generator_arm64.cc,common_arm64.h} compiler/utils/arm64/assembler_arm64.h; do
    repair "$file" 's/\(vixl::aarch64::\)\?V\?Register::Get\([XWVDQSH]\)RegFromCode(/vixl::aarch64::\2Register(/'
done
repair compiler/optimizing/intrinsics_arm64.cc 's/^  Operand \(infinity\|tst_mask\);/  Operand \1(int64_t{0});/'

# As compiler/Android.bp and dex2oat/Android.bp have it.
python3 tools/generate_operator_out.py compiler compiler/{driver/compiler_options,linker/linker_patch,optimizing/locations,optimizing/optimizing_compiler_stats,utils/arm/constants_arm}.h \
    >compiler/operator_out.cc
python3 tools/generate_operator_out.py dex2oat dex2oat/{dex/dex_to_dex_compiler,driver/compiler_driver,linker/image_writer}.h \
    >dex2oat/operator_out.cc

sources() { # FOLDER...: what is compiled of them for x86-64, which needs the files for x86, too, and for arm64
    find "$@" -name '*.cc' ! -name '*_test.cc' ! -path '*/arm/*' ! -name '*_arm.cc' ! -name '*_arm_*' -print
}
sources compiler libelffile >compiler.list
sources dex2oat dexlayout | grep -v -e dexdiag.cc -e dexlayout_main.cc >dex2oat.list
# What the patchers for both kinds of ARM have in common.
echo dex2oat/linker/arm/relative_patcher_arm_base.cc >>dex2oat.list

flags+=(
    -DART_ENABLE_CODEGEN_arm64 -DVIXL_CODE_BUFFER_MMAP -DVIXL_INCLUDE_SIMULATOR_AARCH64 -DVIXL_INCLUDE_TARGET_{A32,A64,T32}
    -isystem../dev/usr/include/vixl
)

# What ART's assembly for arm64 takes from classes, whose layout is that of x86-64.
clang++-16 "${flags[@]}" -O1 -S tools/cpp-define-generator/asm_defines.cc -o asm_defines.s
python3 tools/cpp-define-generator/make_header.py asm_defines.s >asm_defines.h

echo "art11: building ART's compiler, $(cat ./*.list | wc -l) files, once: a minute or two" >&2
# Methods are compiled while a program runs; what dex2oat itself does takes moments, not optimised, too.
clang++-16 "${flags[@]}" -O1 -x c++-header "$here/common.h" -o compiler.pch &
header=$!
clang++-16 "${flags[@]}" -O0 -x c++-header "$here/dex2oat.h" -o dex2oat.pch
wait "$header"
compile_compiler
compile dex2oat.list -O0 -include-pch dex2oat.pch

# shellcheck disable=SC2046 # lists of words
link_compiler -L"$android" -L../dev/usr/lib/x86_64-linux-gnu $(libraries art.so.0 base.so.0 log.so.0 lzma.so.5 vixl.so.5 z.so.1) \
    "-Wl,-rpath,$android,-rpath,\$ORIGIN"
# libart uses libraries that it does not declare; libsigchain must come before the C library.
# shellcheck disable=SC2046
clang++-16 -o dex2oat.new $(sed 's,.*,objects/&.o,' dex2oat.list) -Wl,--build-id,--no-as-needed -L"$android" \
    $(libraries sigchain.so.0 art.so.0 dexfile_support.so.0 backtrace.so.0 base.so.0 log.so.0 nativebridge.so.0 nativeloader.so.0 \
        ziparchive.so.0 lz4.so.1 z.so.1 lzma.so.5 crypto.so.3) \
    -L. -lart-compiler -Wl,-rpath-link,../dev/usr/lib/x86_64-linux-gnu "-Wl,-rpath,$android,-rpath,\$ORIGIN"
cp -L ../dev/usr/lib/x86_64-linux-gnu/libvixl.so.5 "$out/libvixl.so.5"
mv libart-compiler.so "$out/libart-compiler.so"
mv dex2oat.new "$out/dex2oat"
echo "$key" >"$out/.art11.built"
echo "art11: built in $SECONDS s" >&2
