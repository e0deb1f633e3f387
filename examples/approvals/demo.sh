#!/bin/sh
# A shop sends two invoices. The organism is killed while both wait for approval, and starts again without a terminal. ada
# approves one over HTTP; the operator refuses the other from a second process.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../organism.sh"
cd "$work"
copy "$here"
cp "$here/approvals.xsd" "$here/clerk.sh" .

ask() {
    curl --silent --show-error --fail --header "@$1.auth" --request "$2" "$url$3" ${4:+--data "$4"}
}
# Waits until so many questions wait for a person.
waiting() {
    until ask "$1" GET /v1/questions | grep -q "\"waiting\":$2"; do sleep 0.1; done
}
first() { ask "$1" GET '/v1/questions?limit=1' | sed 's/.*"question":"\([^"]*\)".*/\1/'; }

start
for_name shop
for_name ada
for_name eve
tea=$(ask shop POST /v1/messages '<invoice>12.50</invoice>' | sed 's/.*"id":"\([^"]*\)".*/\1/')
waiting ada 1
yacht=$(ask shop POST /v1/messages '<invoice>900000</invoice>' | sed 's/.*"id":"\([^"]*\)".*/\1/')
waiting ada 2
crash
start
waiting ada 2
question=$(first ada)
ask ada POST "/v1/questions/$question/answer" '<decision><approved>true</approved></decision>'
echo
# One answer counts.
curl --silent --header @eve.auth --data '<decision><approved>false</approved></decision>' "$url/v1/questions/$question/answer"
echo
"$systole" inbox
"$systole" inbox decline "$(first ada)" --reason 'too dear'
for message in "$tea" "$yacht"; do
    until ask shop GET "/v1/messages/$message" | grep -qE '"state":"(answered|faulted)"'; do sleep 0.1; done
    ask shop GET "/v1/messages/$message"
    echo
done
