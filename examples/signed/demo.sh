#!/usr/bin/env bash
# Signs an order, sends it to a till that hears ada only signed, and verifies the receipt; then sends it with one digit changed.
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
sed 's/>10</>90</' signed.xml >changed.xml
if "$systole" ask organism.yaml - <changed.xml >refused.xml 2>/dev/null; then
    echo 'the changed order was taken' >&2
    exit 1
fi
grep -q 'route' refused.xml && echo 'the changed order: refused'
