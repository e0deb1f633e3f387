#!/usr/bin/env bash
# A host in a few lines: it asks for a fare, and books, with the traveller's consent. SYSTOLE names the program.
set -euo pipefail
systole=$(realpath "$(command -v "${SYSTOLE:-systole}")")
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r organism.yaml travel.xsd desk.py skills "$folder"
sed -i "s|../../sdk/python|$PWD/../../sdk/python|" "$folder/organism.yaml"
python3 - "$systole" "$folder/organism.yaml" <<'HOST'
import json
import subprocess
import sys

host = subprocess.Popen(sys.argv[1:2] + ["mcp"] + sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def send(**message):
    host.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    host.stdin.flush()


def answer(number):
    for line in host.stdout:
        message = json.loads(line)
        if message.get("method") == "elicitation/create":
            print("asked:", message["params"]["message"].partition("asks: ")[2])
            send(id=message["id"], result={"action": "accept", "content": {"agreed": True, "name": "Ada"}})
        elif message.get("id") == number:
            return message["result"]
    sys.exit("the host was left without an answer")


def call(number, name, **arguments):
    send(id=number, method="tools/call", params={"name": name, "arguments": arguments})
    return answer(number)


info = {"name": "demo", "version": "1"}
send(id=0, method="initialize",
     params={"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": info})
answer(0)
send(method="notifications/initialized")
print("fare:", call(1, "quote", to="Rome", travellers=2)["structuredContent"]["euros"])
print("refused:", call(2, "quote", to="Rom", travellers=2)["content"][0]["text"].splitlines()[0])
print("booked:", call(3, "book", to="Rome", travellers=2)["structuredContent"]["$"])
host.stdin.close()
sys.exit(host.wait())
HOST
