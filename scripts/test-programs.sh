#!/bin/bash
# Builds the test programs but `long`, or runs them, each test with its seconds.
# usage: test-programs.sh build | system | crates [EXCEPT...] | board
# system: `host` and `program`, which run varid; crates: the others but `board`, without those that are named
# The tests of single crates are built by the profile `bench`, see Cargo.toml, by `crates` itself in the time that others leave.
# `system` and `board` leave to the long lane, which runs these programs whole, what takes long and rarely finds what the others do not.
set -euo pipefail

cd "$(dirname "$0")/.."
long_lane=(
    annotate::every_native_instruction
    areas::every_sample_of_native_words
    art14::art_14_returns_on_the_board_what_the_models_say
    attribution::a_sample_in_the_middle_of_an_invoke
    attribution::every_page_fault_in_art
    attribution::every_sample_in_art_14s_switch_interpreter
    attribution::every_sample_in_nterp
    attribution::every_sample_of_a_32_bit_process
    attribution::every_sample_of_an_unseen_build
    attribution::every_sample_of_hardware_cycles_in_nterp
    calls::art_s_counts_are_those_of_its_own_trace
    configuration::samples_are_recorded_exactly_if_their_innermost
    device::a_full_device_ends_a_session
    diff::a_method_with_six_times_the_work
    device::a_recording_whose_cable_is_pulled
    device::a_session_whose_cable_is_pulled
    java_annotate::
    java::a_thousand_java_frames
    java::java_frames_behind_calls_of_the_vm
    java::shares_of_known_work_in_java
    held_up::a_process_with_more_files_than_may_be_opened
    kept_symbols::text_that_a_program_has_moved
    pmu::events_of_a_pmu_are_counted
    withstands::two_hundred_threads_at_once
)
. scripts/test-seconds.sh
options=(--no-fail-fast -- "${report_time[@]}" "${long_lane[@]/#/--skip=}")
programs=()
crates=
others=()
case "${1:-}" in
build)
    options=(--no-run)
    programs=(abi live program vm stackvm host board)
    # Only to be linted.
    [ -z "${RUSTC_WORKSPACE_WRAPPER:-}" ] || others=(--test=long --examples)
    ;;
system) programs=(program host) ;;
crates)
    for program in abi live vm stackvm; do
        [[ " ${*:2} " == *" $program "* ]] || programs+=("$program")
    done
    crates=1
    ;;
board) programs=(board) ;;
*) sed -n '3s/^# *//p' "$0" >&2; exit 2 ;;
esac
failed=0
# The whole workspace each time, for then the same features are enabled as in what is built already.
cargo test --locked --release --workspace "${programs[@]/#/--test=}" "${others[@]}" "${options[@]}" || failed=1
if [ -n "$crates" ]; then
    # Two packages have none.
    of_crates=(cargo test --locked --profile bench --workspace --exclude=varid-{fuzz,stackvm} --lib --bins --test it)
    chrt --idle 0 "${of_crates[@]}" --no-run && "${of_crates[@]}" "${options[@]}" || failed=1
fi
exit "$failed"
