#!/usr/bin/env bash
# Plays an organism whose journal is in PostgreSQL, on a server of its own: a question, kill -9 of the organism, an immediate
# end of the server, and the question again. Needs the programs of the server (Debian's package postgresql).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../organism.sh"
PATH=$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' :)
cd "$work"
chmod 711 "$work"
mkdir server run
# The server refuses to run as root.
as=()
if ((EUID == 0)); then as=(setpriv --reuid=nobody --regid=nogroup --clear-groups); chown nobody:nogroup server; fi
serve() {
    (cd server && exec "${as[@]}" postgres -D data -k "$work/server" -c listen_addresses= 2>>log) &
    server=$!
    trap 'kill $started $server 2>/dev/null || :; wait; rm -rf "$work"' EXIT
    until psql -qc 'SELECT 1' postgres >/dev/null 2>&1; do kill -0 $server; sleep 0.1; done
}
export PGHOST=$work/server PGUSER=systole
(cd server && "${as[@]}" initdb -A trust -U systole -D data >/dev/null)
serve
psql -qc 'CREATE DATABASE desk' postgres
cp "$here"/desk.xsd run/
sed "s|postgres:///desk|postgres:///desk?host=$work/server\&user=systole|" "$here/organism.yaml" >run/organism.yaml
cd run

"$systole" check organism.yaml
"$systole" run organism.yaml </dev/null >answers.xml 2>run.log &
started=$!
until [ -S systole.journal.socket ]; do kill -0 $started; sleep 0.1; done
"$systole" ask organism.yaml '<say xmlns="urn:example:desk:v1">hello</say>'
echo 'A question that a person answers later:'
"$systole" ask organism.yaml '<ask xmlns="urn:example:desk:v1">May I?</ask>' || :
crash
kill -QUIT $server
wait $server || :
echo 'The organism was killed, and the server with it. Both start again:'
cd "$work"; serve; cd run
"$systole" run organism.yaml </dev/null >answers.xml 2>run.log &
started=$!
until "$systole" inbox list 2>/dev/null | grep 'clerk'; do kill -0 $started; sleep 0.1; done
kill -TERM $started
wait $started || :
"$systole" journal verify
"$systole" journal copy "postgres:///desk?host=$work/server&user=systole" desk.journal
"$systole" journal stat desk.journal | grep '^conversations   1 open'
psql -At desk -c "SELECT count(*) || ' messages in systole.message' FROM systole.message"
