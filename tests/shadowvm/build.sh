#!/bin/sh
# Builds shadowvm, its dex file, and plainvm, the same VM without dim: build.sh OUTDIR
# CC and CFLAGS are heeded, so that it can be built for another machine.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: build.sh OUTDIR}
dim=$here/../../dvm-patch
methods=$here/../methods
java_dir=${JAVA_JARS:-/usr/share/java}

mkdir -p "$out/smali"
smali=$out/smali/Methods.smali
{
	printf '.class public Lorg/example/shadow/Methods;\n'
	printf '.super Ljava/lang/Object;\n'
	printf '.source "Methods.java"\n'
	n=0
	while [ "$n" -lt 64 ]; do
		printf '\n.method public static m%02d(J)J\n' "$n"
		printf '    .registers 4\n'
		printf '    .line %d\n' $((n * 10 + 1))
		printf '    const-wide/16 v0, %d\n' "$n"
		printf '    .line %d\n' $((n * 10 + 2))
		printf '    add-long/2addr p0, v0\n'
		printf '    .line %d\n' $((n * 10 + 3))
		printf '    return-wide p0\n'
		printf '.end method\n'
		n=$((n + 1))
	done
} >"$smali"

classpath=
for jar in smali smali-util dexlib2 jcommander guava antlr3-runtime; do
	classpath=$classpath:$java_dir/$jar.jar
done
java -cp "${classpath#:}" org.jf.smali.Main assemble -o "$out/shadow.dex" "$out/smali"

# Frame pointers, and every call a call, are what truth is read from.
build() { # NAME OPTION...
	name=$1
	shift
	# shellcheck disable=SC2086 # CFLAGS is a list
	"${CC:-cc}" ${CFLAGS:-} "$@" -std=gnu11 -O2 -g -Wall -Wextra -Werror -Wno-clobbered \
		-fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-reorder-blocks-and-partition \
		-I "$dim/include" -I "$dim/dim" -I "$methods" \
		"$here/main.c" "$here/methods.c" "$methods/dex.c" "$dim"/dim/*.c \
		-pthread -o "$out/$name"
}
build shadowvm
build plainvm -DWITHOUT_DIM
