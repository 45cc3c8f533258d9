#!/bin/sh
# Adds varid's hooks to a Dalvik of Android 1.6 to 4.4: apply.sh TREE, where TREE/vm contains the VM's sources. Every hook must
# match exactly where it is expected, and nothing else may change. Otherwise, at any failure and on an interrupt, TREE is left
# unchanged.
# SPDX-License-Identifier: MIT OR Apache-2.0
set -eu

die() { echo "apply: $*" >&2; exit 1; }

[ $# -eq 1 ] || { echo "usage: apply.sh TREE" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
vm=$1/vm
[ -d "$vm" ] || die "$1 has no folder vm: give the folder of Dalvik's sources (dalvik/ in an Android tree)"
vm=$(cd "$vm" && pwd)
command -v spatch >/dev/null || die "no spatch: install Coccinelle (Debian: coccinelle)"
if [ -e "$vm/varid" ] || [ -L "$vm/varid" ]; then
	die "$vm/varid is there already: the tree is patched"
fi

# Detects the generation by properties that no hook changes: file names and where the files are listed.
jit='' jit_reset='' method_jit='' modes=''
if [ -f "$vm/Init.cpp" ]; then
	generation='4.x' language=--c++ ext=cpp makefile=Dvm.mk jit=1 jit_reset=1 method_jit=1 modes=1
elif [ -f "$vm/Init.c" ]; then
	language='' ext=c makefile=Dvm.mk
	if [ -f "$vm/ReconfigureDvm.mk" ]; then
		generation='2.2 or 2.3' jit=1 jit_reset=1
	elif [ -f "$vm/Dvm.mk" ]; then
		generation='2.0 or 2.1' jit=1
	else
		generation='1.6' makefile=Android.mk
	fi
else
	die "$vm has neither Init.c nor Init.cpp: not a Dalvik of Android 1.6 to 4.4"
fi

# FILE HOOK...: the hooks that match in each file, each of them once.
plan() {
	echo "Init.$ext running shutdown"
	echo "Thread.$ext thread_start thread_exit"
	echo "oo/Class.$ext class class_gone"
	echo "Profile.$ext invoke"
	[ -z "$jit" ] || echo "compiler/Compiler.$ext jit ${jit_reset:+jit_reset}"
	[ -z "$method_jit" ] || echo "compiler/Frontend.$ext jit"
	[ -z "$modes" ] || echo "interp/Interp.$ext thread_modes"
}
files="$(plan | cut -d ' ' -f 1) $makefile"
for file in $files; do
	if [ ! -f "$vm/$file" ] || [ -L "$vm/$file" ]; then
		die "$vm/$file is missing or no regular file, and Android $generation has it"
	fi
done

work=$(mktemp -d)
changing=''
finish() {
	status=$?
	trap '' HUP INT QUIT PIPE TERM
	if [ -n "$changing" ]; then
		for file in $files; do
			cmp -s "$work/before/$file" "$vm/$file" || cp -p "$work/before/$file" "$vm/$file"
		done
		rm -rf "$vm/varid"
		echo "apply: $vm is as it was" >&2
	fi
	rm -rf "$work"
	exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 131' QUIT
trap 'exit 141' PIPE
trap 'exit 143' TERM

for file in $files; do
	mkdir -p "$work/before/$(dirname "$file")" "$work/after/$(dirname "$file")"
	cp -p "$vm/$file" "$work/before/$file"
	cp -p "$vm/$file" "$work/after/$file"
done

# Checks that lines were only added.
only_added() { # FILE
	diff "$work/before/$1" "$work/after/$1" >"$work/diff" || [ $? -eq 1 ]
	if grep -q '^<' "$work/diff"; then
		cat "$work/diff" >&2
		die "$1: more would change than lines that are added"
	fi
}

count() { # PATTERN FILE: how many lines have it
	grep -cE -- "$1" "$work/after/$2" || true
}

plan >"$work/plan"
while read -r file hooks; do
	# shellcheck disable=SC2086 # no argument, or one
	spatch $language --no-includes --very-quiet --in-place --sp-file "$here/hooks.cocci" \
		"$work/after/$file" >"$work/log" 2>&1 || { cat "$work/log" >&2; die "$file: spatch failed"; }
	only_added "$file"
	included=$(count '^#include "varid/varid_dalvik\.h"$' "$file")
	[ "$included" -eq 1 ] || die "$file: its header fits $included times, 1 expected: is Dalvik.h included?"
	for hook in $hooks; do
		found=$(count "\\bvarid_dalvik_$hook\\(" "$file")
		[ "$found" -eq 1 ] || die "$file: hook $hook fits $found times, 1 expected"
	done
	all=$(count '\bvarid_dalvik_[a-z_]+\(' "$file")
	# shellcheck disable=SC2086 # a list
	set -- $hooks
	[ "$all" -eq $# ] || die "$file: $all hooks fit, $# expected"
	echo "$file: $hooks"
done <"$work/plan"

# shellcheck disable=SC2016 # make's variable, not the shell's
fragment='include $(LOCAL_PATH)/varid/varid.mk'
if [ "$makefile" = Dvm.mk ]; then # included where the library is defined
	{ echo; echo "$fragment"; } >>"$work/after/$makefile"
else
	sed "/^[[:space:]]*include [$](BUILD_SHARED_LIBRARY)/i $fragment" \
		"$work/before/$makefile" >"$work/after/$makefile"
fi
only_added "$makefile"
found=$(count '^include \$\(LOCAL_PATH\)/varid/varid\.mk$' "$makefile")
[ "$found" -eq 1 ] || die "$makefile: varid.mk fits $found times, 1 expected"
echo "$makefile: varid.mk"

changing=1
mkdir "$vm/varid"
cp "$here/varid_dalvik.h" "$here/varid.mk" "$here/../include/varid_tunnel.h" \
	"$here"/../dim/*.c "$here"/../dim/*.h "$vm/varid"
cp "$here/varid_dalvik.c" "$vm/varid/varid_dalvik.$ext"
for file in $files; do
	cat "$work/after/$file" >"$vm/$file"
done
changing=''
echo "Android $generation: patched"
