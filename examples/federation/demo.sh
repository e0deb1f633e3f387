#!/usr/bin/env bash
# Two organisms with keys of their own: the shop imports the contract of the bank and sends it three payments. Both are killed before
# the bank has answered, and started again: each payment is made once.
set -euo pipefail
systole=$(realpath "$(command -v "${SYSTOLE:-systole}")")
folder=$(mktemp -d)
trap 'kill -9 "${bank:-}" "${shop:-}" 2>/dev/null || true; touch "$folder/bank/opened"; rm -rf "$folder"' EXIT
cp -r "$(dirname "$0")"/{bank,shop} "$folder"
cd "$folder"
mkdir bank/ledger
for name in bank shop; do
    "$systole" key new "$name/$name.jwks" >/dev/null 2>&1
done
"$systole" key show bank/bank.jwks >shop/bank.public
"$systole" key show shop/shop.jwks >bank/shop.public
(umask 077 && "$systole" token new shop --organism bank/organism.yaml 2>/dev/null >shop/bank.token)
# Runs a command until it succeeds, for a minute at most.
until_true() {
    for _ in {1..600}; do
        "$@" 2>/dev/null && return 0
        sleep 0.1
    done
    echo "waited in vain for: $*" >&2
    exit 1
}
start_bank() {
    "$systole" run bank/organism.yaml </dev/null >bank/answers 2>bank/log &
    bank=$!
    until_true grep -q 'the gateway listens address=' bank/log
}
start_bank
port=$(sed -n 's/.*the gateway listens address=127.0.0.1:\([0-9]*\).*/\1/p' bank/log)
# The next start of the bank listens where this one did.
sed -i "s/127.0.0.1:0/127.0.0.1:$port/" bank/organism.yaml
sed -i "s/127.0.0.1:8420/127.0.0.1:$port/" shop/organism.yaml
"$systole" organism import shop/organism.yaml bank
"$systole" check shop/organism.yaml | head -1
"$systole" run shop/organism.yaml shop/bills.xml >shop/before 2>shop/log </dev/null &
shop=$!
all_there() { [ "$(find bank/ledger -type f | wc -l)" = 3 ]; }
until_true all_there
kill -9 "$shop" "$bank"
wait "$shop" "$bank" 2>/dev/null || true
touch bank/opened
start_bank
"$systole" run shop/organism.yaml shop/bills.xml --until-idle >shop/after 2>>shop/log </dev/null
ledger=$(find bank/ledger -type f | wc -l)
receipts=$(cat shop/before shop/after | grep -c '<paid ')
echo "3 payments: $ledger in the ledger, $receipts receipts"
