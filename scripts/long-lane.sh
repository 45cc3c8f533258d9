#!/bin/sh
# Which commit passed the long lane last? Prints it; exit status 1, and why, if docs/test-long.md names none of this history's, or a step failed.
# usage: long-lane.sh
set -eu

cd "$(dirname "$0")/.."
document=docs/test-long.md
# shellcheck disable=SC2016 # Markdown's quotes
commit=$(sed -n 's/^Commit: `\([0-9a-f]*\)`.*/\1/p' "$document")
if [ -z "$commit" ] || ! git merge-base --is-ancestor "$commit" HEAD 2>/dev/null; then
    echo "no commit of this history is named in $document" >&2
    exit 1
fi
if grep -q 'FAILED\|^Commit: .* with changes' "$document"; then
    echo "a step failed, or the tree was not that of a commit: $document" >&2
    exit 1
fi
echo "$commit"
