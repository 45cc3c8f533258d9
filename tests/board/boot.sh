#!/bin/bash
# How is the board booted? As a machine of QEMU whose PMU interrupts. This process becomes QEMU: end it by its pid.
# usage: boot.sh ARCH OUT adb PORT [OPTION-OF-QEMU...]     adb on 127.0.0.1:PORT, until the power is off
#        boot.sh ARCH OUT run FOLDER [OPTION-OF-QEMU...]   FOLDER/run on the board, then the power off
# OUT is image.sh's; the console is standard output. FOLDER, with all that the run needs, becomes /job; there is no
# network. A run is the same each time, to the nanosecond: same random numbers, same addresses, and clocks that count
# instructions (2 ns each). It ends with the line "job: exit status N".
set -euo pipefail

usage() {
    sed -n '3,4s/^# *//p' "$0" >&2
    exit 2
}
[ $# -ge 4 ] || usage
arch=$1
out=$2
how=$3
what=$4
shift 4
case $arch in
arm64) board=(qemu-system-aarch64 -M "virt,gic-version=3" -cpu "cortex-a57,pmu=on" -m 1024) ;;
armhf)
    board=(qemu-system-arm -M "virt,highmem=off" -cpu cortex-a15 -m 1024)
    # QEMU's device tree has a PMU without a word: what it is, and that its interrupt is the CPU's own number 7, a level.
    tree=$(mktemp)
    "${board[@]}" -M "virt,highmem=off,dumpdtb=$tree" -smp 1 -nodefaults -nographic 2>/dev/null
    dtc -q -I dtb -O dts "$tree" |
        sed 's/^\tpmu {$/&\n\t\tcompatible = "arm,cortex-a15-pmu";\n\t\tinterrupts = <1 7 0x104>;/' | dtc -q -o "$tree.mended"
    # QEMU holds the file, and nobody has to clean up after it.
    exec 4<"$tree.mended"
    rm "$tree" "$tree.mended"
    board+=(-dtb /dev/fd/4)
    ;;
*) usage ;;
esac
# loglevel 5: warnings and worse are shown.
arguments="console=ttyAMA0 loglevel=5 panic=-1"
case $how in
adb)
    arguments+=" quiet"
    board+=(-icount "shift=1,sleep=on")
    board+=(-netdev "user,id=net,hostfwd=tcp:127.0.0.1:$what-:5555" -device "virtio-net-device,netdev=net")
    ;;
run)
    arguments+=" nokaslr"
    # -seed: of the device tree's rng-seed, too. Without one each system call would cost 9,700 instructions more.
    board+=(-icount "shift=1,sleep=off" -rtc "base=2026-01-01,clock=vm" -seed 1)
    ;;
*) usage ;;
esac
board+=(-smp 1 -nodefaults -nographic -no-reboot -serial stdio -kernel "$out/kernel" -append "$arguments" "$@")

if [ "$how" = adb ]; then
    exec "${board[@]}" -initrd "$out/initramfs" </dev/null
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$(realpath "$what")" "$work/job"
(cd "$work" && find -L job | LC_ALL=C sort | cpio --quiet --reproducible -o -L -H newc -R 0:0 >job.cpio)
cat "$out/initramfs" "$work/job.cpio" >"$work/initramfs"
# QEMU holds the file, and nobody has to clean up after it.
exec 3<"$work/initramfs"
rm -rf "$work"
exec "${board[@]}" -initrd /dev/fd/3 </dev/null
