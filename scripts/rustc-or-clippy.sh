#!/bin/sh
# Compiles a crate of the workspace, as a RUSTC_WORKSPACE_WRAPPER: what only tests use by clippy, which compiles as rustc does, with fewer
# optimisations; what is shipped by rustc. The code of the latter is linted as the tests that it contains are compiled.
# usage: rustc-or-clippy.sh RUSTC ARGUMENT...      CLIPPY_ARGS has options of clippy
case " $* " in
*' --test '* | *' debug-assertions=on '* | */examples/*) exec clippy-driver "$@" ;;
*' opt-level='*) exec "$@" ;;
*) exec clippy-driver "$@" ;;
esac
