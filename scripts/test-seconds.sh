# shellcheck shell=bash
# Has the standard test harness report each test's seconds. Sourced by what runs `cargo test`: its programs take the options of `report_time`.
# The stable harness does so only if it sees this variable. Compilers must not: crates are built anew where it is set.
runner=CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)_RUNNER
export "$runner=env RUSTC_BOOTSTRAP=1"
# shellcheck disable=SC2034 # the sourcing script's
report_time=(-Z unstable-options --report-time)
