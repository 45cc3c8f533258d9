#!/bin/bash
# Builds the test programs, or runs them: all that cargo tests by itself, without the documents' examples.
# usage: test-programs.sh build | run
# The program's own unit tests have a profile of their own, see Cargo.toml: with all checks, and built in a third of the time.
set -euo pipefail

cd "$(dirname "$0")/.."
case "${1:-}" in
build) options=(--no-run) ;;
run) options=(--no-fail-fast) ;;
*) sed -n '3s/^# *//p' "$0" >&2; exit 2 ;;
esac
# A test program is named here by being one.
mapfile -t programs < <(cargo metadata --locked --no-deps --format-version 1 | python3 -c '
import json, sys
targets = [target for package in json.load(sys.stdin)["packages"] for target in package["targets"]]
print(*sorted({"--test=" + target["name"] for target in targets if target["kind"] == ["test"] and target["test"]}), sep="\n")')
failed=0
cargo test --locked --release --workspace --lib "${programs[@]}" "${options[@]}" || failed=1
cargo test --locked --profile bench --workspace --bins "${options[@]}" || failed=1
exit "$failed"
