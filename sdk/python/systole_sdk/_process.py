"""The process of a worker: lines from the pump and to it, and the functions that handle its messages (docs/worker.md)."""
from __future__ import annotations

import asyncio
import atexit
import collections
import contextlib
import contextvars
import dataclasses
import functools
import inspect
import itertools
import json
import os
import stat
import sys
import traceback
import typing
import xml.etree.ElementTree as ET
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import _json
from ._json import Number
from ._xml import decode, encode, payloads, said, split_name

_FAULT = ("code", "message", "retryable", "rule", "example")
# Characters of a sentence; the pump keeps as many bytes.
_SENTENCE = 4096
# Seconds that async functions get at the end: the pump sends SIGTERM after one.
_PATIENCE = 0.5
Recorded = dict[str, collections.deque[Any]]

# The message that a function handles, and the values that earlier runs of it recorded, by name.
current: contextvars.ContextVar[tuple[Message, Recorded]] = contextvars.ContextVar("message")


class Fault(Exception):
    """A fault: the answer to a call that failed."""

    # The message and the label of the call.
    _call: tuple[str, str] | None = None

    def __init__(self, code: str, message: str, retryable: bool = False, rule: str | None = None, example: str | None = None):
        super().__init__(f"{code}: {message}" + (f" ({rule})" if rule else ""))
        self.code, self.message, self.retryable, self.rule, self.example = code, message, retryable, rule, example


@dataclasses.dataclass(frozen=True)
class Message:
    """Metadata of the message that a function handles; times and ids as text."""

    id: str
    type: str
    sender: str
    thread: str
    in_reply_to: str | None
    index: int | None
    total: int | None
    remaining: int | None
    deadline: str | None
    traceparent: str | None
    history: list[tuple[str, Any]]
    """The messages of the thread before this one: sender, and payload as XML or, with `json: true`, as JSON."""


def _take_streams() -> tuple[int, int]:
    """Moves the lines from the pump to a descriptor that no program inherits, and keeps the one for lines to it from them, too."""
    writer = int(os.environ["SYSTOLE_WORKER"])
    os.set_inheritable(writer, False)
    # A script that reads its standard input must not read messages of the pump.
    reader, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return reader, writer


def _are_here() -> bool:
    """States whether both streams are the pump's: a program that a worker started may have its variable, and not its pipes."""
    try:
        ends = 0, int(os.environ["SYSTOLE_WORKER"])
        return all(stat.S_ISFIFO(os.fstat(end).st_mode) for end in ends)
    except (KeyError, ValueError, OSError):
        return False


# Before any code of the program, which may start others.
_streams = _take_streams() if _are_here() else None


class Worker:
    """The functions of a program, the messages that they handle, and the streams of the pump."""

    loop: asyncio.AbstractEventLoop
    ended = False
    is_json = False
    """True if the payloads in the lines are JSON."""
    is_described = False
    """True while only the schema of the program's payloads is asked for."""

    def __init__(self) -> None:
        # By the payload: the function, and the dataclass, str or dict that it takes; None for anything.
        self.functions: dict[str, tuple[Callable[..., Any], type | None]] = {}
        self.out: list[bytes] = []
        self.running: dict[str, asyncio.Task[None] | None] = {}
        self.calls: dict[str, dict[str, asyncio.Future[Any]]] = {}
        self.labels = itertools.count()
        # Messages of plain functions: those that wait for a place, that compute, and that wait for the pump.
        self.queue: collections.deque[tuple[str, Callable[[], None]]] = collections.deque()
        self.computing: set[str] = set()
        self.asking: set[str] = set()
        # `places` bounds the threads that compute. One that waits needs a thread, too, but no place: a message that holds a
        # slot of the pump must not wait here for answers that wait for a slot.
        self.threads = ThreadPoolExecutor(sys.maxsize)

    def serve(self, places: int) -> typing.NoReturn:
        self.loop, self.places, self.begun = asyncio.new_event_loop(), places, bytearray()
        self.reader, self.writer = _streams or _take_streams()
        self.longest = int(os.environ.get("SYSTOLE_WORKER_LINE", sys.maxsize))
        typing.cast(Any, sys.stdout).reconfigure(line_buffering=True)
        self.loop.add_reader(self.reader, self.read)
        while not self.ended:
            with contextlib.suppress(SystemExit, KeyboardInterrupt):  # one in a task: whoever awaits it gets it
                self.loop.run_forever()
        self.end()

    def end(self) -> typing.NoReturn:
        """Ends the program as any other: its `finally` and its `atexit` come first. The pump waits a moment."""
        self.running.clear()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.wait(tasks, timeout=_PATIENCE))
        if self.computing or self.asking:  # Python would wait for their threads, whose answers no caller waits for.
            atexit._run_exitfuncs()
            sys.stdout.flush()
            os._exit(0)
        sys.exit(0)

    def read(self) -> None:
        chunk = os.read(self.reader, 1 << 18)
        if not chunk:
            self.ended = True
            self.loop.remove_reader(self.reader)
            self.loop.stop()
            return self.flush()
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            if self.begun:
                line, self.begun = bytes(self.begun + line), bytearray()
            self.hear(json.loads(line, parse_float=Number))
        self.begun += rest

    def hear(self, line: dict[str, Any]) -> None:
        if "type" in line:
            self.start(line)
        elif "as" in line:
            calls = self.calls.get(line["id"], {})
            if (answer := calls.pop(line["as"], None)) and not answer.done():
                if "fault" in line:
                    fault = Fault(*map(line["fault"].get, _FAULT))
                    fault._call = line["id"], line["as"]
                    answer.set_exception(fault)
                else:
                    answer.set_result(line.get("reply"))
            if not calls:
                self.resume(line["id"])
        elif "cancel" in line:
            if task := self.running.pop(line["cancel"], None):
                task.cancel()
            self.give_up(line["cancel"])
        elif "ping" in line:
            self.send({"pong": line["ping"]})

    def start(self, line: dict[str, Any]) -> None:
        self.is_json = not isinstance(line["payload"], str)
        past = [(one["from"], one["payload"]) for one in line.get("history", [])]
        optional = [line.get(key) for key in ("in_reply_to", "index", "total", "remaining", "deadline", "traceparent")]
        recorded: Recorded = collections.defaultdict(collections.deque)
        for one in line.get("recorded", []):
            recorded[one["name"]].append(one["value"])
        head = Message(line["id"], line["type"], line["from"], line["thread"], *optional, past)  # type: ignore
        current.set((head, recorded))
        known = self.functions.get(line["type"]) or self.functions.get(without_namespace(line["type"]))
        function, takes = known or (None, None)
        self.running[line["id"]] = None
        if function is None:
            self.answer(line["id"], {"error": f"no function listens to {line['type']}"})
        elif inspect.iscoroutinefunction(function):
            self.running[line["id"]] = self.loop.create_task(self.run_async(function, takes, line))
        else:
            work = functools.partial(contextvars.copy_context().run, self.run_plain, function, takes, line)
            self.queue.append((line["id"], work))
            self.begin()

    def begin(self) -> None:
        """Starts the functions that places are free for."""
        while self.queue and len(self.computing) < self.places:
            id, work = self.queue.popleft()
            try:
                if id in self.running:  # else it was cancelled
                    self.threads.submit(work)
                    self.computing.add(id)
            except RuntimeError as error:
                self.answer(id, {"error": f"no thread for a plain function: {error}; an `async def` needs none"})

    def resume(self, id: str) -> None:
        """Gives a function its place again, even beyond `places`: the pump bounds the messages that it resumes."""
        if id in self.asking:
            self.asking.discard(id)
            self.computing.add(id)

    async def run_async(self, function: Callable[..., Awaitable[Any]], takes: type | None, line: dict[str, Any]) -> None:
        try:
            answer = self.answered(await function(self.taken(takes, line)))
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and line["id"] not in self.running:
                raise  # The pump cancelled it.
            answer = _error(line["id"], error)
        self.answer(line["id"], answer)

    def run_plain(self, function: Callable[..., Any], takes: type | None, line: dict[str, Any]) -> None:
        answer: dict[str, Any] = {}
        try:
            if line["id"] in self.running:  # else it was cancelled, or answered: the pool keeps work that it found no thread for
                answer = self.answered(function(self.taken(takes, line)))
        except BaseException as error:  # a `sys.exit` of one function ends no others
            if line["id"] in self.running:  # else it was cancelled: what its function raises is no failure
                answer = _error(line["id"], error)
        self.loop.call_soon_threadsafe(self.end_plain, line["id"], answer)

    def taken(self, takes: type | None, line: dict[str, Any]) -> Any:
        """The payload of a message as its function takes it."""
        payload = line["payload"]
        if takes in (None, str, dict):
            if takes not in (None, type(payload)):
                how = "write dict, or a dataclass" if self.is_json else "write str, or a dataclass; or `json: true` at the listener"
                raise TypeError(f"the function of {line['type']} takes {said(takes)}, and payloads are {'JSON' if self.is_json else 'XML'}: {how}")
            return payload
        return _json.decode(takes, payload) if self.is_json else decode(takes, payload)

    def encode(self, value: Any) -> Any:
        return _json.encode(value) if self.is_json else encode(value)

    def answered(self, said: Any) -> dict[str, Any]:
        said = [] if said is None else said if isinstance(said, (list, tuple)) else [said]
        return {"payloads": [self.encode(one) for one in said]}

    def end_plain(self, id: str, answer: dict[str, Any]) -> None:
        self.computing.discard(id)
        self.asking.discard(id)
        self.answer(id, answer)
        self.begin()

    def answer(self, id: str, answer: dict[str, Any]) -> None:
        # A message that is not there was cancelled meanwhile.
        if id in self.running:
            del self.running[id]
            self.give_up(id)
            try:
                self.write(self.bounded({"id": id, **answer}))
            except Exception as error:  # such as an answer that is too long: nothing else would end the message
                self.send({"id": id, "error": str(error)})

    def give_up(self, id: str) -> None:
        for answer in self.calls.pop(id, {}).values():
            answer.cancel()
        self.resume(id)

    async def call(self, id: str, request: Any, to: str | None) -> Any:
        reply = await self.ask(id, {"call": request} | ({"to": to} if to else {}))
        if not isinstance(reply, str):
            cls = _json.declared(reply, payloads)
            return _json.decode(cls, reply) if cls else reply
        name = ET.fromstring(reply).tag
        cls = payloads.get(name) or payloads.get(without_namespace(name))
        return decode(cls, reply) if cls else reply

    async def ask(self, id: str, line: dict[str, Any]) -> Any:
        """Sends a line about a message, and awaits its answer."""
        if id not in self.running:
            raise asyncio.CancelledError
        label = str(next(self.labels))
        data = self.bounded({"id": id, **line, "as": label})
        if id in self.computing:
            self.computing.discard(id)
            self.asking.add(id)
            self.begin()
        answer = self.calls.setdefault(id, {})[label] = self.loop.create_future()
        self.write(data)
        return await answer

    def progress(self, id: str, text: str) -> None:
        if id in self.running:
            line = {"id": id, "progress": legible(text[:_SENTENCE])[:_SENTENCE]}
            # A character has at most 6 bytes in JSON.
            while (over := len(as_line(line)) - self.longest) > 0 and line["progress"]:
                line["progress"] = line["progress"][: -(over // 6 + 1)]
            self.send(line)

    def draft(self, id: str, text: str, anew: bool) -> None:
        if id in self.running:
            # A character has at most 6 bytes in JSON; the pump takes lines of some KiB in any case.
            most = min(max((self.longest - 256) // 6, 512), 1 << 16)
            for begin in range(0, len(text), most) or [0]:
                self.send({"id": id, "draft": text[begin : begin + most]} | ({"anew": True} if anew and not begin else {}))

    def usage(self, id: str, used: dict[str, Any]) -> None:
        if id in self.running:
            self.send({"id": id, "usage": used})

    def send(self, line: dict[str, Any]) -> None:
        self.write(as_line(line))

    def bounded(self, line: dict[str, Any]) -> bytes:
        """A line about a message. The pump would fail that for one that is too long, with a sentence of its own."""
        data = as_line(line)
        if len(data) > self.longest:
            raise ValueError(f"a line of {len(data)} bytes is too long: the pump takes at most {self.longest} (limits: message_bytes)")
        return data

    def write(self, data: bytes) -> None:
        if not self.out:
            self.loop.call_soon(self.flush)
        self.out.append(data + b"\n")

    def flush(self) -> None:
        data, self.out = memoryview(b"".join(self.out)), []
        while data:
            data = data[os.write(self.writer, data) :]


def without_namespace(name: str) -> str:
    """The name under which a payload of that name is declared without a namespace."""
    return "{}" + split_name(name)[1]


def _error(id: str, error: BaseException) -> dict[str, Any]:
    text = type(error).__name__
    with contextlib.suppress(BaseException):  # It may be one that has no text, or can't be printed.
        text = str(error) or text
        if not isinstance(error, Fault):
            traceback.print_exception(error)
    # The pump passes on the fault of that call: its code, and whether a retry may help.
    of, label = isinstance(error, Fault) and error._call or (None, None)
    return {"error": legible(text[:_SENTENCE])[:_SENTENCE]} | ({"as": label} if of == id else {})


def legible(text: str) -> str:
    """A text for people, in which half of a surrogate pair is shown as it is written in Python."""
    return text.encode(errors="backslashreplace").decode()


def as_line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
