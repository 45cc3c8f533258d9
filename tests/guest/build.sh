#!/bin/bash
# Builds the programs for RISC-V: OUTDIR/PROGRAM-COMPILER-LEVEL-MACHINE.elf, such as crc-gcc-Os-rv32imc.elf, for both
# compilers, -O2 and -Os, rv32im and rv32imc; or those whose names match one of the PATTERNs.
# Exits with 77 if there is no such compiler.
# usage: build.sh OUTDIR [PATTERN...]
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: build.sh OUTDIR [PATTERN...]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
for tool in clang-16 riscv64-unknown-elf-gcc; do
    command -v "$tool" >/dev/null || { echo "build.sh: $tool is missing" >&2; exit 77; }
done

wanted() { # NAME: whether it matches a pattern
    [ ${#patterns[@]} -eq 0 ] && return
    local pattern
    for pattern in "${patterns[@]}"; do
        # shellcheck disable=SC2053 # a pattern
        [[ $1 == $pattern ]] && return
    done
    return 1
}

compile() { # COMPILER LEVEL MACHINE SOURCE OBJECT [FLAG...]
    local compiler=(riscv64-unknown-elf-gcc)
    [ "$1" = gcc ] || compiler=(clang-16 --target=riscv32-unknown-elf)

    "${compiler[@]}" "-$2" "-march=$3" -mabi=ilp32 -ffreestanding -ffunction-sections -Wall -Wextra "${@:6}" \
        -c -o "$5" "$4"
}

build() { # PROGRAM COMPILER LEVEL MACHINE
    local elf=$out/$1-$2-$3-$4.elf objects
    if [ -e "$elf" ] && [ -z "$(find "$here"/{,programs/}*.[chS] -newer "$elf")" ]; then
        return
    fi
    objects=$(mktemp -d)
    compile "$2" "$3" "$4" "$here/programs/$1.c" "$objects/program.o"
    # A copying loop is no call of the function that it implements.
    compile gcc "$3" "$4" "$here/memory.c" "$objects/memory.o" -fno-tree-loop-distribute-patterns
    compile gcc "$3" "$4" "$here/start.S" "$objects/start.o"
    riscv64-unknown-elf-gcc "-march=$4" -mabi=ilp32 -nostdlib -T "$here/guest.ld" \
        -Wl,--gc-sections,--strip-debug,-z,max-page-size=4096 -o "$elf" "$objects"/{start,program,memory}.o -lgcc
    rm -r "$objects"
}

patterns=("$@")
for source in "$here"/programs/*.c; do
    program=$(basename "$source" .c)
    for compiler in gcc clang; do
        for level in O2 Os; do
            for machine in rv32im rv32imc; do
                if wanted "$program-$compiler-$level-$machine"; then
                    build "$program" "$compiler" "$level" "$machine"
                fi
            done
        done
    done
done
