"""Plays this study from its question to its report, with a kill in the middle, and tells what happens.

    SYSTOLE=target/debug/systole python3 examples/study/demo.py

The organism runs in a copy that is removed at the end. The person who approves sits at a terminal of their own (a
pseudo-terminal), where this program types. Exits with 1, and the reason, if anything happens otherwise.
"""

import json
import os
import pty
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SYSTOLE = os.path.abspath(os.environ["SYSTOLE"])
# The script answers, whatever keys are there: the same each time.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("ANTHROPIC_API_KEY", "SYSTOLE_LOG")}
PATIENCE = 30
VERDICT = '<verdict approved="true"/>'


class Unexpected(Exception):
    """A run that goes another way than this program tells."""


class Run:
    """`systole run`, with a person at a terminal. Its texts grow: `terminal`, `events` and `answers`."""

    def __init__(self, folder, *arguments):
        self.hand, terminal = pty.openpty()
        command = [SYSTOLE, "run", "organism.yaml", *arguments]
        self.process = subprocess.Popen(
            command, cwd=folder, env=ENVIRONMENT, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        os.close(terminal)
        self.texts = {"terminal": "", "events": "", "answers": ""}
        self.sources = selectors.DefaultSelector()
        for name, source in (
            ("terminal", self.hand), ("events", self.process.stderr), ("answers", self.process.stdout)
        ):
            self.sources.register(source, selectors.EVENT_READ, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.hand)

    def read(self, wait):
        """Reads what is there, after a wait for the first of it."""
        for key, _ in self.sources.select(wait):
            try:
                piece = os.read(key.fd, 65536)
            except OSError:  # the last process has closed the terminal
                piece = b""
            if piece:
                self.texts[key.data] += piece.decode(errors="replace").replace("\r", "")
            else:
                self.sources.unregister(key.fileobj)

    def until(self, what, is_there):
        deadline = time.monotonic() + PATIENCE
        while not is_there():
            left = deadline - time.monotonic()
            if left <= 0 or not self.sources.get_map():
                why = f"waited {PATIENCE} s for" if left <= 0 else "the organism ended before"
                raise Unexpected(f"{why} {what}; events:\n{self.texts['events']}\nterminal:\n{self.texts['terminal']}")
            self.read(left)

    def shows(self, text):
        """Waits until the terminal shows a text."""
        self.until(f"{text!r} on the terminal", lambda: text in self.texts["terminal"])

    def types(self, line):
        os.write(self.hand, f"{line}\n".encode())

    def kill(self):
        """Ends the process as a crash does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.until("the end of its output", lambda: not self.sources.get_map())

    def ends(self):
        """Waits for the end, in order."""
        self.until("the end of its output", lambda: not self.sources.get_map())
        if self.process.wait(PATIENCE):
            raise Unexpected(f"it exits with {self.process.returncode}:\n{self.texts['events']}{self.texts['answers']}")

    def lines(self, *words):
        """The events that have all these words, from the path of their threads on."""
        lines = [line.partition(" root") for line in self.texts["events"].splitlines()]
        return [f"root{rest}" for _, is_there, rest in lines if is_there and all(word in rest for word in words)]


def ask(folder, *arguments):
    """The output of a command of `systole`."""
    done = subprocess.run(
        [SYSTOLE, *arguments], cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=PATIENCE,
    )
    if done.returncode:
        raise Unexpected(f"systole {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def told(folder, root):
    """The requests to the model in the journal, each with its answer: the last turn, and the text."""
    lines = json.loads(ask(folder, "thread", "show", root, "--json"))
    notes = [json.loads(line["text"]) for line in lines if line["kind"] == "note"]
    # The notes of questions to people have no value of a model.
    notes = [note["value"] for note in notes if "value" in note]
    return [(note["asked"], note["answer"]) for note in notes]


def title(text):
    print(f"\n{text}", flush=True)


def quote(text, mark=""):
    for line in text.strip().splitlines():
        print(f"  {mark}{line}", flush=True)


def only(found, what):
    if not found:
        raise Unexpected(f"there is no {what}")
    return found[0]


def play(folder):
    print("A script plays the model here, whatever keys are set. The same organism asks Claude, and you approve, with")
    quote("$ ANTHROPIC_API_KEY=… systole run examples/study/organism.yaml examples/study/question.xml --until-idle")
    title("A question for a model that plans, two workers in Python, and a person who approves.")
    quote("$ systole run organism.yaml question.xml")
    quote((folder / "question.xml").read_text(encoding="utf-8"))
    with Run(folder, "question.xml", "--until-idle") as first:
        first.shows(" asks editor ---")
        first.shows("\n> ")
        # The last event before the question: events are written apart from the terminal.
        first.until("the event of the question", lambda: first.lines("/editor delivered"))
        first.kill()
    root = only(re.findall(r" (\S+) root injected", first.texts["events"]), "message")
    asked = told(folder, root)

    title("The model writes dirty XML. It is repaired, and each repair is an event:")
    quote(asked[0][1], "| ")
    quote(only(first.lines("repaired what planner wrote", "missing-end-tag"), "repair"))
    for worker in ("library", "library#2", "calculator", "calculator#2"):
        quote(only(first.lines(f"/planner/{worker} emitted"), worker))

    title("Its draft breaks the schema. It gets the rule and an example, and answers again:")
    (wrong,) = (answer for _, answer in asked if "about 2,700" in answer)
    ((feedback, right),) = ((turn, answer) for turn, answer in asked if "was refused" in turn)
    quote(wrong, "| ")
    quote(feedback)
    quote(right, "| ")

    title("The person is asked. Before they answer, kill -9 ends the organism:")
    quote(first.texts["terminal"].split("Type XML")[0])
    quote(f"$ kill -9 {first.process.pid}")

    title("A second start goes on from the journal, and asks the person again:")
    quote("$ systole run organism.yaml --until-idle")
    with Run(folder, "--until-idle") as second:
        second.shows(" asks editor ---")
        second.shows("\n> ")
        second.types(VERDICT)
        second.shows("Send it? (y sends it, n sends nothing): ")
        second.types("y")
        second.ends()
    quote(second.texts["terminal"])
    before, after = (len(run.lines(" answered planner: ")) for run in (first, second))
    kept = len(told(folder, root))
    quote(f"The model answered {before} times before the kill and {after} time after it; {kept} answers are in the journal.")
    if (before, after, kept) != (4, 1, 5):
        raise Unexpected("4 before, 1 after and 5 in the journal were expected: an answer was asked for twice, or lost")

    title("What was spent of the budgets, of the conversation and of the planner:")
    quote(f"$ systole thread tree {root}")
    quote(ask(folder, "thread", "tree", root))

    title("The answer:")
    quote(only(re.findall(r"<report .*</report>", second.texts["answers"]), "report"))


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="systole-demo-") as work:
        # The organism names the package of its workers by a relative path.
        folder = Path(work) / "examples" / "study"
        ignored = shutil.ignore_patterns("*.journal*", "__pycache__")
        shutil.copytree(Path(__file__).parent, folder, ignore=ignored)
        shutil.copytree(ROOT / "sdk" / "python", Path(work) / "sdk" / "python", ignore=ignored)
        try:
            play(folder)
        except Unexpected as unexpected:
            sys.exit(f"demo: {unexpected}")


main()
