#!/bin/bash
# What do real Java programs of Debian 12 need beside a JVM? Makes OUTDIR/jvm/programs: their jars, our drivers and what they work on.
# usage: build.sh OUTDIR      needs a JDK 17 (openjdk-17-jdk-headless)
# Does nothing if the folder is up to date. The packages are fetched by tests/board/packages.sh, 90 MB, and kept below target/. Exit
# status 3: a package is not in the cache and cannot be fetched.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: build.sh OUTDIR" >&2; exit 2; }
here=$(realpath "$(dirname "$0")")
out=$(realpath -m "$1")/jvm
javac=/usr/lib/jvm/java-17-openjdk-$(dpkg --print-architecture)/bin/javac
[ -x "$javac" ] || { echo "programs: no JDK 17 here: apt-get install openjdk-17-jdk-headless" >&2; exit 2; }
packages=(libeclipse-jdt-core-java libh2-java liblucene8-java
    jython libguava-java libasm-java libantlr3-runtime-java libicu4j-java libjffi-java libjffi-jni libjnr-constants-java libjnr-ffi-java
    libjnr-netdb-java libjnr-posix-java libjnr-x86asm-java libjctools-java libnetty-java libjline2-java libjansi1-java
    libstringtemplate4-java libcommons-compress-java
    libfop-java libbatik-java libcommons-io-java libcommons-logging-java libfontbox2-java libqdox-java libxml-commons-external-java
    libxmlgraphics-commons-java)
# Beside the others: with Xalan in the class path, FOP would transform by it.
apart=(libxalan2-java librhino-java)
mkdir -p "$out"
exec 8>"$out/.lock"
flock 8
signature=$(cat "$here"/build.sh "$here"/*.java | sha256sum | cut -d' ' -f1)
[ "$(cat "$out/programs/signature" 2>/dev/null)" != "$signature" ] || exit 0

arch=$(dpkg --print-architecture)
list=$("$here/../../board/packages.sh" "$arch" bookworm "${packages[@]}") || exit
others=$("$here/../../board/packages.sh" "$arch" bookworm "${apart[@]}") || exit
sources=$("$here/../../board/packages.sh" "$arch" bookworm src:libcommons-collections4-java) || exit
rm -rf "${out:?}/programs"
work=$(mktemp -d "$out/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/root" "$work/apart" "$work/classes"
unpack() { # FOLDER PACKAGES
    while read -r deb; do
        dpkg-deb -x "$deb" "$work/$1"
    done <<<"$2"
}
unpack root "$list"
unpack apart "$others"
# The sources that the compiler compiles: its own tests are left out, for they need JUnit.
dpkg-source --no-check -x "$sources" "$work/unpacked" >/dev/null
mkdir "$work/sources"
cp -R "$work/unpacked/src/main/java/org" "$work/sources/"
rm -r "$work/unpacked"
"$javac" -nowarn --release 17 -cp "$work/root/usr/share/java/*:$work/apart/usr/share/java/*" -d "$work/classes" "$here"/*.java
chmod 755 "$work"
echo "$signature" >"$work/signature"
mv "$work" "$out/programs"
echo "programs: $out/programs, after $SECONDS s"
