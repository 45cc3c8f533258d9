#!/bin/sh
# Prints the machine code of a recorded call, counts its stores, and times it.
# Fails if a call takes more than two stores. With clang, also for arm64 and arm.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags="-std=c99 -O2 -fomit-frame-pointer -I $here/../include -I $here/../dim"

# Instructions of one function.
body() { # objdump object function
	"$1" -d --no-show-raw-insn "$2" | awk -v name="<$3>:" '
		/^[0-9a-f]+ <.*>:$/ { inside = $2 == name; next }
		inside && NF { sub(/^[ \t]*[0-9a-f]+:[ \t]*/, ""); print }'
}

# The stores among them, without the function's own pushes.
stores() {
	case $1 in
	x86-64) grep -E '^mov[a-z]*[[:space:]].*,[^,]*\([^()]*\)[[:space:]]*(#.*)?$' || true ;;
	*) grep -E '^st(r|p|m)[a-z]*[[:space:]]' | grep -v 'sp!' || true ;;
	esac
}

check() { # machine objdump object
	for function in shadow_enter shadow_leave shadow_unwind; do
		body "$2" "$3" "$function" >"$out/body"
		count=$(stores "$1" <"$out/body" | wc -l)
		printf '%s %s: %d instructions, %d stores\n' "$1" "$function" \
			"$(grep -cvE '^(nop|data16|cs nop|xchg|\.word)' "$out/body")" "$count"
		sed 's/^/    /' "$out/body"
		if [ "$count" -lt 1 ] || [ "$count" -gt 2 ]; then
			echo "$1 $function: one or two stores were promised" >&2
			exit 1
		fi
	done
}

if [ "$(uname -m)" = x86_64 ]; then
	# shellcheck disable=SC2086 # a list
	"${CC:-cc}" $flags -c "$here/shadow_call.c" -o "$out/native.o"
	check x86-64 objdump "$out/native.o"
fi
clang=$(command -v clang || command -v clang-16 || true)
llvm_objdump=$(command -v llvm-objdump || command -v llvm-objdump-16 || true)
if [ -n "$clang" ] && [ -n "$llvm_objdump" ]; then
	for target in arm64:aarch64-linux-gnu arm:armv7-linux-gnueabihf; do
		# shellcheck disable=SC2086 # a list
		"$clang" --target="${target#*:}" -ffreestanding $flags -c "$here/shadow_call.c" -o "$out/cross.o"
		check "${target%%:*}" "$llvm_objdump" "$out/cross.o"
	done
else
	echo "no clang and llvm-objdump: arm64 and arm are not shown"
fi

# shellcheck disable=SC2086 # a list
"${CC:-cc}" $flags -std=gnu11 -DBENCH_MAIN "$here/shadow_call.c" \
	"$here/../dim/base.c" "$here/../dim/dim.c" "$here/../dim/files.c" -o "$out/bench"
"$out/bench"
