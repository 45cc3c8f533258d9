# shellcheck shell=bash
# How are the steps of a long run told apart? Sourced; the logs of steps are in the folder $logs, which the sourcing script makes.
# A step's name is a word. Those that failed are in the array `failed`.
failed=()

begin() { # NAME COMMAND...: runs it beside what follows, until `end NAME`
    local name=$1 begun=$SECONDS status=0
    shift
    {
        # shellcheck disable=SC2154 # of who sources this
        "$@" >"$logs/$name.log" 2>&1 </dev/null || status=$?
        echo "$status $((SECONDS - begun))" >"$logs/$name.new"
        mv "$logs/$name.new" "$logs/$name.ended"
    } &
}

end() { # NAME: waits for it and shows what it printed
    local name=$1 status seconds
    until [ -e "$logs/$name.ended" ]; do
        wait -n || true
    done
    read -r status seconds <"$logs/$name.ended"
    cat "$logs/$name.log"
    echo "== $name: $seconds s, exit status $status; $SECONDS s since the start"
    [ "$status" = 0 ] || failed+=("$name")
}

step() { # NAME COMMAND...
    begin "$@"
    end "$1"
}
