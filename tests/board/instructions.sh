#!/bin/sh
# What does the board execute while a recorder records? The job of which QEMU counts the instructions.
# The file `parameters` has a line RECORDER DEPTH CALLS: nothing, dim, varid or perf, how deep the app's stack is, and how often its method
# is called. Prints the kernel's symbols, BPF programs included, between the lines SYMBOLS and END, and SAMPLES with their number.

read -r recorder depth calls <parameters
export VARID_HOME=/tmp/varid
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent
echo 1 >/proc/sys/net/core/bpf_jit_kallsyms

app() { # WORD...: of a command that takes the app's command line
    case $recorder in
    nothing | perf) set -- "$@" ./artvm --no-dim ;;
    *) set -- "$@" ./artvm ;;
    esac
    "$@" --timed "$calls" --dex depth.dex --name org.example.depth org.example.depth.Depth "of$depth" 2
}

case $recorder in
nothing | dim) app env >/dev/null 2>&1 ;;
varid)
    app ./varid record -e cycles -F 997 --shim bpf -o /tmp/session -- >/tmp/log 2>&1 &
    sleep 2
    echo SYMBOLS
    cat /proc/kallsyms
    echo END
    wait $!
    sed -n 's/^ *"samples": \([0-9]*\),*$/SAMPLES \1/p' /tmp/session/session.json
    ;;
perf)
    app perf record -e cycles -F 997 -g -o /tmp/perf.data -- >/dev/null 2>/tmp/log
    sed -n 's/.*(\([0-9]*\) samples).*/SAMPLES \1/p' /tmp/log
    ;;
esac
