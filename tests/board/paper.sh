#!/bin/sh
# What does section 6 of the paper measure? The job that `make paper` runs on the board; the file `part` beside it says which part,
# and the file `workloads` of what: lines WORKLOAD ROUNDS STEPS.
# times: what each way of profiling costs. Prints for each a line
#   PAPER time WORKLOAD RECORDER ROUNDS TOTAL WARM-UP NANOSECONDS...
# TOTAL is of the whole command, from its start to its end; the others are the app's own, call by call. And a line
#   PAPER tunnel WORKLOAD RECORDER STEPS TOTAL WARM-UP NANOSECONDS...
# of an interpreter that calls dim itself, and whose methods do so many steps of work that it calls one as often as the workload does;
# the times are of 10,000 calls each.
# layers: where samples are without varid and with it. Prints lines
#   PAPER perf WORKLOAD SAMPLES IMAGE              plain perf's samples
#   TAR WORKLOAD BASE64                            varid's session: the board's varid makes no reports
# Nothing else runs, and clocks count instructions.

export VARID_HOME=/tmp/varid
# Else the kernel lowers the rate that may be asked for when samples are dear.
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent
rate=997
calls=9
few=3 # where a call takes long
shadow_rounds=25
perf="perf record -e cycles -F $rate -o /tmp/perf.data --"
varid="./varid record -e cycles -F $rate -o /tmp/session"
invokes='--tactic method-invoke'

app() { # WORKLOAD ROUNDS OPTION...: artvm's command line, of words without spaces
    workload=$1
    rounds=$2
    shift 2
    library=
    [ ! -e "lib$workload.so" ] || library="--lib ./lib$workload.so"
    echo ./artvm "$@" --dex "$workload.dex" --name "org.example.$workload" "$library" "org.example.$workload.Main" run "$rounds"
}

now() { # nanoseconds since the power on
    sed -n 's/^now at \([0-9]*\) nsecs$/\1/p' /proc/timer_list
}

timed() { # KIND WORKLOAD RECORDER NUMBER COMMAND...: runs it
    what="$1 $2 $3 $4"
    shift 4
    start=$(now)
    "$@" >/dev/null 2>/tmp/times || { echo "paper: $what failed"; cat /tmp/times; }
    end=$(now)
    echo "PAPER $what $((end - start)) $(grep -E '^[0-9]+$' /tmp/times | tr '\n' ' ')"
    rm -rf /tmp/perf.data /tmp/session
}

# shellcheck disable=SC2046,SC2086 # command lines
times_of() { # WORKLOAD ROUNDS
    # What is read for the first time takes longer.
    env $(app "$1" 1) >/dev/null 2>&1
    timed time "$1" none "$2" $(app "$1" "$2" --timed $calls --no-dim)
    timed time "$1" perf "$2" $perf $(app "$1" "$2" --timed $calls --no-dim)
    timed time "$1" load-from-dex "$2" $(app "$1" "$2" --timed $calls)
    timed time "$1" varid "$2" $varid -- $(app "$1" "$2" --timed $calls)
    timed time "$1" none-for-short "$2" $(app "$1" "$2" --timed $few --no-dim)
    timed time "$1" tunnel "$2" $varid $invokes -- $(app "$1" "$2" --timed $few)
    timed time "$1" method-invoke "$2" $varid $invokes --log-calls -- $(app "$1" "$2" --timed $few)
}

# shellcheck disable=SC2086 # command lines
tunnel_of() { # WORKLOAD STEPS
    options="--dex shadowvm/shadow.dex --timed --quiet --work $2 --rounds"
    plain=shadowvm/plainvm
    with_dim=shadowvm/shadowvm
    ./$plain $options 1 >/dev/null 2>&1
    ./$with_dim $options 1 >/dev/null 2>&1
    timed tunnel "$1" none "$2" ./$plain --no-dim $options $shadow_rounds
    timed tunnel "$1" off "$2" ./$with_dim --no-dim $options $shadow_rounds
    timed tunnel "$1" own "$2" ./$with_dim $options $shadow_rounds
    timed tunnel "$1" hash "$2" ./$with_dim --remap $options $shadow_rounds
    timed tunnel "$1" perf "$2" $perf ./$plain --no-dim $options $shadow_rounds
    timed tunnel "$1" varid "$2" $varid -- ./$with_dim $options $shadow_rounds
    timed tunnel "$1" varid-hash "$2" $varid -- ./$with_dim --remap $options $shadow_rounds
    timed tunnel "$1" counted "$2" $varid $invokes -- ./$with_dim $options $shadow_rounds
    timed tunnel "$1" logged "$2" $varid $invokes --log-calls -- ./$with_dim $options $few
}

# shellcheck disable=SC2046,SC2086 # command lines
layers_of() { # WORKLOAD ROUNDS
    rounds_here=$(($2 * 4))
    $perf $(app "$1" $rounds_here --no-dim) >/dev/null 2>/tmp/log ||
        { echo "paper: perf of $1 failed"; cat /tmp/log; }
    perf report -i /tmp/perf.data --stdio -n --sort dso 2>/dev/null |
        sed -nE "s/^ +[0-9.]+% +([0-9]+) +([^ ]+) *$/PAPER perf $1 \1 \2/p"
    rm -f /tmp/perf.data
    $varid -- $(app "$1" $rounds_here) >/dev/null 2>/tmp/log ||
        { echo "paper: varid of $1 failed"; cat /tmp/log; }
    tar -C /tmp -cz session | base64 | sed "s/^/TAR $1 /"
    rm -rf /tmp/session
}

part=$(cat part)
while read -r workload rounds steps; do
    case $part in
    times)
        times_of "$workload" "$rounds"
        tunnel_of "$workload" "$steps"
        ;;
    layers) layers_of "$workload" "$rounds" ;;
    esac </dev/null
done <workloads
