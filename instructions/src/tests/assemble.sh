#!/bin/sh
# Writes the bytes of each instruction in a list in front of it, as the assembler of binutils encodes it:
#
#     BYTES | INSTRUCTION | WHAT IT DOES
set -eu
cd "$(dirname "$0")"

assemble() { # LIST ASSEMBLER OPTION...
    list=$1
    shift
    # A listing has a line for each instruction: its number, its offset and its bytes, a tab, and the text.
    awk -F ' [|] ' '{ print $2 }' "$list" | "$@" -aln --listing-lhs-width=4 -o /dev/null - |
        awk -F '\t' '{ n = split($1, part, " "); bytes = ""; for (i = 3; i <= n; i++) bytes = bytes part[i]; print tolower(bytes) }' |
        paste -d ' ' - "$list" | sed 's/^\([0-9a-f]*\) [0-9a-f]* |/\1 |/' > "$list.new"
    mv "$list.new" "$list"
}

assemble aarch64.lst aarch64-linux-gnu-as -march=armv8.1-a
assemble arm.lst arm-linux-gnueabihf-as -march=armv7-a -mfpu=vfpv3
assemble x86_64.lst as --64
