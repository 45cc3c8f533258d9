#!/bin/bash
# Is every file as the project wants it? Runs all checks and names those that failed.
# usage: lint.sh      where RUSTC_WORKSPACE_WRAPPER is set, without clippy: see rustc-or-clippy.sh
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
failed=()

check() { # NAME COMMAND...: runs a check, remembers if it failed
    local name=$1
    shift
    echo "== lint: $name"
    "$@" || failed+=("$name")
}

licences() {
    if cargo deny --version >/dev/null 2>&1; then
        cargo deny --all-features check bans licenses sources
    else
        scripts/licences.py
    fi
}

scripts_in_shell() { # those that git knows or would know, by their first line
    git ls-files --cached --others --exclude-standard -z | while IFS= read -r -d '' file; do
        if [ -f "$file" ] && head -n 1 "$file" | grep -qaE '^#!(/usr)?/bin/(env )?(ba)?sh'; then
            printf '%s\0' "$file"
        fi
    done
}

shell() {
    scripts_in_shell | xargs -0 shellcheck -x --
}

browser_script() { # of HTML reports: its parts are one module
    command -v node >/dev/null || { echo "lint: node is missing: the script of HTML reports is not checked"; return; }
    local folder=report/src/export/html parts
    mapfile -t parts < <(sed -n 's/^ *include_str!("\(.*\.js\)"),$/\1/p' "$folder/mod.rs")
    [ "${#parts[@]}" -gt 0 ] || return 1
    (cd "$folder" && cat "${parts[@]}") | node --input-type=module --check &&
        node --input-type=module --check <report/src/diff/html/flame.js
}

none_in() { # PATTERN FOLDER...: no line of the Rust files there has it; comments aside
    local folder
    for folder in "${@:2}"; do
        [ -d "$folder" ] || { echo "lint: $folder is not there"; return 1; }
        ! grep -rnE --include='*.rs' "$1" "$folder" | grep -vE '^[^:]*:[0-9]*: *//' || return 1
    done
}

vm_seam() { # what is asked of any VM knows none of them, nor do its tests
    local of_crate='(crate|super|varid_vm)::(\{[^;]*)?\b'
    none_in "$of_crate(art|dalvik|shadow|hotspot|kinds|LibraryLayout)\b" vm/src/seam vm/src/attribution vm/src/managed_process &&
        none_in "$of_crate"'described\b' vm/src/seam vm/src/attribution
}

check format cargo fmt --all --check
if [ -z "${RUSTC_WORKSPACE_WRAPPER:-}" ]; then
    # Nothing is linked here, so its sources need not be compiled.
    export CUSTOM_LIBFUZZER_PATH=/dev/null
    check clippy cargo clippy --locked --workspace --all-targets --release --features varid-fuzz/libfuzzer -- -D warnings
    # All targets are those that are tested by default.
    check "clippy of board and long" cargo clippy --locked --workspace --release --test board --test long -- -D warnings
fi
mapfile -t crates < <(git ls-files -- '*/Cargo.toml' | sed 's!/Cargo.toml$!!')
check "features of shared crates" scripts/shared_features.sh
check "modules in circles" scripts/module_circles.py "${crates[@]}"
check "the seam of VMs" vm_seam
check "C files in circles" scripts/c_circles.sh dvm-patch/dim -std=c99 -ffreestanding -Idvm-patch/include
check shellcheck shell
check "script of HTML reports" browser_script
check licences licences
check spdx scripts/spdx.sh
check links scripts/links.py
check "the README's first command" grep -q '^    make demo ' README.md

# One step stands for each of the long lanes.
for lane in long:host release:fresh-full; do
    if ! tried=$(scripts/long-lane.sh "${lane#*:}" 2>&1); then
        echo "lint: warning: $tried: make test-${lane%:*}"
    elif behind=$(git rev-list --count "$tried..HEAD") && [ "$behind" -gt 100 ]; then
        echo "lint: warning: make test-${lane%:*} ran $behind commits ago"
    fi
done
if [ "${#failed[@]}" -gt 0 ]; then
    echo "lint: failed: ${failed[*]}"
    exit 1
fi
echo "lint: all checks passed"
