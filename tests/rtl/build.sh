#!/bin/bash
# Builds simulators of processors by Verilator: OUTDIR/NAME for each line of configurations.tsv, or for these NAMEs.
# Does nothing for one that is newer than its sources.
# usage: build.sh OUTDIR [NAME...]
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: build.sh OUTDIR [NAME...]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
command -v verilator >/dev/null || { echo "build.sh: verilator is missing" >&2; exit 77; }
"$here/fetch.sh" "$out/wheels"

# Sets `sources`, `bus` and `flags` for a core.
describe() { # CORE
    local wheel=$out/wheels/$1/pythondata_cpu_$1 rtl primitives
    flags=()
    case $1 in
    picorv32)
        bus=lookahead.h
        sources=("$here/cores/picorv32.sv" "$wheel/verilog/picorv32.v")
        ;;
    ibex)
        bus=request.h
        rtl=$wheel/system_verilog
        primitives=$rtl/vendor/lowrisc_ip/ip/prim/rtl
        flags=(-y "$rtl/rtl" -y "$primitives" "-I$primitives" "-I$rtl/vendor/lowrisc_ip/dv/sv/dv_utils")
        sources=("$primitives"/prim_{util,mubi,cipher,count,ram_1p,secded}_pkg.sv "$rtl/rtl/ibex_pkg.sv"
            "$here/cores/ibex_primitives.sv" "$here/cores/ibex.sv")
        ;;
    cv32e40p)
        bus=request.h
        rtl=$wheel/system_verilog/rtl
        # The core assigns some variables in both ways.
        flags=(-Wno-BLKANDNBLK "-I$rtl/include" -y "$rtl")
        sources=("$rtl/include/cv32e40p_apu_core_pkg.sv" "$rtl/include/cv32e40p_fpu_pkg.sv"
            "$rtl/include/cv32e40p_pkg.sv" "$wheel/system_verilog/bhv/cv32e40p_sim_clock_gate.sv"
            "$rtl/cv32e40p_register_file_ff.sv" "$here/cores/cv32e40p.sv")
        ;;
    vexriscv)
        bus=wishbone.h
        sources=("$wheel/verilog/VexRiscv.v" "$here/cores/vexriscv.sv")
        ;;
    esac
}

build() { # NAME CORE PARAMETERS
    local name=$1 core=$2 parameters=()
    if [ -x "$out/$name" ] && [ -z "$(find "$here"/{build.sh,cores,driver} -type f -newer "$out/$name")" ]; then
        return
    fi
    for parameter in $3; do
        [ "$parameter" = - ] || parameters+=("-G$parameter")
    done
    describe "$core"
    compile "$name" "${parameters[@]}" >"$out/$name.log" 2>&1 ||
        { tail -n 20 "$out/$name.log" >&2; echo "build.sh: $name cannot be built: $out/$name.log" >&2; exit 1; }
}

compile() { # NAME PARAMETER...
    local objects=$out/$1.obj name=$1
    shift
    verilator --cc -O3 --x-assign fast --x-initial fast --noassert -Wno-fatal -Wno-lint -Wno-style --top-module tb \
        "${flags[@]}" "$@" --Mdir "$objects" "${sources[@]}" &&
        make -s -C "$objects" -f Vtb.mk OPT_FAST=-O1 OPT_SLOW=-O0 Vtb__ALL.a &&
        g++ -O1 -std=c++17 "-DBUS=\"$bus\"" "-I$here/driver" "-I$objects" "-I$verilator/include" \
            "-I$verilator/include/vltstd" -o "$out/$name" "$here/driver/main.cpp" "$objects/Vtb__ALL.a" \
            "$out"/verilated{,_threads}.o -pthread
}

verilator=$(verilator --getenv VERILATOR_ROOT)
# Verilator's runtime library, which all share.
for part in verilated verilated_threads; do
    if [ ! -e "$out/$part.o" ]; then
        g++ -O1 -std=c++17 "-I$verilator/include" "-I$verilator/include/vltstd" -c -o "$out/$part.o" \
            "$verilator/include/$part.cpp"
    fi
done

while IFS=$'\t' read -r name core parameters _; do
    case $name in \#*) continue ;; esac
    if [ $# -eq 0 ] || [[ " $* " == *" $name "* ]]; then
        build "$name" "$core" "$parameters"
    fi
done <"$here/configurations.tsv"
