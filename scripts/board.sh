#!/bin/bash
# What does varid show of a dex app on an ARM board? Boots one in QEMU, profiles SciMark and Linpack there by CPU_CYCLES, and
# prints the profile here.
# usage: board.sh TARGET-FOLDER      after make board-products; everything else that it makes is below TARGET-FOLDER/board
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: board.sh TARGET-FOLDER" >&2; exit 2; }
cd "$(dirname "$0")/.."
target=$(realpath "$1")
image=$target/board/image/arm64
out=$target/board/demo
device=/data/local/tmp/demo
app="$device/artvm --dex $device/math.dex --name org.example.math org.example.math.Main run 4"

title() {
    printf '\n== %s\n\n' "$*"
}

title "the board: Linux $(cat "$image/release"), ART and perf, all of Debian, for arm64"
# An adb server of its own, so that nobody's devices are touched; it and QEMU have gone when this script has. A varid that is
# left would start another one.
mkdir -p "$out"
rm -rf "$out/session"
emulator='' server=''
# shellcheck disable=SC2086 # one, both or none
trap 'pkill -KILL -P $$ -x varid || true; kill $emulator $server 2>/dev/null || true; wait' EXIT
export ADB_SERVER_SOCKET=localabstract:varid-board-demo-$$
ADB_LOCAL_TRANSPORT_MAX_PORT=0 adb -L "$ADB_SERVER_SOCKET" server nodaemon >"$out/adb.log" 2>&1 &
server=$!
boot() { # starts it until adb is answered; fails if another program took the port before QEMU did
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    mkfifo "$out/console.$$"
    tests/board/boot.sh arm64 "$image" adb "$port" >"$out/console.$$" 2>&1 &
    emulator=$!
    exec 3<"$out/console.$$"
    rm "$out/console.$$"
    local line=
    until [[ $line == *"adbd started"* ]]; do
        [[ $line != *"Could not set up host forwarding rule"* ]] || return 1
        # A kernel that boots is not silent for so long, not even where others keep this machine from its work.
        read -r -t 600 line <&3 || { echo "board: it did not come up: ${line:-no output}" >&2; exit 1; }
        # adbd misses parts of Android that it does not need.
        [[ $line == *" adbd "* ]] || echo "$line"
    done
}
attempts=8
until boot; do
    attempts=$((attempts - 1))
    [ $attempts -gt 0 ] || { echo "board: found no port" >&2; exit 1; }
done
cat <&3 >"$out/console" &
board() { # ARGUMENT...: adb, speaking with the board
    adb -s "127.0.0.1:$port" "$@" </dev/null
}
# A connection that was too slow to come about is made again.
until timeout 60 adb connect "127.0.0.1:$port" && timeout 60 adb -s "127.0.0.1:$port" shell true </dev/null; do
    [ $SECONDS -lt 900 ] || { echo "board: adb does not speak with it" >&2; exit 1; }
    adb disconnect "127.0.0.1:$port" || true
    sleep 1
done

title "adb push: the VM and the app"
board shell "mkdir $device"
board push "$target"/board/arm64/{artvm,*.so} "$target/release/boot.dex" "$target/testbed/workloads/math.dex" "$device" |
    tail -n 1

title "varid --adb: pushes itself, records there, pulls the session"
echo "\$ varid --adb record -e cycles -o $out/session -- $app"
# shellcheck disable=SC2086 # its words
"$target/release/varid" --adb="127.0.0.1:$port" record -e cycles -o "$out/session" -- $app

title "varid report, here: layers, images, methods and functions, by the PMU's cycles; at the end what could not be attributed"
echo "\$ varid report -i $out/session --limit 30"
"$target/release/varid" report -i "$out/session" --limit 30 | tee "$out/report.txt"
for kernel in FFT LU Linpack MonteCarlo SOR SparseCompRow; do
    grep -q "org.example.math.$kernel\." "$out/report.txt" || { echo "board: no method of $kernel in the report" >&2; exit 1; }
done

title "varid report: the kernel's functions by name"
echo "\$ varid report -i $out/session --layer kernel --by symbol --limit 10"
"$target/release/varid" report -i "$out/session" --layer kernel --by symbol --limit 10 | tee "$out/kernel.txt" | sed -n '/symbol name/,/^$/p'
grep -q '^[1-9].*\[kernel\]' "$out/kernel.txt" || { echo "board: no samples in the kernel" >&2; exit 1; }
