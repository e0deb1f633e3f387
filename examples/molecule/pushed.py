"""An agent as Molecule AI's Python SDK makes them with its `A2AServer`, with Python's standard library alone.

`pushed.py URL WORKSPACE TOKEN_FILE PORT`: it serves `POST /a2a/inbound` at that port of this machine, one connection after
the other, and registers its URL with its token. It answers with everything louder: the result of its handler is the
answer. A task that comes again, after a crash of either side, gets the same answer. It ends when an admin pauses it.
"""

import http.server
import json
import sys
import threading
import time
import urllib.request

# Answers by `idempotency_key`. An agent whose work costs something would keep them in a file.
answers = {}


def handle(task):
    key = task["idempotency_key"]
    if key not in answers:
        answers[key] = {"text": task["message"].upper() + "!"}
    say("answered", answers[key]["text"])
    return answers[key]


class Inbound(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            status, said = 200, {"status": "ok", "result": handle(json.loads(body))}
        except Exception as error:
            status, said = 500, {"error": f"internal error: {error}"}
        data = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def main(url, workspace, token_file, port):
    with open(token_file) as file:
        token = file.read().strip()

    def call(path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        with urllib.request.urlopen(urllib.request.Request(url + path, data, headers), timeout=15) as answer:
            return json.load(answer)

    server = http.server.HTTPServer(("127.0.0.1", int(port)), Inbound)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # The SDK's `register` sends no token by itself: give it a session that does.
    place = f"http://127.0.0.1:{server.server_port}/a2a/inbound"
    card = {"id": workspace, "url": place, "agent_card": {"name": workspace}}
    said = call("/registry/register", card)
    say(said["status"], said["delivery_mode"])
    while True:
        try:
            call("/registry/heartbeat", {"workspace_id": workspace, "active_tasks": 0})
            if call(f"/workspaces/{workspace}/state")["paused"]:
                return say("paused")
        except OSError:
            say("away")
        time.sleep(1)


def say(*words):
    # In one piece: the server has a thread of its own.
    print(" ".join(words) + "\n", end="", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
