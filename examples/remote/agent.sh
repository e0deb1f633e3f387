#!/bin/sh
# A remote listener in shell: `agent.sh URL FILE`, where the file holds its `Authorization: Bearer TOKEN`.
# It leases one message after the other, adds, replies and acknowledges. It needs curl alone.
set -eu
url=$1 auth=$2

call() { curl --silent --show-error --fail --header "@$auth" "$@"; }
field() { printf '%s' "$leased" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
number() { printf '%s' "$leased" | sed -n "s/.*<$1>\([-0-9]*\)<.*/\1/p"; }

while leased=$(call --data '{"wait":60}' "$url/v1/mailboxes/calculator/lease"); do
    id=$(field id)
    [ -n "$id" ] || continue
    sum=$(($(number a) + $(number b)))
    call --output /dev/null --data "<sum xmlns='urn:example:calculator:v1' value='$sum'/>" "$url/v1/messages/$id/reply"
    call --data "{\"receipt\":\"$(field receipt)\"}" "$url/v1/mailboxes/calculator/messages/$id/ack"
done
