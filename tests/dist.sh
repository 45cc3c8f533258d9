#!/bin/bash
# Can a user do with the archives and packages what they are for? Unpacks each, checks what is in it, and runs what runs here.
# usage: dist.sh OUTDIR      OUTDIR is that of scripts/dist.sh. Ends with how many checks were made; exit status 0 if all hold.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: dist.sh OUTDIR" >&2; exit 2; }
out=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checked=0
wrong=0

holds() { # WHAT COMMAND...: the command succeeds
    local what=$1
    shift
    checked=$((checked + 1))
    "$@" || { echo "dist: wrong: $what" >&2; wrong=$((wrong + 1)); }
}

says() { # PATTERN COMMAND...: the command succeeds and prints a line like the pattern
    local pattern=$1
    shift
    "$@" >"$work/said" 2>&1 && grep -Eq "$pattern" "$work/said"
}

silent_on() { # PATTERN COMMAND...: the command succeeds and prints no such line
    local pattern=$1
    shift
    "$@" >"$work/said" 2>&1 && ! grep -Eq "$pattern" "$work/said"
}

static() { # FILE: needs no dynamic linker and no library
    holds "$1 names no interpreter" silent_on INTERP readelf -lW "$1"
    holds "$1 needs no library" silent_on NEEDED readelf -dW "$1"
}

headers() { # ARCH METAPACKAGE: the folder with the headers of Debian's kernel; fails without cache and network
    local deb release
    deb=$("$root/tests/board/packages.sh" "$1" bookworm "$2") || return
    release=$(basename "$deb" | sed 's/^linux-headers-//; s/_.*//')
    "$root/tests/board/headers.sh" "$1" bookworm "$release"
}

# Without what only tests have. That they compile by themselves is a matter of what is in them: nothing outside of their folders.
holds "crates can be packaged" sh -c "cd '$root' && cargo package --quiet --offline --locked --no-verify --allow-dirty --workspace \
    --exclude varid-tests --exclude varid-testing --exclude artvm --exclude varid-stackvm --exclude varid-fuzz 2>'$work/packaged'"

cd "$out"
holds checksums sha256sum --quiet -c SHA256SUMS
while read -r arch machine device metapackage kernel tools; do
    archives=(varid-*-linux-"$arch".tar.gz)
    name=${archives[0]%.tar.gz}
    holds "$name: all is root's" silent_on '^[^ ]+ (0/[1-9]|[1-9])' tar --numeric-owner -tvzf "$name.tar.gz"
    tar -C "$work" -xzf "$name.tar.gz"
    at=$work/$name
    for file in README.md CHANGELOG.md NOTICES LICENSE-MIT LICENSE-APACHE LICENSE-GPL-2.0 docs/README.md module/Kbuild module/dkms.conf \
        module/include/walker.h module/include/rules/list.h android/varid.rc android/Android.bp android/Android.mk android/sepolicy/varid.te \
        android/boards/generic-armv8.events share/man/man1/varid.1 share/man/man1/varid-report.1 \
        share/bash-completion/completions/varid share/zsh/site-functions/_varid share/fish/vendor_completions.d/varid.fish; do
        holds "$name has $file" test -s "$at/$file"
    done
    if kdir=$(headers "$arch" "$metapackage"); then
        # Debian's headers name the compiler of their release; this one will do. A module without BTF will do, too.
        holds "$name: the module builds" says '' make -C "$at/module" KDIR="$kdir" ARCH="$kernel" CROSS_COMPILE="$tools" \
            CC="${tools}gcc" CONFIG_DEBUG_INFO_BTF_MODULES=
        holds "$name: the module is for $machine" says "Machine: +$machine" readelf -hW "$at/module/varid.ko"
    else
        echo "dist: skipped: $name: its module is not built without $metapackage"
    fi
    holds "$name: varid is for $machine" says "Machine: +$machine" readelf -hW "$at/varid"
    static "$at/varid"
    holds "$name: the agent is for $machine" says "Machine: +$machine" readelf -hW "$at/libvarid_art.so"
    holds "$name: the agent is a library" says 'SONAME.*libvarid_art\.so' readelf -dW "$at/libvarid_art.so"
    holds "$name: notices name a crate" grep -q '^aya [0-9]' "$at/NOTICES"
    if [ "$arch" = "$(dpkg --print-architecture)" ]; then
        version=${name#varid-}
        holds "$name: --version" says "^varid ${version%%-linux-*}\$" "$at/varid" --version
        # Its exit status is about this machine.
        holds "$name: doctor" says 'What varid will use' sh -c "'$at/varid' doctor || true"
    fi
    version=${name#varid-}
    version=${version%%-linux-*}
    deb=varid_${version}_$arch.deb
    holds "$deb is there" test -s "$deb"
    holds "$deb: all is root's" sh -c "! dpkg-deb -c '$deb' | grep -v ' root/root '"
    holds "$deb depends on nothing" silent_on '^Depends:' dpkg-deb -I "$deb"
    holds "$deb is for $arch" says "^ Architecture: $arch\$" dpkg-deb -I "$deb"
    for script in postinst prerm postrm; do
        dpkg-deb -I "$deb" "$script" >"$work/$script"
        holds "$deb: $script is a script" sh -c "test -s '$work/$script' && sh -n '$work/$script'"
    done
    dpkg-deb -x "$deb" "$work/$deb.root"
    for file in usr/bin/varid usr/lib/varid/libvarid_art.so lib/systemd/system/varid.service usr/share/man/man1/varid-report.1.gz \
        usr/share/bash-completion/completions/varid usr/share/zsh/vendor-completions/_varid usr/share/fish/vendor_completions.d/varid.fish \
        usr/share/doc/varid/copyright "usr/src/varid-$version/dkms.conf"; do
        holds "$deb has $file" test -s "$work/$deb.root/$file"
    done
    holds "$deb has the archive's varid" cmp "$at/varid" "$work/$deb.root/usr/bin/varid"
    holds "$deb: nothing in it was changed" sh -c "cd '$work/$deb.root' && dpkg-deb -I '$out/$deb' md5sums | md5sum --quiet -c -"
    if command -v systemd-analyze >/dev/null && [ "$arch" = "$(dpkg --print-architecture)" ]; then
        sed "s!/usr/bin/varid!$work/$deb.root&!" "$work/$deb.root/lib/systemd/system/varid.service" >"$work/varid.service"
        holds "$deb: systemd takes the service" silent_on varid systemd-analyze verify --man=no "$work/varid.service"
    fi
    if [ "$device" = host ]; then
        for each in arm64:AArch64 armhf:ARM x86_64:'Advanced Micro Devices X86-64'; do
            holds "$name: device/${each%%:*}" says "Machine: +${each#*:}\$" readelf -hW "$at/device/${each%%:*}/varid"
            static "$at/device/${each%%:*}/varid"
        done
        for each in arm64 armhf; do
            holds "$name: device/$each is small" test "$(stat -c %s "$at/device/$each/varid")" -le 5242880
        done
    fi
done <<'END'
amd64 Advanced.Micro.Devices.X86-64 host +linux-headers-amd64 x86
arm64 AArch64 device +linux-headers-cloud-arm64 arm64 aarch64-linux-gnu-
armhf ARM device +linux-headers-armmp arm arm-linux-gnueabihf-
END
echo "dist: $checked checks, $wrong wrong"
[ "$wrong" -eq 0 ]
