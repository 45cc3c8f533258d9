#!/bin/bash
# Does the README work where nothing is installed? Runs its `make demo` in an empty Debian 12 root.
# usage: fresh.sh TARGET [full]
#        fresh.sh --base TARGET      only makes the empty root, for the next run
# The root has Debian's minbase, make, git and ca-certificates; of this machine the kernel's file systems, rustup's toolchains and
# cargo's downloads are mounted into it. It gets a clone of this checkout, with what is not committed yet.
# Without `full` the demo runs what TARGET has built: that shows what it needs at run time. With it everything is built from nothing, the
# packages of deps.sh are compared with what that used, and `make demo-compiled` and `make test` run, too.
# TARGET/fresh keeps the empty root and the packages for the next run. Needs root, mmdebstrap and, with `full`, strace.
set -euo pipefail

usage="usage: fresh.sh TARGET [full] | --base TARGET"
only_base=
if [ "${1:-}" = --base ]; then
    only_base=1
    shift
fi
[ $# -eq 1 ] || { [ $# -eq 2 ] && [ "$2" = full ]; } || { echo "$usage" >&2; exit 2; }
cd "$(dirname "$0")/.."
checkout=$PWD
mkdir -p "$1/fresh/debs/partial"
target=$(realpath "$1")
full=${2:-}
cache=$target/fresh
packages=make,git,ca-certificates
base=$cache/bookworm-$packages.tar

fail() { # WHY
    echo "fresh: $1" >&2
    exit 1
}

[ "$(id -u)" -eq 0 ] || fail "only root can make a root file system and enter it"
for tool in mmdebstrap ${full:+strace}; do
    command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install $tool"
done
demo=$(sed -n 's/^    \(make demo\)\( *#.*\)\{0,1\}$/\1/p' README.md)
[ "$demo" = "make demo" ] || fail "the README does not give the command 'make demo'"

if [ ! -s "$base" ]; then
    mmdebstrap --quiet --variant=minbase --include="$packages" bookworm "$cache/new.tar" \
        ${VARID_DEBIAN_MIRROR:+"$VARID_DEBIAN_MIRROR"} || fail "no empty Debian 12 root can be made"
    mv "$cache/new.tar" "$base"
fi
[ -z "$only_base" ] || exit 0
root=$(mktemp -d -p "$cache" root.XXXXXX)
trap 'rm -rf "$root"' EXIT
tar -C "$root" -xf "$base"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# What is thrown away need not reach the disk.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
# The files have the times that they have here, so that what was built of them is up to date.
git clone --quiet --no-hardlinks . "$root/$checkout"
(cd "$root/$checkout" && git ls-files -z | xargs -0 rm -f)
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    [ ! -e "$file" ] || printf '%s\0' "$file"
done | tar -c --null --files-from=- | tar -C "$root/$checkout" -x

# What commands there see of this machine: folders, at the same paths, and variables.
mounts=(/proc /sys /dev "${CARGO_HOME:-$HOME/.cargo}" "${RUSTUP_HOME:-$HOME/.rustup}")
environment=(HOME="$HOME" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
if [ -z "$full" ]; then
    mounts+=("$target")
    environment+=(CARGO_TARGET_DIR="$target")
fi
for name in CARGO_HOME RUSTUP_HOME VARID_DEBIAN_MIRROR http_proxy https_proxy no_proxy; do
    [ -z "${!name:-}" ] || environment+=("$name=${!name}")
done
# Before a command: runs it in the root's clone. The mounts are private to this namespace, so `rm -rf` of the root does not reach them.
# shellcheck disable=SC2016 # the inner shell's variables
inside=(unshare --mount --propagation private bash -euc '
    root=$1 debs=$2 checkout=$3 count=$4
    shift 4
    # A root that is a mount point: in any other no mount namespace can be made.
    mount --bind "$root" "$root"
    for folder in "${@:1:count}"; do
        mkdir -p "$root/$folder"
        mount --rbind "$folder" "$root/$folder"
    done
    mount --bind "$debs" "$root/var/cache/apt/archives"
    shift "$count"
    exec chroot "$root" env -i --chdir="$checkout" "$@"
' fresh "$root" "$cache/debs" "$checkout" "${#mounts[@]}" "${mounts[@]}" "${environment[@]}")

# This network may have a certificate authority of its own.
authorities=(/usr/local/share/ca-certificates/*.crt)
if [ -e "${authorities[0]}" ]; then
    cp "${authorities[@]}" "$root/usr/local/share/ca-certificates"
    "${inside[@]}" update-ca-certificates >/dev/null || fail "the certificates of this network cannot be installed there"
fi

if [ -z "$full" ]; then
    echo "fresh: 'make demo' in an empty Debian 12 root, of what is built here"
    "${inside[@]}" make demo || fail "'make demo' fails in an empty Debian 12 root"
    exit 0
fi
echo "fresh: 'make demo' in an empty Debian 12 root, built from nothing"
cp "$root/var/lib/dpkg/status" "$root/status.empty"
# What an installation opens is not what the demo needs.
"${inside[@]}" make deps || fail "'make deps' fails in an empty Debian 12 root"
strace --seccomp-bpf -f -y -qq -e trace=execve,openat -e status=successful -o "$root/trace" "${inside[@]}" make demo ||
    fail "'make demo' fails in an empty Debian 12 root"
mapfile -t listed < <(scripts/deps.sh --list)
scripts/fresh_packages.py "$root" "${listed[@]}" || fail "deps.sh installs other packages than 'make demo' needs"
echo "fresh: 'make demo-compiled' there"
"${inside[@]}" make demo-compiled || fail "'make demo-compiled' fails in an empty Debian 12 root"
echo "fresh: 'make test' there"
"${inside[@]}" make test || fail "'make test' fails in an empty Debian 12 root"
