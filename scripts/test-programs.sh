#!/bin/bash
# Builds the test programs, or runs them, except `board` and `long`.
# usage: test-programs.sh build | run
# varid's own unit tests are built by the profile `bench`, see Cargo.toml.
set -euo pipefail

cd "$(dirname "$0")/.."
case "${1:-}" in
build) options=(--no-run) ;;
run) options=(--no-fail-fast) ;;
*) sed -n '3s/^# *//p' "$0" >&2; exit 2 ;;
esac
failed=0
cargo test --locked --release --workspace --lib --test it --test abi --test live --test vm --test host "${options[@]}" || failed=1
cargo test --locked --profile bench --workspace --bins "${options[@]}" || failed=1
exit "$failed"
