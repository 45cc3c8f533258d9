#!/bin/bash
# How is an unpacked archive installed on Debian? Makes a package of it: deb.sh FOLDER ARCH VERSION OUTDIR
# FOLDER is one that scripts/dist.sh archives; writes OUTDIR/varid_VERSION_ARCH.deb. The program is static, so the package depends on nothing. The service in
# it is neither enabled nor started: 'systemctl enable --now varid' does that. With SOURCE_DATE_EPOCH the same folder gives the same package.
set -euo pipefail

[ $# -eq 4 ] || { echo "usage: deb.sh FOLDER ARCH VERSION OUTDIR" >&2; exit 2; }
from=$(cd "$1" && pwd)
arch=$2
version=$3
mkdir -p "$4"
out=$(cd "$4" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

install -D -m 755 "$from/varid" "$root/usr/bin/varid"
install -D -m 644 "$from/libvarid_art.so" "$root/usr/lib/varid/libvarid_art.so"
for library in libvarid_exact_agent.so libvarid_calibrate_counter.so; do
    [ -e "$from/$library" ] || continue
    install -D -m 644 "$from/$library" "$root/usr/lib/varid/$library"
done
# Where varid --adb looks for what it pushes.
for device in "$from"/device/*; do
    [ -d "$device" ] || continue
    to=$root/usr/lib/varid/$(basename "$device")
    mkdir -p "$to"
    case $(basename "$device") in
    x86_64) ln -s ../../../bin/varid "$to/varid" ;;
    *) install -m 755 "$device/varid" "$to/varid" ;;
    esac
done
cp -R "$from/share" "$root/usr/share"
find "$root/usr/share/man" -type f -exec gzip -9n {} +
# As Debian has them.
mkdir -p "$root/usr/share/zsh/vendor-completions"
mv "$root/usr/share/zsh/site-functions/_varid" "$root/usr/share/zsh/vendor-completions/_varid"
rmdir "$root/usr/share/zsh/site-functions"
install -D -m 644 "$here/debian/varid.service" "$root/lib/systemd/system/varid.service"
doc=$root/usr/share/doc/varid
install -D -m 644 "$from/README.md" "$doc/README.md"
gzip -9nc "$from/CHANGELOG.md" >"$doc/changelog.gz"
cp -R "$from/docs" "$doc/docs"
cat "$from"/LICENSE-* "$from/NOTICES" >"$doc/copyright"
cp -R "$from/module" "$root/usr/share/varid-module"
mkdir -p "$root/usr/src"
mv "$root/usr/share/varid-module" "$root/usr/src/varid-$version"
find "$root" -type d -exec chmod 755 {} +
find "$root/usr/share" "$root/usr/src" -type f -exec chmod 644 {} +

mkdir "$root/DEBIAN"
size=$(du -sk --apparent-size "$root" | cut -f 1)
cat >"$root/DEBIAN/control" <<END
Package: varid
Version: $version
Architecture: $arch
Maintainer: The varid authors <varid@localhost>
Installed-Size: $size
Suggests: adb, dkms
Section: devel
Priority: optional
Description: hardware-sampling vertical profiler for dex VMs, native code and the kernel
 One profile from an app's methods through its VM and native libraries to the
 kernel, of Android's ART and of any program on Linux, as a perf.data that other
 tools read, too. Records with BPF as root, or without privileges.
END
# The service is the administrator's to enable, and stays enabled until the package is purged. An upgrade restarts it if it runs: sessions end then.
cat >"$root/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    [ -z "$2" ] || deb-systemd-invoke try-restart varid.service >/dev/null || true
fi
END
cat >"$root/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    deb-systemd-invoke stop varid.service >/dev/null || true
fi
END
cat >"$root/DEBIAN/postrm" <<'END'
#!/bin/sh
set -e
if [ "$1" = purge ] && command -v systemctl >/dev/null; then
    systemctl disable varid.service >/dev/null 2>&1 || true
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
END
chmod 755 "$root"/DEBIAN/post* "$root"/DEBIAN/prerm
(cd "$root" && find . -type f -not -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
when=${SOURCE_DATE_EPOCH:-$(date +%s)}
find "$root" -exec touch -h -d "@$when" {} +
SOURCE_DATE_EPOCH=$when dpkg-deb --root-owner-group -Zxz --build "$root" "$out/varid_${version}_$arch.deb" >/dev/null
