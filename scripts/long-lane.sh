#!/bin/sh
# Which commit passed the long lane last? Prints it; exit status 1, and why, if docs/test-long.md names none of this history's, or a step failed.
# usage: long-lane.sh
set -eu

cd "$(dirname "$0")/.."
document=docs/test-long.md
commit=$(sed -n 's/^Commit: `\([0-9a-f]*\)`.*/\1/p' "$document" 2>/dev/null)
[ -n "$commit" ] && git merge-base --is-ancestor "$commit" HEAD 2>/dev/null || {
    echo "no commit of this history is named in $document" >&2
    exit 1
}
! grep -q FAILED "$document" || {
    echo "a step failed: $document" >&2
    exit 1
}
echo "$commit"
