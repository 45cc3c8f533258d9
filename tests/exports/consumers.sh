#!/bin/sh
# What do viewers that Debian does not have read in an export? Fetches them once into FOLDER, from npm and PyPI, of fixed versions.
# usage: consumers.sh FOLDER speedscope FILE...          the heaviest frames by speedscope's own import, for each file
#        consumers.sh FOLDER schemas PERFETTO OTLP       the heaviest frames by the public schemas of both
#        consumers.sh FOLDER grpc OTLP                   the heaviest frames that a server of OpenTelemetry's profiles service is sent
# Exits with 77 if they cannot be fetched here.
set -eu

[ $# -ge 3 ] || { sed -n '3,5s/^# *//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
what=$2
shift 2
exec 9>"$folder/.lock"
flock 9

unreachable() { # WHY
    echo "consumers.sh: $1" >&2
    exit 77
}

python_packages() { # NAME PACKAGE...: into a folder of this name
    name=$1
    shift
    if [ ! -e "$folder/$name/.done" ]; then
        rm -rf "${folder:?}/$name"
        python3 -m pip --version >/dev/null 2>&1 || unreachable "pip is missing"
        python3 -m pip install --quiet --no-deps --no-cache-dir --disable-pip-version-check --target "$folder/$name" "$@" >&2 ||
            unreachable "pip cannot fetch $*"
        touch "$folder/$name/.done"
    fi
}

case $what in
speedscope)
    command -v node >/dev/null || unreachable "node is missing"
    if [ ! -e "$folder/speedscope/.done" ]; then
        cd "$folder"
        npm pack --silent --cache "$folder/npm-cache" speedscope@1.25.0 >&2 || unreachable "npm cannot fetch speedscope"
        mkdir -p speedscope
        tar -xzf speedscope-1.25.0.tgz -C speedscope
        rm -rf npm-cache speedscope-1.25.0.tgz
        touch speedscope/.done
        cd - >/dev/null
    fi
    node "$here/speedscope.js" "$folder"/speedscope/package/dist/release/speedscope-*.js "$@"
    ;;
schemas)
    python_packages schemas protobuf==7.36.2 opentelemetry-proto==1.45.2 perfetto==0.59.1
    PYTHONPATH=$folder/schemas python3 -B "$here/schemas.py" "$@"
    ;;
grpc)
    python_packages grpc protobuf==7.36.2 opentelemetry-proto==1.45.2 grpcio==1.85.3 typing-extensions==4.16.0
    PYTHONPATH=$folder/grpc python3 -B "$here/otlp_grpc.py" "$@"
    ;;
*) exit 2 ;;
esac
