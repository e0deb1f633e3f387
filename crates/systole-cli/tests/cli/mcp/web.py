"""An MCP server over streamable HTTP, with sessions and a token."""
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, status, kind, body, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send(405, "text/plain", b"no stream")

    def do_DELETE(self):
        self.send(200, "text/plain", b"")

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != "Bearer a-secret-of-the-server":
            return self.send(401, "text/plain", b"no such token")
        if os.path.exists("status") and request.get("method") == "tools/call":
            return self.send(int(open("status").read()), "text/plain", b"not here", Location="/other")
        method = request.get("method")
        if "id" not in request:
            return self.send(202, "text/plain", b"")
        reply = {"jsonrpc": "2.0", "id": request["id"]}
        headers = {}
        if method == "initialize":
            headers = {"Mcp_Session_Id": "session-1"}
            reply["result"] = {
                "protocolVersion": "2025-11-25",
                "serverInfo": {"name": "web", "version": "1"},
                "capabilities": {"tools": {}},
            }
        elif self.headers.get("Mcp-Session-Id") != "session-1":
            return self.send(400, "text/plain", b"no session")
        elif method == "tools/list":
            schema = {"type": "object", "properties": {}, "additionalProperties": False}
            reply["result"] = {"tools": [{"name": name, "inputSchema": schema} for name in ("plain", "stream", "foreign", "deep")]}
        elif method == "tools/call" and request["params"]["name"] == "stream":
            reply["result"] = {"content": [{"type": "text", "text": "as a stream"}]}
            return self.send(200, "text/event-stream", f"event: message\ndata: {json.dumps(reply)}\n\n".encode())
        elif method == "tools/call" and request["params"]["name"] == "foreign":
            reply["result"] = {"content": [{"type": "text", "text": "the right one"}]}
            foreign = dict(reply, id=999, result={"content": [{"type": "text", "text": "foreign"}]})
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for data in (json.dumps(foreign), "no JSON", "[]", json.dumps(reply)):
                self.wfile.write(f"data: {data}\n\n".encode())
                self.wfile.flush()
            self.close_connection = True
            return None
        elif method == "tools/call" and request["params"]["name"] == "deep":
            body = '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"a":%s}}}'
            body %= (json.dumps(request["id"]), "[" * 5000 + "]" * 5000)
            return self.send(200, "application/json", body.encode())
        elif method == "tools/call":
            reply["result"] = {"content": [{"type": "text", "text": "as JSON"}]}
        else:
            reply["error"] = {"code": -32601, "message": "Method not found"}
        self.send(200, "application/json", json.dumps(reply).encode(), **headers)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
open("port", "w").write(f"{server.server_port}\n")
server.serve_forever()
