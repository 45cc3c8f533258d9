#!/bin/sh
# What does each recorder cost an app? The job that `make board-cost` runs on the board.
# Prints a line for each: COST RECORDER RATE DEPTH SAMPLES, then the nanoseconds of each call of the app's method.
# The first half of the calls, two seconds, is the start, in which a recorder reads what it has to know once and looks often.
# Nothing else runs, and clocks count instructions.

calls=16
export VARID_HOME=/tmp/varid
# Else the kernel lowers the rate that may be asked for when samples are dear.
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent

app() { # DEPTH OPTION...: artvm's command line, of words without spaces
    depth=$1
    shift
    # Compiled code takes as long for as much more work.
    rounds=2
    case " $* " in *" --image "*) rounds=20 ;; esac
    echo ./artvm --timed "$calls" "$@" --dex depth.dex --name org.example.depth org.example.depth.Depth "of$depth" "$rounds"
}

tell() { # RECORDER RATE DEPTH SAMPLES: with the times that the app wrote
    echo "COST $* $(grep -E '^[0-9]+$' /tmp/times | tr '\n' ' ')"
}

alone() { # RECORDER DEPTH OPTION...
    recorder=$1
    shift
    # shellcheck disable=SC2046 # a command line
    env $(app "$@") >/dev/null 2>/tmp/times || echo "cost: $recorder failed"
    tell "$recorder" 0 "$1" 0
}

with_varid() { # NAME SHIM RATE DEPTH OPTION...
    name=$1
    shim=$2
    rate=$3
    shift 3
    # shellcheck disable=SC2046 # a command line
    ./varid record -e cycles -F "$rate" --shim "$shim" -o /tmp/session -- $(app "$@") >/dev/null 2>/tmp/times ||
        { echo "cost: $name failed"; cat /tmp/times; }
    tell "$name" "$rate" "$1" "$(sed -n 's/^ *"samples": \([0-9]*\),*$/\1/p' /tmp/session/session.json)"
    rm -rf /tmp/session
}

with_perf() { # NAME DEPTH HOW OPTION...: HOW is perf's option, a word or none
    name=$1
    depth=$2
    how=$3
    shift 3
    # shellcheck disable=SC2046,SC2086 # a command line
    perf record -e cycles -F 997 $how -o /tmp/perf.data -- $(app "$depth" --no-dim "$@") >/dev/null 2>/tmp/times ||
        { echo "cost: $name failed"; cat /tmp/times; }
    tell "$name" 997 "$depth" "$(sed -n 's/.*(\([0-9]*\) samples).*/\1/p' /tmp/times)"
    rm -f /tmp/perf.data
}

# The app is a part of the boot image.
compiled='--boot boot.dex --image image'
shims='bpf perf'
if [ -e varid.ko ]; then
    insmod varid.ko && shims="$shims module"
fi
for depth in 4 16 64; do
    alone nothing "$depth" --no-dim
    alone dim "$depth"
    for shim in $shims; do
        for rate in 100 997 10000; do
            with_varid "varid-$shim" "$shim" "$rate" "$depth"
        done
    done
    alone nothing-nterp "$depth" --art 14 --no-dim
    for rate in 100 997 10000; do
        with_varid varid-bpf-nterp bpf "$rate" "$depth" --art 14 --no-dim
    done
    # shellcheck disable=SC2086 # words
    alone nothing-compiled "$depth" $compiled --no-dim
    for rate in 100 997 10000; do
        # shellcheck disable=SC2086 # words
        with_varid varid-bpf-compiled bpf "$rate" "$depth" $compiled --no-dim
    done
    with_perf perf "$depth" ''
    with_perf perf-g "$depth" -g
    # shellcheck disable=SC2086 # words
    with_perf perf-g-compiled "$depth" -g $compiled
    with_perf perf-dwarf "$depth" --call-graph=dwarf
done
