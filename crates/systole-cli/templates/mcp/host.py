"""A host in a few lines: it starts `systole mcp`, lists the tools, and calls one. Editors and assistants do the same."""

import json
import subprocess
import sys

host = subprocess.Popen(["systole", "mcp", "organism.yaml"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(number, method, **params):
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    print(json.dumps(request), file=host.stdin, flush=True)
    for line in host.stdout:
        answer = json.loads(line)
        if answer.get("id") == number:
            return answer["result"]
    sys.exit("the organism has not answered: see above")


ask(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "host", "version": "1"})
print(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), file=host.stdin, flush=True)
print("tools:", ", ".join(tool["name"] for tool in ask(1, "tools/list")["tools"]))
order = {"article": "tea", "packets": 2}
print("order:", ask(2, "tools/call", name="order", arguments=order)["structuredContent"]["note"])
host.stdin.close()
sys.exit(host.wait())
