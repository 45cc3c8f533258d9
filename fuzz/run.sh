#!/bin/bash
# Does any parser fail on hostile input? Runs every fuzz target, or the named ones, one on each processor at a time, and says
# how often each ran and which found something.
# usage: run.sh SECONDS|--same=RUNS [TARGET...]
# SECONDS: each target for so long, with coverage instrumentation, overflow checks and, in C, AddressSanitizer.
# --same=RUNS: so many mutations of each target's seeds, the same each time, without instrumentation: it shares what `make test` builds.
# Needs a stable compiler and clang's libFuzzer: the coverage that it is led by is LLVM's own. Found is what panics, takes longer
# than 10 s, allocates more than its target allows or more than 2 GB.
# Inputs that were found stay in target/fuzz/artifacts/TARGET; the corpus grows in target/fuzz/corpus/TARGET.
set -uo pipefail

[ $# -ge 1 ] || { echo "usage: run.sh SECONDS|--same=RUNS [TARGET...]" >&2; exit 2; }
cd "$(dirname "$0")" || exit 1
built=$(realpath -m "${CARGO_TARGET_DIR:-../target}")
build=$built/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
cargo=(cargo build --locked --bins --features varid-fuzz/libfuzzer)
case $1 in
--same=*)
    # One seed that keeps all inputs: without coverage none is better than another.
    until=(-runs="${1#*=}" -seed=1 -keep_seed=1)
    grown=same
    programs=$built/release
    cargo+=(--release --workspace)
    ;;
*)
    until=(-max_total_time="$1")
    grown=corpus
    programs=$build/$host/fuzz
    # With a --target build scripts and macros are built without the flags.
    cargo+=(--profile fuzz -p varid-fuzz --target "$host" --target-dir "$build")
    export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
    export CFLAGS='-fsanitize=address -fno-omit-frame-pointer'
    ;;
esac
shift
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(printf '%s\n' src/targets/*.rs | sed 's,.*/,,; s,\.rs$,,; /^mod$/d')

# Debian's: its sources take as long to build as all targets.
CUSTOM_LIBFUZZER_PATH=$(clang-16 "-print-file-name=libclang_rt.fuzzer-$(uname -m).a")
export CUSTOM_LIBFUZZER_PATH
[ -f "$CUSTOM_LIBFUZZER_PATH" ] || { echo "fuzz: no libFuzzer: apt-get install libclang-rt-16-dev" >&2; exit 1; }
"${cargo[@]}" || exit 1
# What is written is synchronised, as it would be for a user; nothing here has to survive a power failure.
[ ! -w /dev/shm ] || export TMPDIR=${TMPDIR:-/dev/shm}

# TARGET: fuzzes it; prints a line, and the end of its log if it found something.
fuzz() {
    local target=$1 corpus=$build/$grown/$1 artifacts=$build/artifacts/$1 log=$build/$1.log
    local -A stat=()
    local begun=$SECONDS
    # What has grown in another run, and a folder's own order, would be another start.
    [ $grown != same ] || rm -rf "$corpus"
    local seeds
    printf -v seeds '%s,' "seeds/$target"/*
    mkdir -p "$corpus" "$artifacts"
    VARID_FUZZ_TARGET=$target "$programs/fuzz" "$corpus" -seed_inputs="${seeds%,}" "${until[@]}" -artifact_prefix="$artifacts/" \
        -rss_limit_mb=2048 -timeout=10 -max_len=65536 -print_final_stats=1 -verbosity=1 >"$log" 2>&1
    local status=$?
    while read -r name value; do
        stat[$name]=$value
    done < <(sed -n 's/^stat:://p' "$log" | tr -d ':')
    printf 'fuzz: %-12s %4d s %10s runs, coverage %s, peak %s MB: %s\n' "$target" "$((SECONDS - begun))" "${stat[number_of_executed_units]:-?}" \
        "$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)" "${stat[peak_rss_mb]:-?}" \
        "$([ $status -eq 0 ] && echo nothing found || echo "FOUND SOMETHING, see $artifacts")"
    [ $status -eq 0 ] || { grep -a -A 3 'panicked at\|bytes held\|ERROR' "$log"; return 1; }
}

failed=0
for target in "${targets[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
        wait -n || failed=1
    done
    fuzz "$target" &
done
while [ "$(jobs -p | wc -l)" -gt 0 ]; do
    wait -n || failed=1
    jobs >/dev/null
done
[ $failed -eq 0 ] || exit 1
echo "fuzz: ${#targets[@]} targets, nothing found"
