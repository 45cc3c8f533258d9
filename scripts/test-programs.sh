#!/bin/bash
# Builds the test programs, or runs them, except `board` and `long`.
# usage: test-programs.sh build | run
# The unit tests of the largest crates are built by the profile `bench`, see Cargo.toml.
set -euo pipefail

cd "$(dirname "$0")/.."
case "${1:-}" in
build) options=(--no-run) ;;
run) options=(--no-fail-fast) ;;
*) sed -n '3s/^# *//p' "$0" >&2; exit 2 ;;
esac
checked=(varid varid-{import,process,report,sampler,session,top,unwind,vm})
failed=0
# The whole workspace each time, for then the same features are enabled as in what is built already.
cargo test --locked --release --workspace --test it --test abi --test live --test vm --test stackvm --test host "${options[@]}" || failed=1
cargo test --locked --release --workspace "${checked[@]/#/--exclude=}" --lib "${options[@]}" || failed=1
cargo test --locked --profile bench "${checked[@]/#/--package=}" --lib --bins "${options[@]}" || failed=1
exit "$failed"
