#!/bin/bash
# Builds programs that others have written, in C that crates of crates.io carry, with picolibc: OUTDIR/PROGRAM-gcc-O2-rv32im.elf
# and OUTDIR/PROGRAM-clang-Os-rv32imc.elf. Their sources are fetched by cargo into SOURCES, in fixed versions.
# Exits with 77 if they cannot be fetched here, or if there is no such compiler.
# usage: registries.sh SOURCES OUTDIR
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: registries.sh SOURCES OUTDIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" "$2"
sources=$(cd "$1" && pwd)
out=$(cd "$2" && pwd)
for tool in clang-16 riscv64-unknown-elf-gcc; do
    command -v "$tool" >/dev/null || { echo "registries.sh: $tool is missing" >&2; exit 77; }
done

if [ ! -e "$sources/.done" ] || [ "$0" -nt "$sources/.done" ]; then
    mkdir -p "$sources/src"
    : >"$sources/src/lib.rs"
    cat >"$sources/Cargo.toml" <<'TOML'
[package]
name = "registries"
version = "0.0.0"

[dependencies]
blake3 = "=1.8.7"
bzip2-sys = "=0.1.11"
libz-sys = "=1.1.31"
lua-src = "=546.0.2"
lz4-sys = "=1.11.1"

[workspace]
TOML
    (cd "$sources" && cargo vendor --quiet vendor >/dev/null) ||
        { echo "registries.sh: cargo cannot fetch the crates" >&2; exit 77; }
    touch "$sources/.done"
fi

build() { # COMPILER LEVEL MACHINE PROGRAM FOLDER FLAGS SOURCE...: the sources are in a folder of the crates
    local elf=$out/$4-$1-$2-$3.elf folder=$sources/vendor/$5 flags compiler objects file count=0
    if [ -e "$elf" ] && [ -z "$(find "$0" "$here"/{,registries/}*.[chS] -newer "$elf")" ]; then
        return
    fi
    read -ra flags <<<"$6"
    compiler=(riscv64-unknown-elf-gcc --specs=picolibc.specs)
    [ "$1" = gcc ] ||
        compiler=(clang-16 --target=riscv32-unknown-elf -isystem /usr/lib/picolibc/riscv64-unknown-elf/include)
    objects=$(mktemp -d)
    # Numbered, for the linker takes them in this order.
    for file in "$here/start.S" "$here/registries/$4.c" "${@:7}"; do
        [[ $file == /* ]] || file=$folder/$file
        "${compiler[@]}" "-$2" "-march=$3" -mabi=ilp32 -ffunction-sections -w -DNDEBUG "${flags[@]}" "-I$folder" \
            -c -o "$objects/$((10 + count++)).o" "$file"
    done
    riscv64-unknown-elf-gcc --specs=picolibc.specs "-march=$3" -mabi=ilp32 -nostartfiles -T "$here/guest.ld" \
        -Wl,--gc-sections,--strip-debug,-z,max-page-size=4096 -o "$elf" "$objects"/*.o -lm
    rm -r "$objects"
}

for machine in 'gcc O2 rv32im' 'clang Os rv32imc'; do
    read -ra how <<<"$machine"
    build "${how[@]}" blake3 blake3/c -DBLAKE3_USE_NEON=0 blake3.c blake3_{dispatch,portable}.c
    build "${how[@]}" bzip2 bzip2-sys/bzip2-1.0.8 -DBZ_NO_STDIO \
        {blocksort,bzlib,compress,crctable,decompress,huffman,randtable}.c
    build "${how[@]}" lua lua-src/lua-5.4.6 '-Dluai_makeseed(state)=0 -Dl_randomizePivot()=0' \
        l{api,auxlib,baselib,code,corolib,ctype,debug,do,dump,func,gc,lex,mem,object,opcodes,parser,state,string}.c \
        l{strlib,table,tablib,tm,undump,vm,zio}.c
    build "${how[@]}" lz4 lz4-sys/liblz4/lib '' lz4.c
    build "${how[@]}" zlib libz-sys/src/zlib '' {adler32,crc32,deflate,inffast,inflate,inftrees,trees,zutil}.c
done
