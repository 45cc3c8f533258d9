#!/bin/bash
# Builds the test programs but `long`, or runs them, each test with its seconds.
# usage: test-programs.sh build | run | board      run: all but `board`
# The tests of single crates are built by the profile `bench`, see Cargo.toml.
set -euo pipefail

cd "$(dirname "$0")/.."
programs=(abi live program vm stackvm host)
options=(--no-fail-fast -- -Z unstable-options --report-time)
crates=1
case "${1:-}" in
build)
    options=(--no-run)
    programs+=(board)
    ;;
run) ;;
board)
    programs=(board)
    crates=
    ;;
*) sed -n '3s/^# *//p' "$0" >&2; exit 2 ;;
esac
# The stable test harness reports seconds only to programs that see this variable. Compilers must not: crates are built anew where it is set.
runner=CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)_RUNNER
export "$runner=env RUSTC_BOOTSTRAP=1"
failed=0
# The whole workspace each time, for then the same features are enabled as in what is built already.
cargo test --locked --release --workspace "${programs[@]/#/--test=}" "${options[@]}" || failed=1
# Two packages have none.
[ -z "$crates" ] || cargo test --locked --profile bench --workspace --exclude=varid-{fuzz,stackvm} --lib --bins --test it "${options[@]}" || failed=1
exit "$failed"
