# shellcheck shell=bash
# Steps of a long run, some beside others. Sourced by a script that has made the folder $logs. A step's name is a word.
# The names of steps that failed are in the array `failed`, their seconds in `seconds`.
failed=()
declare -A pids seconds

# A process group for each step: signals to end reach all of its processes.
set -m
# shellcheck disable=SC2154 # the loop's own
trap 'for pid in "${pids[@]}"; do kill -- "-$pid" 2>/dev/null; done' EXIT
trap 'exit 130' INT TERM HUP

begin() { # NAME COMMAND...: runs it beside what follows, until `end NAME`
    local name=$1 begun=$SECONDS
    shift
    (
        # shellcheck disable=SC2154 # set by the sourcing script
        "$@" >"$logs/$name.log" 2>&1 </dev/null
        status=$?
        echo "$((SECONDS - begun))" >"$logs/$name.seconds"
        exit "$status"
    ) &
    pids[$name]=$!
}

end() { # NAME: waits for it and shows what it printed
    local name=$1 status=0
    wait "${pids[$name]}" || status=$?
    unset "pids[$name]"
    seconds[$name]=$(cat "$logs/$name.seconds" 2>/dev/null)
    cat "$logs/$name.log"
    echo "== $name: ${seconds[$name]} s, exit status $status; $SECONDS s since the start"
    [ "$status" -eq 0 ] || failed+=("$name")
}

step() { # NAME COMMAND...
    begin "$@"
    end "$1"
}
