#!/bin/bash
# What is a libart whose layout nobody has seen? This builds ART 11 from Debian's source as Debian does, with fields more in Thread, ShadowFrame and
# ArtMethod, for x86-64: OUTDIR/art11-changed has libart.so.0, stripped, with .gnu_debugdata as a device's library has it; libart.symbols, what nm
# says of the library before that; and layout.h, where the compiler has put the fields.
# usage: changed.sh OUTDIR
# Does nothing when they are there. The first build fetches 25 MB and compiles 280 files: it says how long it took.
# JOBS is how many compilers run at a time [default: one for each processor].
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: changed.sh OUTDIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
name='art11-changed'
art11=$here
# shellcheck source-path=SCRIPTDIR source=compiler_source.sh
. "$art11/compiler_source.sh"
mkdir -p "$1/art11-changed"
out=$(cd "$1/art11-changed" && pwd)
jobs=${JOBS:-$(nproc)}
version=11.0.0+r48-5

[ "$(uname -m)" = x86_64 ] || { echo "art11-changed: only for x86-64" >&2; exit 1; }
# One at a time: tests that run side by side all call this.
exec 9>"$out/.lock"
flock 9
key=$version-$(cat "$here"/{changed.sh,compiler_source.sh,layout.def,libart.h,libart.mk} | sha256sum | cut -d' ' -f1)
[ "$(cat "$out/.built" 2>/dev/null)" != "$key" ] || exit 0
need clang++-16 dpkg-source python3 make nm objcopy strip xz

work=$(mktemp -d "$out/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
unpack bookworm "$version" "$work" android-libbase-dev android-liblog-dev android-libnativehelper-dev android-libziparchive-dev \
    android-libbacktrace-dev libicu-dev liblz4-dev zlib1g-dev
cd "$work/art"

# All offsets that varid takes from these classes move, but for the class of a method, which must come first, and its flags.
repair runtime/thread.h 's/^    uint32_t tid;/    uint32_t added_before_tid[3];\n&/'
repair runtime/thread.h 's/^    ManagedStack managed_stack;/    void* added_before_managed_stack[5];\n&/'
repair runtime/interpreter/shadow_frame.h 's/^  ShadowFrame\* link_;/  void* added_before_link_;\n&/'
repair runtime/art_method.h 's/^  uint32_t dex_code_item_offset_;/  uint32_t added_before_dex_code_item_offset_[2];\n&/'
# Debian has the headers of libunwindstack no more. It is for a test of the collector only.
repair runtime/backtrace_helper.cc 's/^#if defined(__linux__)/#if 0/'
cp "$here/layout.def" tools/cpp-define-generator/
echo '#include "layout.def"' >>tools/cpp-define-generator/asm_defines.def

# As dpkg-buildflags and debian/rules have it. Private fields are asked for in layout.def.
export CXX=clang++-16
CPPFLAGS="-DNDEBUG -w -fno-exceptions -fno-strict-aliasing $(printf -- '-isystem../dev/usr/include%s ' /android /android/nativehelper '' /x86_64-linux-gnu)"
CXXFLAGS="-O2 -fPIC -fstack-protector-strong -fno-access-control -include cmath"
CFLAGS=-fPIC
LDFLAGS="-Wl,-z,relro,-z,now,--build-id=sha1"
export CPPFLAGS CXXFLAGS CFLAGS LDFLAGS
# Not under the caller's make.
unset MAKEFLAGS MAKELEVEL
build() { # TARGET
    make --silent --jobs="$jobs" --file="$here/libart.mk" CHANGED="$here" DEB_HOST_ARCH=amd64 DEB_HOST_MULTIARCH=x86_64-linux-gnu \
        CC_ASSEMBLY=clang-16 "$1"
}
mkdir -p debian/out
echo "art11-changed: building libart, 280 files, once: ten minutes or more" >&2
build debian/out/asm_defines.h
build debian/out/libart.so.0

cd debian/out
# As a device's build has it: functions that are not exported have their names in .gnu_debugdata.
nm --defined-only libart.so.0 >libart.symbols
nm --dynamic --defined-only libart.so.0 | cut -d' ' -f3 | sort -u >exported
awk '$2 ~ /^[TtWw]$/ { print $3 }' libart.symbols | sort -u | comm -13 exported - >kept
objcopy --strip-all --keep-symbols=kept libart.so.0 functions
objcopy --only-keep-debug functions functions.debug
xz --keep --stdout functions.debug >functions.xz
strip --strip-all --remove-section=.comment -o stripped libart.so.0
objcopy --add-section .gnu_debugdata=functions.xz stripped
sed -n 's/^#define VARID_/#define /p' asm_defines.h >layout.h
mv stripped "$out/libart.so.0"
mv libart.symbols layout.h "$out/"
echo "$key" >"$out/.built"
echo "art11-changed: built in $SECONDS s" >&2
