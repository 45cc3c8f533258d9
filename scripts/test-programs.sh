#!/bin/bash
# Builds the test programs, or runs them, except `long` and, unless they are only built, `board`.
# usage: test-programs.sh build | run
# The unit tests are built by the profile `bench`, see Cargo.toml.
set -euo pipefail

cd "$(dirname "$0")/.."
programs=(it abi live vm stackvm host)
case "${1:-}" in
build)
    options=(--no-run)
    programs+=(board)
    ;;
run) options=(--no-fail-fast) ;;
*) sed -n '3s/^# *//p' "$0" >&2; exit 2 ;;
esac
failed=0
# The whole workspace each time, for then the same features are enabled as in what is built already.
cargo test --locked --release --workspace "${programs[@]/#/--test=}" "${options[@]}" || failed=1
# Two packages have no unit tests.
cargo test --locked --profile bench --workspace --exclude=varid-{fuzz,stackvm} --lib --bins "${options[@]}" || failed=1
exit "$failed"
