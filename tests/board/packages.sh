#!/bin/bash
# Where are Debian's packages for the board? Fetches them for any architecture, leaving this machine's dpkg alone.
# usage: packages.sh ARCH SUITE PACKAGE...     prints the path of each .deb, a line each
# ARCH is Debian's name (arm64, armhf, amd64), SUITE a release (bookworm, bookworm-backports); +PACKAGE is what the metapackage
# PACKAGE depends on; src:PACKAGE is a source package, whose .dsc is printed. What was fetched once is taken from the cache, without
# network. Exit status 3: a package is not in the cache and cannot be fetched.
set -euo pipefail

[ $# -ge 3 ] || { echo "usage: packages.sh ARCH SUITE PACKAGE..." >&2; exit 2; }
arch=$1
suite=$2
shift 2
cd "$(dirname "$0")/../.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cache=$target/board/cache/$suite-$arch
apt=$cache/apt
mkdir -p "$cache"
# Two tests may want the same package at the same time.
exec 9>"$cache/.lock"
flock 9

fail() { # WHAT
    echo "packages: $1, and not in $cache" >&2
    exit 3
}

private() { # COMMAND ARGUMENT...: a command of apt, on a state of its own
    APT_CONFIG=$apt/apt.conf "$@"
}

sources=
case " $*" in
*" src:"*) sources=1 ;;
esac

updated=
update() { # the lists of the suite, once a run; those of source packages if one is named
    [ -z "$updated" ] || return 0
    updated=1
    mkdir -p "$apt/lists/partial" "$apt/archives/partial"
    : >"$apt/status"
    # deb.debian.org, or a mirror of it.
    local key=signed-by=/usr/share/keyrings/debian-archive-keyring.gpg mirror=${VARID_DEBIAN_MIRROR:-http://deb.debian.org/debian}
    {
        echo "deb [target=Packages $key] $mirror $suite main"
        [ -z "$sources" ] || echo "deb-src [$key] $mirror $suite main"
    } >"$apt/sources.list"
    cat >"$apt/apt.conf" <<END
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "2";
END
    # A list that was not fetched is only a warning to apt.
    if ! private apt-get -q update >"$apt/log" 2>&1 || grep -q '^[WE]: ' "$apt/log"; then
        fail "the lists of $suite cannot be fetched ($(grep -m 1 '^[WE]: ' "$apt/log"))"
    fi
}

real_name() { # PACKAGE: of a metapackage's first dependency
    local file=$cache/$1.is
    if [ ! -s "$file" ]; then
        update
        private apt-cache depends "$1" 2>/dev/null | awk '$1 == "Depends:" { print $2; exit }' >"$file.new"
        [ -s "$file.new" ] || fail "$1 of $suite depends on nothing"
        mv "$file.new" "$file"
    fi
    cat "$file"
}

deb() { # PACKAGE: its file in the cache, if it is there
    local file
    case $1 in
    src:*) set -- "$cache/${1#src:}"_*.dsc ;;
    *) set -- "$cache/$1"_*.deb ;;
    esac
    for file; do
        [ ! -e "$file" ] || echo "$file"
    done
}

names=()
missing=()
missing_sources=()
for name in "$@"; do
    case $name in
    +*) name=$(real_name "${name#+}") ;;
    esac
    names+=("$name")
    [ -z "$(deb "$name")" ] || continue
    case $name in
    src:*) missing_sources+=("${name#src:}") ;;
    *) missing+=("$name") ;;
    esac
done
if [ "$((${#missing[@]} + ${#missing_sources[@]}))" -gt 0 ]; then
    update
    # apt checks what it fetched against the signed lists; only whole files reach the cache.
    fresh=$(mktemp -d "$cache/fresh.XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    [ "${#missing[@]}" -eq 0 ] || (cd "$fresh" && private apt-get -q download "${missing[@]}" >"$apt/log" 2>&1) ||
        fail "${missing[*]} cannot be fetched ($(grep -m 1 '^E: ' "$apt/log"))"
    [ "${#missing_sources[@]}" -eq 0 ] ||
        (cd "$fresh" && private apt-get -q source --download-only "${missing_sources[@]}" >"$apt/log" 2>&1) ||
        fail "the sources of ${missing_sources[*]} cannot be fetched ($(grep -m 1 '^E: ' "$apt/log"))"
    # The .dsc last: who finds it finds all that it names.
    for file in "$fresh"/*; do
        case $file in
        *.dsc) ;;
        *) mv "$file" "$cache" ;;
        esac
    done
    for file in "$fresh"/*.dsc; do
        [ ! -e "$file" ] || mv "$file" "$cache"
    done
fi
for name in "${names[@]}"; do
    deb "$name"
done
