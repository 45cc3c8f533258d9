#!/bin/sh
# Which commit passed a step of the long lanes last? Prints it; exit status 1, and why, if docs/test-long.md names none of this history's.
# usage: long-lane.sh STEP
set -eu

[ $# -eq 1 ] || { echo "usage: long-lane.sh STEP" >&2; exit 2; }
cd "$(dirname "$0")/.."
document=docs/test-long.md
# A tree with changes is that of no commit.
commit=$(sed -n "s/^| $1 | [a-z]* | passed | \([0-9a-f]*\) |.*/\1/p" "$document")
if [ -z "$commit" ]; then
    echo "step $1 has not passed: $document" >&2
    exit 1
fi
if ! git merge-base --is-ancestor "$commit" HEAD 2>/dev/null; then
    echo "step $1 passed on $commit, which is no commit of this history: $document" >&2
    exit 1
fi
echo "$commit"
