#!/bin/sh
# Bob leaves a note for Ada, who can't be called: it rides on the response to her own call, until she confirms it.
set -eu
systole=${SYSTOLE:-systole}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
started=
trap 'kill $started 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

cp "$here/office.xsd" "$work"
sed 's/127.0.0.1:8420/127.0.0.1:0/' "$here/organism.yaml" >"$work/organism.yaml"
cd "$work"

start() {
    "$systole" run organism.yaml </dev/null 2>run.log &
    started=$!
    until url=$(sed -n 's/.*the gateway listens address=/http:\/\//p' run.log) && [ -n "$url" ]; do
        kill -0 $started 2>/dev/null || { cat run.log >&2; exit 1; }
        sleep 0.1
    done
}
for_name() { "$systole" token new "$1" 2>/dev/null | sed 's/^/Authorization: Bearer /' >"$1.auth"; }
send() {
    envelope="<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from>x</from></meta>$3</message>"
    curl --silent --show-error --fail --header "@$1.auth" --data "$envelope" "$url$2"
}
say() { send ada '/v1/sessions/laptop/call?wait=60' "<say xmlns='urn:example:office:v1'>hello</say>"; }
# Calls until something rides on the response, and takes the token from its metadata.
told() {
    until response=$(say) && token=$(printf '%s' "$response" | sed -n 's/.*"notices":{"token":"\([^"]*\)".*/\1/p') &&
        [ -n "$token" ]; do :; done
    printf '%s\n' "$response"
}
confirm() {
    curl --silent --show-error --fail --header @ada.auth --data "{\"text\":\"I have read $1.\"}" \
        "$url/v1/sessions/laptop/confirm"
    echo
}

start
for_name ada
for_name bob
send bob /v1/messages "<note xmlns='urn:example:office:v1'>lunch at noon?</note>" >/dev/null
told
kill -9 $started
wait $started 2>/dev/null || :
start
told
confirm "$token"
say
echo
