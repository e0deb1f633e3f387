#!/bin/sh
# An organism, an agent in shell and one in Python, each a process of its own; a client asks both with curl. Then any
# command takes the place of the one in Python, by `systole agent`, and the one in Rust if AGENT names it.
set -eu
systole=${SYSTOLE:-systole}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
started=
trap 'kill $started 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# The same organism in a folder of its own, at a port that is free.
mkdir "$work/remote" "$work/swarm"
cp "$here/../swarm/calculator.xsd" "$work/swarm"
cp "$here/shout.xsd" "$work/remote"
sed 's/127.0.0.1:8420/127.0.0.1:0/' "$here/organism.yaml" >"$work/remote/organism.yaml"
cd "$work/remote"
"$systole" run organism.yaml </dev/null 2>run.log &
started=$!
until url=$(sed -n 's/.*the gateway listens address=/http:\/\//p' run.log) && [ -n "$url" ]; do
    kill -0 $started 2>/dev/null || { cat run.log >&2; exit 1; }
    sleep 0.1
done

for name in ada calculator; do
    "$systole" token new $name 2>/dev/null | sed 's/^/Authorization: Bearer /' >$name.auth
done
"$systole" token new shouter 2>/dev/null >shouter.token
sh "$here/agent.sh" "$url" calculator.auth &
started="$started $!"
python3 "$here/agent.py" "$url" shouter.token shouter.cursor &
shouter=$!
started="$started $shouter"

ask() {
    envelope="<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from>ada</from></meta>$1</message>"
    curl --silent --show-error --fail --header @ada.auth --data "$envelope" "$url/v1/messages?wait=60"
    echo
}
ask "<add xmlns='urn:example:calculator:v1'><a>20</a><b>22</b></add>"
ask "<shout xmlns='urn:example:shout:v1'>AT&T rocks</shout>"

kill "$shouter"
"$systole" agent shouter --url "$url" --token-file shouter.token 2>agent.log --exec \
    'sed "s/shout\([ >]\)/shouted\1/g; s/<\//!&/"' &
shouter=$!
started="$started $shouter"
ask "<shout xmlns='urn:example:shout:v1'>any command</shout>"
[ -n "${AGENT-}" ] || exit 0
kill "$shouter"
"$AGENT" "$url" shouter.token shouter.cursor &
started="$started $!"
ask "<shout xmlns='urn:example:shout:v1'>and me</shout>"
