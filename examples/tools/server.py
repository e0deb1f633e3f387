"""A small MCP server, in Python's standard library alone: a shop's stock. Official SDKs do the same with fewer lines."""
import hashlib
import json
import pathlib
import sys

SKILLS = "io.modelcontextprotocol/skills"
STOCK = {"tea": 12, "salt": 0}

TOOLS = [
    {
        "name": "count",
        "description": "Counts the pieces of an article in stock.",
        "inputSchema": {
            "type": "object",
            "properties": {"article": {"type": "string", "description": "The article."}},
            "required": ["article"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {"article": {"type": "string"}, "pieces": {"type": "integer", "minimum": 0}},
            "required": ["article", "pieces"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "take",
        "description": "Takes pieces of an article out of stock.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "article": {"type": "string", "description": "The article."},
                "pieces": {"type": "integer", "minimum": 1, "description": "The number of pieces.", "default": 1},
            },
            "required": ["article"],
        },
    },
]


def count(article):
    if article not in STOCK:
        raise LookupError(f"no article '{article}': there are {', '.join(STOCK)}")
    return STOCK[article]


def call(name, arguments):
    article = arguments["article"]
    if name == "count":
        found = {"article": article, "pieces": count(article)}
        return {"content": [{"type": "text", "text": json.dumps(found)}], "structuredContent": found}
    pieces = arguments.get("pieces", 1)
    if count(article) < pieces:
        raise LookupError(f"only {STOCK[article]} pieces of {article} are left")
    STOCK[article] -= pieces
    return {"content": [{"type": "text", "text": f"{STOCK[article]} pieces of {article} are left"}]}


def file(path):
    return pathlib.Path("skills", path).read_bytes()


def skill():
    """The entry of the skill: its files with their digests, by which a client sees that they are those that it knows."""
    files = ["stocktaking/SKILL.md", "stocktaking/deviations.md"]
    resources = [
        {"uri": f"skill://{path}", "digest": "sha256:" + hashlib.sha256(file(path)).hexdigest(), "size": len(file(path))}
        for path in files
    ]
    description = "How to take stock of the shop. Load it before you count articles for a report."
    front = {"name": "stocktaking", "description": description}
    return {"uri": "skill://stocktaking/SKILL.md", "frontmatter": front, "resources": resources}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {}, "extensions": {SKILLS: {}}},
            "serverInfo": {"name": "stock", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        try:
            return call(params["name"], params.get("arguments", {}))
        except LookupError as error:
            return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    if method == "skills/list":
        return {"skills": [skill()]}
    if method == "skills/get" and params["uri"] == skill()["uri"]:
        return {"skill": skill()}
    if method == "resources/read" and params["uri"] in [known["uri"] for known in skill()["resources"]]:
        uri = params["uri"]
        text = file(uri.removeprefix("skill://")).decode()
        return {"contents": [{"uri": uri, "mimeType": "text/markdown", "text": text}]}
    if method == "ping":
        return {}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request["method"], request.get("params", {}))
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": "Method not found"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
