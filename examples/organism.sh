# What the demos have in common: an organism in the folder that one is in, and who may speak to it. It is sourced.
systole=${SYSTOLE:-systole}
work=$(mktemp -d)
started=
trap 'kill $started 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# A copy of an organism.yaml, at a port that is free.
copy() { sed 's/127.0.0.1:8420/127.0.0.1:0/' "$1/organism.yaml" >organism.yaml; }
# Runs it, and says in $url where it listens.
start() {
    # The address of an earlier start must not be found in it.
    : >run.log
    "$systole" run organism.yaml </dev/null 2>>run.log &
    started=$!
    until url=$(sed -n 's/.*the gateway listens address=/http:\/\//p' run.log) && [ -n "$url" ]; do
        kill -0 $started 2>/dev/null || { cat run.log >&2; exit 1; }
        sleep 0.1
    done
}
# Ends it as a crash does.
crash() {
    kill -9 $started
    wait $started 2>/dev/null || :
}
# Makes a token for a principal, as a header for curl.
for_name() { "$systole" token new "$1" 2>/dev/null | sed 's/^/Authorization: Bearer /' >"$1.auth"; }
