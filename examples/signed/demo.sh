#!/usr/bin/env bash
# Signs an order, sends it to a till that hears ada only signed, and verifies the receipt and the transcript of the conversation; then
# sends the order with one digit changed.
set -euo pipefail
systole=$(realpath "$(command -v "${SYSTOLE:-systole}")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$(dirname "$0")"/{organism.yaml,order.xsd,order.xml} "$folder"
cd "$folder"
for name in till ada; do
    "$systole" key new "$name.jwks" >/dev/null 2>&1
    "$systole" key show "$name.jwks" >"$name.public"
done
"$systole" sign order.xml --key ada.jwks >signed.xml
"$systole" ask organism.yaml - --envelope <signed.xml >receipt.xml
echo "the receipt: $("$systole" verify receipt.xml --key till.public | sed 's/ by .*/ by the till/')"
# The conversation as a transcript: anybody with the public key finds what was done to it.
id=$("$systole" thread list --json | sed -n 's/.*"conversation": "\(.*\)".*/\1/p' | head -1)
"$systole" thread transcript "$id" --sign till.jwks >transcript.xml 2>head
"$systole" verify transcript.xml --key till.public | sed -n 's/.*taken [^:]*:[^:]*:[^:]*: \([0-9]*\) entries.*/the transcript: \1 entries/p'
sed 's/>10</>90</' transcript.xml >changed.xml
if "$systole" verify changed.xml --key till.public 2>why; then
    echo 'the changed transcript was taken' >&2
    exit 1
fi
sed -n 's/.*\(entry [0-9]* was changed\).*/the changed transcript: \1/p' why
"$systole" thread import transcript.xml --key till.public --journal copy.journal >/dev/null
"$systole" thread show "$id" --journal copy.journal | grep -q '<article>tea</article>' && echo 'the imported conversation: the same'
sed 's/>10</>90</' signed.xml >changed.xml
if "$systole" ask organism.yaml - <changed.xml >refused.xml 2>/dev/null; then
    echo 'the changed order was taken' >&2
    exit 1
fi
grep -q 'route' refused.xml && echo 'the changed order: refused'
