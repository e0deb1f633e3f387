#!/usr/bin/env bash
# Runs three nodes of an organism on this machine, on a server of PostgreSQL of its own: each takes a message, the one that runs
# the organism is killed, and another takes over with the question that waits. Needs the programs of the server (Debian's
# package postgresql) and curl.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' :)
command -v initdb >/dev/null || { echo 'SKIPPED: there is no initdb (Debian: postgresql)'; exit 0; }
. "$here/../organism.sh"
cd "$work"
chmod 711 "$work"
mkdir server
declare -A node port
trap 'kill -9 ${node[*]} 2>/dev/null || :; kill ${server:-} 2>/dev/null || :; wait; rm -rf "$work"' EXIT
# The server refuses to run as root.
as=()
if ((EUID == 0)); then as=(setpriv --reuid=nobody --regid=nogroup --clear-groups); chown nobody:nogroup server; fi
export PGHOST=$work/server PGUSER=systole
(cd server && "${as[@]}" initdb -A trust -U systole -D data >/dev/null)
(cd server && exec "${as[@]}" postgres -D data -k "$work/server" -c listen_addresses= 2>>log) &
server=$!
until psql -qc 'SELECT 1' postgres >/dev/null 2>&1; do kill -0 $server; sleep 0.1; done
psql -qc 'CREATE DATABASE desk' postgres

# On machines of their own the nodes would share the file as it is.
free() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
run() {
    mkdir "$1"
    port[$1]=$(free)
    cp "$here/desk.xsd" "$1/"
    sed "s|postgres:///desk|postgres:///desk?host=$work/server\&user=systole|; s|127.0.0.1:8420|127.0.0.1:${port[$1]}|" \
        "$here/organism.yaml" >"$1/organism.yaml"
    (cd "$1" && exec "$systole" run --node "$1" --node-url "http://127.0.0.1:${port[$1]}" organism.yaml </dev/null >/dev/null 2>log) &
    node[$1]=$!
}
role() { curl -fsS "http://127.0.0.1:${port[$1]}/readyz" 2>/dev/null | sed -n 's/.*"role":"\([a-z]*\)".*/\1/p'; }
# Waits for a node that runs the organism, and prints its name.
active() {
    for _ in {1..600}; do
        for name in "${!node[@]}"; do [ "$(role "$name")" != active ] || { echo "$name"; return; }; done
        sleep 0.1
    done
    cat */log >&2
    exit 1
}
ask() {
    curl -fsS --retry 20 --retry-all-errors --retry-delay 1 -H @ada.auth -H "Idempotency-Key: $2" -H 'Content-Type: application/xml' \
        --data "$3" "http://127.0.0.1:${port[$1]}/v1/messages?wait=20"
    echo
}

run a
until [ "$(role a)" = active ]; do kill -0 "${node[a]}"; sleep 0.1; done
run b
run c
for name in b c; do until [ "$(role $name)" = standby ]; do kill -0 "${node[$name]}"; sleep 0.1; done; done
(cd a && "$systole" token new ada 2>/dev/null) | sed 's/^/Authorization: Bearer /' >ada.auth
echo 'The nodes:'
(cd b && "$systole" cluster --organism organism.yaml)
echo 'A message to a node that stands by:'
ask c one '<say xmlns="urn:example:desk:v1">hello</say>' | grep -o '<say.*</say>'
killed=$(active)
kill -9 "${node[$killed]}"
wait "${node[$killed]}" 2>/dev/null || :
unset "node[$killed]"
echo "The node $killed was killed. Another message, to one that stood by:"
ask b two '<say xmlns="urn:example:desk:v1">are you there?</say>' | grep -o '<say.*</say>'
took=$(active)
grep -h 'takes the organism over' "$took/log" | sed 's/^[^ ]* *//'
(cd "$took" && "$systole" cluster --organism organism.yaml)
echo "$took took over from $killed"
