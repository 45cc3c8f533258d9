#!/bin/sh
# Does the module come and go under load without a trace? On the board, beside varid.ko, session and fuzz:
# usage: soak.sh CYCLES FUZZ_STEPS
# Loads it, samples everyone while two programs work, leaves in one of three ways, unloads; then lets the fuzzer at it.
# At the end the kernel has said nothing, and has the memory back.
set -eu

cycles=$1
steps=$2
cd "$(dirname "$0")"

memory() { # what the kernel has given out: unreclaimable slabs, and vmalloc areas, in KB
    awk '/^(SUnreclaim|VmallocUsed|PageTables|Percpu):/ { n += $2 } END { print n }' /proc/meminfo
}
settle() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
}
once() { # WAY: one life of the module
    insmod varid.ko
    ./session 3 "$1" || [ "$1" = die ]
    # What a killed program had open is given back a moment after it is gone.
    unload
}
unload() { # as soon as nobody has it open
    tries=0
    until rmmod varid 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 10000 ] || { echo "soak: the module stays"; rmmod varid; exit 1; }
    done
}
load() {
    while :; do
        cat /proc/self/maps >/dev/null
    done
}

dmesg -c >/dev/null
load &
first=$!
(while :; do :; done) &
second=$!
renice -n 19 $first $second # they work when nobody else does
trap 'kill $first $second' EXIT
for way in close leave die close leave die; do
    once $way # caches fill up the first times
done
settle
before=$(memory)
n=0
while [ $n -lt "$cycles" ]; do
    case $((n % 3)) in
    0) once close ;;
    1) once leave ;;
    2) once die ;;
    esac
    n=$((n + 1))
    [ $((n % 1000)) -ne 0 ] || echo "soak: $n cycles, $(memory) KB, $(cut -d" " -f1 /proc/uptime) s"
done
insmod varid.ko
seed=1
while [ $seed -le 4 ]; do
    ./fuzz $seed "$steps"
    seed=$((seed + 1))
done
# A killed one, with everything open.
./fuzz 5 1000000000 &
pid=$!
./session 20 close
kill -9 $pid
wait $pid || true
unload
# A cycle that left a page behind would have left 4 KB each. What was given back late is waited for; what was not, never comes.
limit=$((before + 512 + cycles / 4))
tries=0
settle
after=$(memory)
while [ "$after" -ge $limit ] && [ $tries -lt 100 ]; do
    tries=$((tries + 1))
    settle
    after=$(memory)
done
if grep -q varid /proc/vmallocinfo; then
    echo "soak: the module is gone, its memory is not:"
    grep varid /proc/vmallocinfo
    exit 1
fi
# Whatever a kernel says of a fault, it says one of these.
if dmesg | grep -E 'BUG|WARNING|Oops|Call trace|Unable to handle|scheduling while|leak|corrupt|lockup|stall'; then
    echo "soak: the kernel complains"
    exit 1
fi
echo "soak: $cycles cycles, 4 x $steps steps of the fuzzer; the kernel's memory was $before KB and is $after KB"
[ "$after" -lt $limit ]
