# Functions of the demos, to be sourced: an organism in the current folder, and tokens for its principals.
systole=${SYSTOLE:-systole}
# The demos change the folder.
[[ $systole != */* ]] || systole=$(realpath "$systole")
work=$(mktemp -d)
started=
trap 'kill $started 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# Copies an organism.yaml, with a free port.
copy() { sed 's/127.0.0.1:8420/127.0.0.1:0/' "$1/organism.yaml" >organism.yaml; }
# Runs the organism, and sets $url to its address.
start() {
    # The log must not have the address of an earlier start.
    : >run.log
    "$systole" run organism.yaml </dev/null 2>>run.log &
    started=$!
    until url=$(sed -n 's/.*the gateway listens address=/http:\/\//p' run.log) && [ -n "$url" ]; do
        kill -0 $started 2>/dev/null || { cat run.log >&2; exit 1; }
        sleep 0.1
    done
}
# Ends the organism as a crash does.
crash() {
    kill -9 $started
    wait $started 2>/dev/null || :
}
# Makes a token for a principal, as a header for curl.
for_name() { "$systole" token new "$1" 2>/dev/null | sed 's/^/Authorization: Bearer /' >"$1.auth"; }
