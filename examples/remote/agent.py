"""The agent of a remote listener, with Python's standard library alone: `agent.py URL TOKEN_FILE CURSOR_FILE`.

It polls: one page after the other, each message once, in order. Its cursor is in a file that is replaced after each
message, so that it continues there after a restart; `ack` says that the messages up to it are done. A message that fails doesn't stop the others: its caller gets a
fault, and it becomes a dead letter.
"""

import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree
from xml.sax.saxutils import escape

SHOUT = "urn:example:shout:v1"


def main(url, token_file, cursor_file):
    with open(token_file) as file:
        token = file.read().strip()

    def call(path, body=None):
        request = urllib.request.Request(url + path, body, {"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=90) as answer:
            return json.load(answer)

    while True:
        try:
            page = call("/v1/mailboxes/shouter/messages?" + urllib.parse.urlencode(query(cursor_file)))
        except urllib.error.HTTPError as error:
            if error.code != 410:
                raise
            # The cursor is lost: go on with the messages that are left.
            os.remove(cursor_file)
            continue
        for item in page["items"]:
            if item["state"] == "waiting":
                answer(call, item)
            remember(cursor_file, item["cursor"])


def query(cursor_file):
    try:
        with open(cursor_file) as file:
            return {"wait": 60, "ack": file.read()}
    except FileNotFoundError:
        return {"wait": 60}


def answer(call, item):
    place = f"/v1/messages/{item['id']}"
    try:
        words = ElementTree.fromstring(item["envelope"]).findtext(f"{{{SHOUT}}}shout")
        reply = f"<shouted xmlns='{SHOUT}'>{escape(words.upper())}!</shouted>"
        call(f"{place}/reply", reply.encode())
    except urllib.error.HTTPError as error:
        # 409: it has an earlier answer, or its caller no longer waits.
        if error.code != 409:
            raise
    except Exception as error:
        call(f"{place}/fail", json.dumps({"message": str(error)}).encode())


def remember(cursor_file, cursor):
    with open(cursor_file + ".new", "w") as file:
        file.write(cursor)
        file.flush()
        os.fsync(file.fileno())
    os.replace(cursor_file + ".new", cursor_file)


if __name__ == "__main__":
    main(*sys.argv[1:])
