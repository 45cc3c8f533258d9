#!/bin/sh
# Where do manual pages and shells' completions go? Writes them where man, bash, zsh and fish look below a prefix.
# usage: manual.sh VARID PREFIX       VARID: a program that runs here
# SOURCE_DATE_EPOCH dates the pages.
set -eu

[ $# -eq 2 ] || { echo "usage: manual.sh VARID PREFIX" >&2; exit 2; }
varid=$1
share=$2/share

"$varid" man-pages "$share/man/man1"
completions() { # SHELL FILE
    mkdir -p "$(dirname "$share/$2")"
    "$varid" completions "$1" >"$share/$2"
}
completions bash bash-completion/completions/varid
completions zsh zsh/site-functions/_varid
completions fish fish/vendor_completions.d/varid.fish
