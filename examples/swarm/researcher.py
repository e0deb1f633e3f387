"""Splits a question up, calls in parallel, and joins the answers.

One process for each message, so no state is kept here: the earlier answers are in the file that
SYSTOLE_HISTORY names, and SYSTOLE_REMAINING has the number of those still to come.
"""

import os
import sys
import xml.etree.ElementTree as ET

QUESTION = "{urn:example:research:v1}question"
SUBJECT = "{urn:example:research:v1}subject"
FIGURE = "{urn:example:research:v1}figure"
SUM = "{urn:example:calculator:v1}sum"
TITLE = "{urn:example:writer:v1}title"


def ask(question):
    """Writes all calls at once, as a model might: prose, a fence, no namespaces, loose ends."""
    subject = question.find(SUBJECT).text
    figures = [int(figure.text) for figure in question.findall(FIGURE)]
    if len(figures) % 2:
        figures.append(0)
    print("Right, let me ask a few others & put it together afterwards.\n\n```xml")
    for a, b in zip(figures[::2], figures[1::2]):
        print(f"<add><a>{a}</a><b>{b}</add>")
    print(f"<headline><subject>{subject}</subject>\n```")


def answer(messages):
    """Writes the answer, once all answers are there."""
    total = sum(int(message.get("value")) for message in messages if message.tag == SUM)
    title = next(message.text for message in messages if message.tag == TITLE)
    print(f"That's all of it:\n<answer><headline>{title}</headline><total>{total}</total></answer>")


def main():
    message = ET.fromstring(sys.stdin.buffer.read())
    if message.tag == QUESTION:
        print(f"a question from {os.environ['SYSTOLE_FROM']}", file=sys.stderr)
        ask(message)
    elif os.environ["SYSTOLE_REMAINING"] == "0":
        history = ET.parse(os.environ["SYSTOLE_HISTORY"]).getroot()
        answer([entry[0] for entry in history] + [message])


main()
