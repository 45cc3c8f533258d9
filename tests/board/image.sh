#!/bin/bash
# What does the board boot? Makes its kernel and its root file system from Debian's packages.
# usage: image.sh ARCH OUT       ARCH: arm64 or armhf. Makes OUT/kernel, OUT/initramfs and OUT/release (the kernel's version)
# In the image: busybox, adbd, android-libart with what it needs, and linux-perf, where Debian puts them.
# Does nothing if OUT is up to date. Exit status 3: packages can be had neither from the cache nor by network.
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: image.sh ARCH OUT" >&2; exit 2; }
here=$(realpath "$(dirname "$0")")
out=$(realpath -m "$2")
arch=$1
case $arch in
arm64) triplet=aarch64-linux-gnu kernel=+linux-image-cloud-arm64 ;;
armhf) triplet=arm-linux-gnueabihf kernel=+linux-image-armmp ;;
*) echo "image: no board for $arch: there are arm64 and armhf" >&2; exit 2 ;;
esac

art=(android-libart android-libbacktrace android-libbase android-liblog android-libnativebridge android-libnativeloader
    android-libziparchive p7zip-full)
libraries=(libc6 libgcc-s1 libstdc++6 zlib1g liblz4-1 liblzma5 libzstd1 libbz2-1.0)
perf=(linux-perf libbabeltrace1 libcap2 libdw1 libelf1 libnuma1 libopencsd1 libperl5.36 libpython3.11 libslang2 libunwind8
    libglib2.0-0 libpcre2-8-0 libuuid1 libcrypt1 libexpat1)
[ "$arch" != armhf ] || perf+=(libaudit1 libcap-ng0)
# Debian 12 has adbd among its backports, and with it other versions of what libart needs, too.
adbd=(adbd android-libbase android-libboringssl android-libcutils android-liblog)
libraries+=(libbrotli1 libbsd0 libgcrypt20 libgpg-error0 libmd0 libprotobuf32 libsystemd0)

mkdir -p "$out"
# Two test programs may want it at the same time.
exec 8>"$out/.lock"
flock 8
list=$out/packages.new
{
    "$here/packages.sh" "$arch" bookworm "$kernel"
    "$here/packages.sh" "$arch" bookworm busybox-static "${libraries[@]}" "${art[@]}" "${perf[@]}"
    "$here/packages.sh" "$arch" bookworm-backports "${adbd[@]}"
} >"$list"
if cmp -s "$list" "$out/packages" && [ "$out/initramfs" -nt "$here/image.sh" ] && [ "$out/initramfs" -nt "$here/init" ]; then
    rm "$list"
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
while read -r deb; do
    case $deb in
    */linux-image-*) to=kernel ;;
    */bookworm-backports-*) to=bookworm-backports ;;
    *) to=bookworm ;;
    esac
    mkdir -p "$work/$to"
    dpkg-deb -x "$deb" "$work/$to"
done <"$list"

root=$work/root
mkdir -p "$root"/{bin,sbin,dev,proc,sys,run,tmp,root,etc,job,data/local/tmp,var/lib/varid,usr/bin,usr/sbin}
mkdir -p "$root/usr/lib/modules"
ln -s usr/lib "$root/lib"
ln -s ../tmp "$root/var/tmp"
ln -s ../run "$root/var/run"

library() { # RELEASE NAME: a library's file; what backports do not have is bookworm's
    local file
    file=$(find "$work/$1"/{,usr/}lib "$work"/bookworm/{,usr/}lib -name "$2" 2>/dev/null | head -n 1)
    [ -n "$file" ] || { echo "image: $2 is in no package of $1" >&2; exit 1; }
    echo "$file"
}

# Each file, the libraries that it names, those that they name, and so on: where the package has them, or all in FOLDER.
install_with_libraries() { # RELEASE FOLDER FILE...
    local release=$1 folder=$2 file to name
    shift 2
    while [ $# -gt 0 ]; do
        file=$1
        shift
        to=$root/${folder:-$(dirname "${file#"$work/$release/"}")}/$(basename "$file")
        [ ! -e "$to" ] || continue
        mkdir -p "$(dirname "$to")"
        cp -L "$file" "$to"
        for name in $(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
            set -- "$@" "$(library "$release" "$name")"
        done
    done
}

cp "$work/bookworm/bin/busybox" "$root/bin/busybox"
for name in sh mount; do
    ln -s busybox "$root/bin/$name"
done
cp "$here/init" "$root/init"
debian=$work/bookworm
# libart does not name all that it needs.
install_with_libraries bookworm '' "$debian/usr/bin/perf" "$debian/usr/lib/$triplet"/android/*.so.0 \
    "$(library bookworm liblz4.so.1)" "$(library bookworm libz.so.1)"
ln -s "$(cd "$root/usr/lib" && echo */ld-linux*)" "$root/usr/lib"
# libbacktrace says where it is on some processors only.
ln -s ../p7zip/7z.so "$root/usr/lib/$triplet/7z.so"
install_with_libraries bookworm-backports usr/lib/adbd "$work/bookworm-backports/usr/lib/android-sdk/platform-tools/adbd"

printf 'root:x:0:0:root:/root:/bin/sh\nshell:x:2000:2000:shell:/data/local/tmp:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nshell:x:2000:\n' >"$root/etc/group"
printf '/usr/lib/%s\n/usr/lib/%s/android\n' "$triplet" "$triplet" >"$root/etc/ld.so.conf"

release=$(basename "$work"/kernel/lib/modules/*)
modules=$work/kernel/lib/modules/$release
for name in virtio virtio_ring virtio_mmio failover net_failover virtio_net; do
    file=$(find "$modules" -name "$name.ko")
    if [ -n "$file" ]; then
        cp "$file" "$root/usr/lib/modules"
    else
        grep -q "/$name.ko$" "$modules/modules.builtin" || { echo "image: the kernel has no $name" >&2; exit 1; }
    fi
done

cp "$work/kernel/boot/vmlinuz-$release" "$out/kernel"
echo "$release" >"$out/release"
(cd "$root" && find . | LC_ALL=C sort | cpio --quiet --reproducible -o -H newc -R 0:0) >"$out/initramfs.new"
mv "$out/initramfs.new" "$out/initramfs"
mv "$list" "$out/packages"
