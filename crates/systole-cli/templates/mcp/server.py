"""An MCP server on standard input and output: the stock of a shop. Any other server, of any SDK, takes its place."""

import json
import sys

STOCK = {"tea": 12, "coffee": 0}
TOOLS = [{
    "name": "count",
    "description": "Counts the packets of an article in stock.",
    "inputSchema": {"type": "object", "properties": {"article": {"type": "string"}}, "required": ["article"]},
    "outputSchema": {"type": "object", "properties": {"packets": {"type": "integer"}}, "required": ["packets"]},
    "annotations": {"readOnlyHint": True},
}]


def call(article):
    if article not in STOCK:
        return {"content": [{"type": "text", "text": f"there is no article '{article}'"}], "isError": True}
    return {"content": [], "structuredContent": {"packets": STOCK[article]}}


for line in sys.stdin:
    request = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": request.get("id")}
    match request["method"]:
        case "initialize":
            capabilities, info = {"tools": {}}, {"name": "stock", "version": "1"}
            answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
        case "tools/list":
            answer["result"] = {"tools": TOOLS}
        case "tools/call":
            answer["result"] = call(request["params"]["arguments"]["article"])
        case _:
            answer["error"] = {"code": -32601, "message": "Method not found"}
    if "id" in request:
        print(json.dumps(answer), flush=True)
