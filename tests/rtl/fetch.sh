#!/bin/sh
# Fetches the hardware descriptions of the processors, wheels of fixed versions and contents from PyPI, and unpacks
# them into OUTDIR/NAME. Does nothing the second time. Exits with 77 if they cannot be fetched here.
# usage: fetch.sh OUTDIR
set -eu

[ $# -eq 1 ] || { echo "usage: fetch.sh OUTDIR" >&2; exit 2; }
mkdir -p "$1"
cd "$1"

fetch() { # NAME VERSION SHA256
    [ -e "$1/.done" ] && return
    package=pythondata-cpu-$1
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest wheels "$package==$2" >&2 ||
        { echo "fetch.sh: pip cannot fetch $package $2" >&2; exit 77; }
    wheel=wheels/pythondata_cpu_$1-$2-py3-none-any.whl
    echo "$3  $wheel" | sha256sum --check --quiet || { echo "fetch.sh: $wheel is not what it was" >&2; exit 1; }
    rm -rf "$1"
    mkdir "$1"
    python3 -m zipfile -e "$wheel" "$1"
    touch "$1/.done"
    rm -r wheels
}

fetch cv32e40p 1.0.1.post1909 424a04b65d854903ada62feb94a78346e60dc84c5487ed1f32405666eee6f8c3
fetch ibex 0.0.post2937 bcb32ffccc75097248a11b3e52031eca92d21c6c6161a29151c8c79d6157e1c9
fetch picorv32 1.0.post218 c6d3e405a50c54f86a436a49cc24ea2f0c00d9cc07c96e7ee12e65736d75eabd
fetch vexriscv 1.0.1.post407 8fbdd9ee58ab2300343846e12a70e8f8f882eced13456c359a6b65a442ce0fbc
