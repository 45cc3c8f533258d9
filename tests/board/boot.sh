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
armhf) board=(qemu-system-arm -M "virt,highmem=off" -cpu cortex-a15 -m 1024) ;;
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

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# QEMU holds what it boots by descriptors: nobody has to clean up after it.
if [ "$arch" = armhf ]; then
    # QEMU's device tree says neither which PMU there is nor how it interrupts.
    "${board[@]}" -machine "dumpdtb=$work/tree" >"$work/log" 2>&1 || true
    fdtput -t s "$work/tree" /pmu compatible arm,cortex-a15-pmu
    fdtput -t x "$work/tree" /pmu interrupts 1 7 104
    exec 4<"$work/tree"
    board+=(-dtb /dev/fd/4)
fi
if [ "$how" = adb ]; then
    rm -rf "$work"
    exec "${board[@]}" -initrd "$out/initramfs" </dev/null
fi
cp -rL "$what" "$work/job"
# The kernel takes longer to read some digits of a time than others.
find "$work/job" -exec touch -d 2026-01-01 {} +
(cd "$work" && find job | LC_ALL=C sort | cpio --quiet --reproducible -o -H newc -R 0:0 >job.cpio)
cat "$out/initramfs" "$work/job.cpio" >"$work/initramfs"
exec 3<"$work/initramfs"
rm -rf "$work"
exec "${board[@]}" -initrd /dev/fd/3 </dev/null
