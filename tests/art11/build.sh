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
mkdir -p "$1"
out=$(cd "$1" && pwd)
jobs=${JOBS:-$(nproc)}
version=11.0.0+r48-5
android=/usr/lib/x86_64-linux-gnu/android

[ "$(uname -m)" = x86_64 ] || { echo "art11: only for x86-64" >&2; exit 1; }
# One at a time: tests that run side by side all call this.
exec 9>"$out/.art11.lock"
flock 9
key=$version-$(cat "$here"/{build.sh,common.h,dex2oat.h,xz_utils.cc} | sha256sum | cut -d' ' -f1)
if [ -x "$out/dex2oat" ] && [ -e "$out/libart-compiler.so" ] && [ "$(cat "$out/.art11.built" 2>/dev/null)" = "$key" ]; then
    exit 0
fi
for tool in clang++-16 dpkg-source python3; do
    command -v "$tool" >/dev/null || { echo "art11: $tool is missing: scripts/deps.sh --test installs it" >&2; exit 1; }
done

packages=$("$here/../board/packages.sh" amd64 bookworm src:android-platform-art \
    android-libbase-dev android-liblog-dev android-libnativehelper-dev android-libziparchive-dev android-libbacktrace-dev \
    liblzma-dev liblz4-dev zlib1g-dev libssl-dev libvixl-dev libvixl5)
work=$(mktemp -d "$out/.art11.XXXXXX")
trap 'rm -rf "$work"' EXIT
for package in $packages; do
    case $package in
    *_"$version".dsc) dpkg-source --no-check --extract "$package" "$work/art" >/dev/null ;;
    *.dsc) echo "art11: Debian's source is now ${package##*/}, libart is of $version" >&2; exit 1 ;;
    *) dpkg-deb --extract "$package" "$work/dev" ;;
    esac
done
cd "$work/art"

repair() { # FILE SED-SCRIPT: changes a line that the compiler refuses
    sed -i.before "$2" "$1"
    ! cmp -s "$1" "$1.before" || { echo "art11: $1 is not as expected" >&2; exit 1; }
}
repair compiler/optimizing/register_allocator_linear_scan.cc 's/^static ArenaVector<\(.*\)RemoveIntervalAndPotentialOtherHalf/static ScopedArenaVector<\1RemoveIntervalAndPotentialOtherHalf/'
repair dexlayout/dex_ir.h 's/operator-(const Iterator& rhs) {/operator-(const Iterator\& rhs) const {/'
cp "$here/xz_utils.cc" libelffile/elf/xz_utils.cc
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

# As debian/libart.mk has it: what decides the layout of objects must be as in Debian's libart.
flags=(
    -std=gnu++17 -fPIC -fno-rtti -fno-exceptions -fno-strict-aliasing -fvisibility=protected -fno-omit-frame-pointer -w
    -include cmath -fpch-instantiate-templates
    -DNDEBUG -D__STDC_CONSTANT_MACROS -D__STDC_FORMAT_MACROS -D_FILE_OFFSET_BITS=64 -D_LARGEFILE_SOURCE=1
    -DART_BASE_ADDRESS=0x60000000 -DART_BASE_ADDRESS_MIN_DELTA=-0x1000000 -DART_BASE_ADDRESS_MAX_DELTA=0x1000000
    -DART_DEFAULT_COMPACT_DEX_LEVEL=fast -DART_DEFAULT_GC_TYPE_IS_CMS -DART_ENABLE_ADDRESS_SANITIZER=1
    -DART_ENABLE_CODEGEN_{arm64,x86,x86_64} -DART_FRAME_SIZE_LIMIT=1736
    -DART_READ_BARRIER_TYPE_IS_BAKER=1 -DART_USE_READ_BARRIER=1
    -DART_STACK_OVERFLOW_GAP_{arm,arm64,x86,x86_64}"=8192"
    -DBUILDING_LIBART=1 -DIMT_SIZE=43 -DUSE_D8_DESUGAR=1
    -DVIXL_CODE_BUFFER_MMAP -DVIXL_INCLUDE_SIMULATOR_AARCH64 -DVIXL_INCLUDE_TARGET_{A32,A64,T32}
    -I. -I{compiler,dex2oat,dex2oat/include,dexlayout,disassembler,cmdline,libartbase,libartbase/arch,libartpalette/include}
    -I{libdexfile,libdexfile/external/include,libelffile,libnativebridge/include,libnativeloader/include,libprofile,runtime,sigchainlib}
    -isystem../dev/usr/include{/android,/android/nativehelper,/vixl,,/x86_64-linux-gnu}
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
xargs dirname <<<"$(cat ./*.list)" | sort -u | sed 's,^,objects/,' | xargs mkdir -p
compile() { # LIST OPTION...
    list=$1
    shift
    xargs -P "$jobs" -I '{}' clang++-16 "${flags[@]}" "$@" -c '{}' -o 'objects/{}.o' <"$list"
}
# Two classes of ART are called CallingConvention.
grep ^compiler/jni/ compiler.list >jni.list
grep -v ^compiler/jni/ compiler.list >others.list
compile others.list -O1 -include-pch compiler.pch
compile jni.list -O1
compile dex2oat.list -O0 -include-pch dex2oat.pch

libraries() { # NAME...: Debian's, whose packages for development the linker does not need
    printf -- '-l:lib%s ' "$@"
}
# shellcheck disable=SC2046 # lists of words
clang++-16 -shared -o libart-compiler.so $(sed 's,.*,objects/&.o,' compiler.list) -Wl,-soname,libart-compiler.so -Wl,--build-id \
    -L"$android" -L../dev/usr/lib/x86_64-linux-gnu $(libraries art.so.0 base.so.0 log.so.0 lzma.so.5 vixl.so.5 z.so.1) \
    -Wl,-z,defs,--allow-shlib-undefined "-Wl,-rpath,$android,-rpath,\$ORIGIN"
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
