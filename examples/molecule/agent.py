"""An agent as Molecule AI's Python SDK makes them, with Python's standard library alone.

`agent.py URL WORKSPACE TOKEN_FILE CURSOR_FILE [SECONDS]`: it registers, then sends heartbeats and polls for rows, every
5 seconds or at the given interval. It answers with everything louder: a person by `notify`, a peer by `a2a`. Its cursor
is in a file, which is replaced after each row. A lost cursor, a pump that is away for a while, 429 and 5xx are waited
out; its log goes to standard output.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

AGAIN = {429, 500, 502, 503, 504}


def main(url, workspace, token_file, cursor_file, seconds="5"):
    pause = float(seconds)
    with open(token_file) as file:
        token = file.read().strip()

    def call(path, body=None, token=token):
        """Repeats a call until its answer is final."""
        while True:
            data = None if body is None else json.dumps(body).encode()
            headers = {"Content-Type": "application/json", "X-Workspace-ID": workspace}
            headers |= {"X-Source-Workspace-Id": workspace} if path.endswith("/a2a") else {}
            headers |= {"Authorization": f"Bearer {token}"} if token else {}
            try:
                with urllib.request.urlopen(urllib.request.Request(url + path, data, headers), timeout=15) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code not in AGAIN:
                    raise
                say("again", error.code)
                time.sleep(min(pause, float(error.headers.get("Retry-After", pause))))
            except (OSError, ValueError):
                say("away")
                time.sleep(pause)

    # As the SDK does: without a token, since its operator has put one in place.
    card = {"id": workspace, "url": "remote://no-inbound", "agent_card": {"name": workspace}}
    say("registered", call("/registry/register", card, token=None)["status"])
    place = f"/workspaces/{urllib.parse.quote(workspace)}"
    while True:
        call("/registry/heartbeat", {"workspace_id": workspace, "active_tasks": 0, "uptime_seconds": 0})
        if call(f"{place}/state")["paused"]:
            return say("paused")
        query = {"type": "a2a_receive", "limit": "100"} | cursor(cursor_file)
        try:
            rows = call(f"{place}/activity?{urllib.parse.urlencode(query)}")
        except urllib.error.HTTPError as error:
            if error.code != 410:
                raise
            os.remove(cursor_file)
            say("lost")
            continue
        for row in rows:
            answer(call, place, row)
            remember(cursor_file, row["id"])
        time.sleep(pause)


def answer(call, place, row):
    data = row["data"]
    if data.get("in_reply_to"):
        return say("heard", data["text"])
    louder = data["text"].upper() + "!"
    try:
        if data["source"] == "canvas_user":
            call(f"{place}/notify", {"message": louder})
        else:
            part = {"kind": "text", "text": louder}
            message = {"role": "agent", "messageId": str(uuid.uuid4()), "parts": [part]}
            request = {"jsonrpc": "2.0", "id": row["id"], "method": "message/send", "params": {"message": message}}
            call(f"/workspaces/{row['source_id']}/a2a", request)
        say("answered", louder)
    except urllib.error.HTTPError as error:
        # The row has its answer, or its sender no longer waits.
        if error.code != 409:
            raise
        say("settled", louder)


def cursor(file):
    try:
        with open(file) as opened:
            return {"since_id": opened.read().strip()}
    except FileNotFoundError:
        return {}


def remember(file, row):
    with open(file + ".new", "w") as opened:
        opened.write(row)
        opened.flush()
        os.fsync(opened.fileno())
    os.replace(file + ".new", file)


def say(*words):
    print(*words, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
