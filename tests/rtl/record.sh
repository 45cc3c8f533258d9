#!/bin/bash
# Finds what programs take on each processor of configurations.tsv, in RTL: BUILD/elf has the programs, BUILD/truth a
# file for each processor. Without PATTERNs these are all programs.
# --recorded: the programs that ../guest/recorded names, into ../guest/elf and ../guest/truth, where the tests of each
# change have them.
# --registries: the programs that others have written, into BUILD/registries; their files into ../guest/registries/truth.
# usage: record.sh BUILD [PATTERN...]
#        record.sh --recorded BUILD
#        record.sh --registries BUILD
set -euo pipefail

usage="usage: record.sh [--recorded | --registries] BUILD [PATTERN...]"
[ $# -ge 1 ] || { echo "$usage" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
guest=$here/../guest
programs=all
case $1 in
--recorded | --registries)
    programs=${1#--}
    shift
    ;;
esac
[ $# -ge 1 ] || { echo "$usage" >&2; exit 2; }
mkdir -p "$1"
build=$(cd "$1" && pwd)
shift
for tool in qemu-riscv32 verilator; do
    command -v "$tool" >/dev/null || { echo "record.sh: $tool is missing" >&2; exit 77; }
done

"$here/build.sh" "$build"
gcc -O1 -Wall -Wextra -shared -fPIC -fvisibility=hidden -o "$build/executions.so" "$guest/executions.c"
case $programs in
all)
    elf=$build/elf truth=$build/truth
    "$guest/build.sh" "$elf" "$@"
    ;;
recorded)
    elf=$guest/elf truth=$guest/truth
    mapfile -t patterns <"$guest/recorded"
    "$guest/build.sh" "$elf" "${patterns[@]}"
    ;;
registries)
    elf=$build/registries truth=$guest/registries/truth
    "$guest/registries.sh" "$build/crates" "$elf"
    ;;
esac
mapfile -t names < <(grep -v '^#' "$here/configurations.tsv" | cut -f 1)
python3 -B "$here/truth.py" "$build" "$build/executions.so" "$truth" "${names[@]}" -- "$elf"/*.elf
