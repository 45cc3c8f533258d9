#!/bin/bash
# What is given to users? Makes an archive for each processor, and their checksums: dist.sh OUTDIR
# OUTDIR/varid-VERSION-linux-ARCH.tar.gz and varid_VERSION_ARCH.deb for amd64, arm64 and armhf, OUTDIR/SHA256SUMS. In each archive: varid, static, the agent for
# ART, the module's sources, android/, documentation, manual, completions and licences; for a host (amd64) also device/ARCH/varid, which varid --adb pushes.
# The same sources and compilers give the same archives.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: dist.sh OUTDIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
when=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}
stage=$out/stage
rm -rf "$stage" "$out"/*.tar.gz "$out"/*.deb "$out/SHA256SUMS"
mkdir -p "$stage/board"

scripts/notices.py x86_64-unknown-linux-musl aarch64-unknown-linux-musl armv7-unknown-linux-gnueabihf >"$stage/NOTICES"
for arch in arm64 armhf; do
    scripts/cross.sh --board "$arch" "$stage/board/$arch"
done
for arch in amd64 arm64 armhf; do
    scripts/cross.sh "$arch" "$stage/varid-$version-linux-$arch"
done
# The manual and completions are alike for all processors; the varid for this one writes them.
SOURCE_DATE_EPOCH=$when scripts/manual.sh "$stage/varid-$version-linux-$(dpkg --print-architecture)/varid" "$stage/manual"
for arch in amd64 arm64 armhf; do
    name=varid-$version-linux-$arch
    to=$stage/$name
    cp -R "$stage/manual/share" "$to/"
    cp LICENSE-* README.md CHANGELOG.md "$stage/NOTICES" "$to/"
    cp -R docs "$to/"
    kmod-shim/module/sources.sh "$to/module"
    cp -R android "$to/"
    if [ "$arch" = amd64 ]; then
        for device in arm64 armhf; do
            install -D "$stage/board/$device/varid" "$to/device/$device/varid"
        done
        mkdir "$to/device/x86_64"
        # A library of a Java VM cannot be static.
        if [ "$(dpkg --print-architecture)" = amd64 ]; then
            cargo build --quiet --locked --release -p varid-exact-agent -p varid-calibrate-counter
            for library in libvarid_exact_agent.so libvarid_calibrate_counter.so; do
                strip -o "$to/$library" "${CARGO_TARGET_DIR:-target}/release/$library"
            done
        fi
        ln -s ../../varid "$to/device/x86_64/varid"
    fi
    tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+w --mtime="@$when" -cf - "$name" |
        gzip -9n >"$out/$name.tar.gz"
    SOURCE_DATE_EPOCH=$when scripts/deb.sh "$to" "$arch" "$version" "$out"
done
(cd "$out" && sha256sum ./*.tar.gz ./*.deb >SHA256SUMS)
rm -rf "$stage"
stat -c "dist: %n %s bytes" "$out"/*.tar.gz "$out"/*.deb
