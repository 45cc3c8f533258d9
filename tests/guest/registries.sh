#!/bin/bash
# Builds programs that others have written, in C that crates of crates.io carry, with picolibc: bzip2 and LZ4 into
# OUTDIR, named as build.sh names its own. Their sources are fetched by cargo into SOURCES, in fixed versions.
# Exits with 77 if they cannot be fetched here.
# usage: registries.sh SOURCES OUTDIR
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: registries.sh SOURCES OUTDIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" "$2"
sources=$(cd "$1" && pwd)
out=$(cd "$2" && pwd)

if [ ! -e "$sources/.done" ]; then
    mkdir -p "$sources/src"
    : >"$sources/src/lib.rs"
    cat >"$sources/Cargo.toml" <<'TOML'
[package]
name = "registries"
version = "0.0.0"

[dependencies]
bzip2-sys = "=0.1.11"
lz4-sys = "=1.11.1"

[workspace]
TOML
    (cd "$sources" && cargo vendor --quiet vendor >/dev/null) ||
        { echo "registries.sh: cargo cannot fetch the crates" >&2; exit 77; }
    touch "$sources/.done"
fi

build() { # PROGRAM COMPILER LEVEL MACHINE FOLDER SOURCE...: the sources are in a folder of the crates
    local elf=$out/$1-$2-$3-$4.elf folder=$sources/vendor/$5 compiler objects files file
    if [ -e "$elf" ] && [ -z "$(find "$here" -maxdepth 2 -name '*.[chS]' -newer "$elf")" ]; then
        return
    fi
    compiler=(riscv64-unknown-elf-gcc --specs=picolibc.specs)
    [ "$2" = gcc ] ||
        compiler=(clang-16 --target=riscv32-unknown-elf -isystem /usr/lib/picolibc/riscv64-unknown-elf/include)
    objects=$(mktemp -d)
    files=("${@:6}")
    for file in "$here/registries/$1.c" "$here/start.S" "${files[@]/#/$folder/}"; do
        "${compiler[@]}" "-$3" "-march=$4" -mabi=ilp32 -ffunction-sections -w -DBZ_NO_STDIO \
            "-I$folder" -c -o "$(mktemp -p "$objects" XXXXXX.o)" "$file"
    done
    riscv64-unknown-elf-gcc --specs=picolibc.specs "-march=$4" -mabi=ilp32 -nostartfiles -T "$here/guest.ld" \
        -Wl,--gc-sections,--strip-debug,-z,max-page-size=4096 -o "$elf" "$objects"/*.o -lm
    rm -r "$objects"
}

for machine in rv32im rv32imc; do
    for compiler in gcc clang; do
        build bzip2 "$compiler" O2 "$machine" bzip2-sys/bzip2-1.0.8 \
            {blocksort,bzlib,compress,crctable,decompress,huffman,randtable}.c
        build lz4 "$compiler" O2 "$machine" lz4-sys/liblz4/lib lz4.c
    done
done
