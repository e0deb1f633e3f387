#!/bin/sh
# An organism, an agent in shell and one in Python, each a process of its own; a client calls both with curl. Then any
# command replaces the agent in Python, by `systole agent`, and the one in Rust if AGENT names it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../organism.sh"

mkdir "$work/remote" "$work/swarm"
cd "$work/remote"
copy "$here"
cp "$here/shout.xsd" .
cp "$here/../swarm/calculator.xsd" "$work/swarm"
start
for_name ada
for_name calculator
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
