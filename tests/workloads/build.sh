#!/bin/sh
# Builds the workloads: one dex per package, and the libraries of those that have native methods.
# usage: build.sh OUTDIR        (again: writes the same files again)
set -eu

[ $# -eq 1 ] || { echo "usage: build.sh OUTDIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
# Tests that run side by side may share OUTDIR.
exec 9>"$out/.lock"
flock 9

java=/usr/share/java
smali_classpath=
for jar in smali smali-util dexlib2 antlr3-runtime jcommander guava stringtemplate; do
    smali_classpath=$smali_classpath:$java/$jar.jar
done
[ -e "$java/smali.jar" ] || { echo "build.sh: no $java/smali.jar: install libsmali-java" >&2; exit 1; }

assemble() { # NAME [OPTION...]: the smali below OUTDIR/smali/NAME becomes OUTDIR/NAME.dex
    # One job: with several, the order of the strings, and so the file, would differ from run to run.
    name=$1
    shift
    rm -f "$out/$name.dex.new"
    java -Xshare:auto -XX:TieredStopAtLevel=1 -cp "${smali_classpath#:}" org.jf.smali.Main \
        assemble --jobs 1 "$@" --output "$out/$name.dex.new" "$out/smali/$name"
    # smali's exit status is 0 even if it refuses a file.
    [ -e "$out/$name.dex.new" ] || { echo "build.sh: smali made no $name.dex" >&2; exit 1; }
    mv "$out/$name.dex.new" "$out/$name.dex"
}

compile() { # NAME [FILE...]: the Java below NAME, and FILE, become smali below OUTDIR/smali/NAME
    name=$1
    shift
    rm -rf "$out/smali/$name"
    mkdir -p "$out/smali/$name"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here python3 -m javalet "$out/smali/$name" "$here/$name/org/example/$name"/*.java "$@"
}

for each in math truth cradle vm scene waits corner faults; do
    compile "$each"
    assemble "$each"
done
rm -rf "$out/java/jit"
mkdir -p "$out/java/jit"
"$here/jit/generate.py" "$out/java/jit"
compile jit "$out"/java/jit/*.java
assemble jit
compile alike
assemble alike
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here "$here/alike/share.py" "$out/alike.dex"
"$here/libraries.sh" "$out"
"$here/truth/describe.py" "$out/smali/truth" "$out/truth.json"

rm -rf "$out/smali/odd"
mkdir -p "$out/smali/odd"
cp "$here"/odd/*.smali "$out/smali/odd"
"$here/odd/generate.py" "$out/smali/odd/Generated.smali"
assemble odd --api 30
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here "$here/odd/finish.py" "$out/odd.dex"
