#!/bin/bash
# Finds what programs take on each processor of configurations.tsv, in RTL: BUILD/elf has the programs, BUILD/truth a
# file for each processor. Without PATTERNs these are all programs.
# --recorded: the programs that ../guest/recorded names, into ../guest/elf and ../guest/truth, where the tests of each
# change have them.
# usage: record.sh BUILD [PATTERN...]
#        record.sh --recorded BUILD
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: record.sh [--recorded] BUILD [PATTERN...]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
guest=$here/../guest
recorded=
if [ "$1" = --recorded ]; then
    recorded=1
    shift
fi
mkdir -p "$1"
build=$(cd "$1" && pwd)
shift
for tool in qemu-riscv32 verilator; do
    command -v "$tool" >/dev/null || { echo "record.sh: $tool is missing" >&2; exit 77; }
done

"$here/build.sh" "$build"
gcc -O1 -Wall -Wextra -shared -fPIC -fvisibility=hidden -o "$build/executions.so" "$guest/executions.c"
if [ -n "$recorded" ]; then
    elf=$guest/elf truth=$guest/truth
    mapfile -t patterns <"$guest/recorded"
else
    elf=$build/elf truth=$build/truth patterns=("$@")
fi
"$guest/build.sh" "$elf" "${patterns[@]}"
mapfile -t names < <(grep -v '^#' "$here/configurations.tsv" | cut -f 1)
python3 -B "$here/truth.py" "$build" "$build/executions.so" "$truth" "${names[@]}" -- "$elf"/*.elf
