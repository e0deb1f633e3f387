#!/bin/sh
# Bob leaves a note for Ada, who can't be called: it rides on the response to her own call, until she confirms it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../organism.sh"
cd "$work"
copy "$here"
cp "$here/office.xsd" .

send() {
    envelope="<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from>x</from></meta>$3</message>"
    curl --silent --show-error --fail --header "@$1.auth" --data "$envelope" "$url$2"
}
say() { send ada '/v1/sessions/laptop/call?wait=60' "<say xmlns='urn:example:office:v1'>hello</say>"; }
# Calls until a notice rides on the response, and reads the token from its metadata.
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
crash
start
told
confirm "$token"
say
echo
