"""Listeners of Systole in Python: functions in a process that stays (`worker: [python3, agent.py]`, docs/worker.md).

    @payload("urn:example:numbers:v1")
    @dataclass
    class Add:
        a: int
        b: int

    @listener
    async def add(message: Add) -> Sum:
        return Sum(message.a + message.b)

    run()

A function takes a dataclass that is a `payload`, or a `str` with the XML, and returns its emissions: a payload, XML, a list of
either, or None. A plain function runs on a thread of its own, and its `call(...)` returns the answer; in an async function it
is `await call(...)`. The output of a script goes to the log.
"""
from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import enum
import inspect
import itertools
import json
import math
import os
import sys
import traceback
import types
import typing
import xml.etree.ElementTree as ET
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from xml.sax.saxutils import escape

__all__ = ["Fault", "Message", "call", "decode", "encode", "listener", "message", "named", "payload", "run"]

_SPACE = {"\r": "&#xD;"}
_QUOTED = {"\r": "&#xD;", "\n": "&#xA;", "\t": "&#x9;", '"': "&quot;"}
_payloads: dict[str, type] = {}
_functions: dict[str, tuple[Callable[..., Any], type | None]] = {}
_current: contextvars.ContextVar[Message] = contextvars.ContextVar("message")


class Fault(Exception):
    """A fault: the answer to a call that failed."""

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
    history: list[tuple[str, str]]


def message() -> Message:
    """The message that the calling function handles."""
    return _current.get()


def payload(name: str) -> Callable[[type], type]:
    """Makes a dataclass a payload, by its namespace and the class's name in lower case, or by `{namespace}name`."""

    def mark(cls: type) -> type:
        cls.__payload__ = name if name.startswith("{") else f"{{{name}}}{cls.__name__.lower()}"  # type: ignore[attr-defined]
        _payloads[cls.__payload__] = cls  # type: ignore[attr-defined]
        return cls

    return mark


def named(name: str, **options: Any) -> Any:
    """A field with another name in the XML: `"other"`, `"@attribute"`, or `"$text"` for the text of the element itself."""
    return dataclasses.field(metadata={"xml": name}, **options)


def listener(what: Any) -> Any:
    """Registers a function for the payloads of its first parameter's type, or for a name: `@listener("{namespace}name")`."""
    if isinstance(what, str):
        return lambda function: _listen(function, what)
    return _listen(what, None)


def _listen(function: Callable[..., Any], name: str | None) -> Callable[..., Any]:
    first = next(iter(inspect.signature(function).parameters), None)
    takes = typing.get_type_hints(function).get(first or "")
    takes = takes if dataclasses.is_dataclass(takes) else None
    name = name or getattr(takes, "__payload__", None)
    if name is None:
        raise TypeError(f"{function.__name__}: name its payload, @listener('{{namespace}}name'), or annotate a dataclass")
    _functions[name] = (function, takes)  # type: ignore[assignment]
    return function


def encode(value: Any) -> str:
    """Encodes a payload as XML; a text is XML already."""
    if isinstance(value, str):
        return value
    namespace, _, local = value.__payload__[1:].rpartition("}")
    return _element(local, value, f' xmlns="{escape(namespace, _QUOTED)}"' if namespace else "")


def _element(name: str, value: Any, attributes: str = "") -> str:
    if not dataclasses.is_dataclass(value):
        return f"<{name}>{escape(_text(value), _SPACE)}</{name}>"
    content = ""
    for field, one in ((field, getattr(value, field.name)) for field in dataclasses.fields(value)):
        as_name = field.metadata.get("xml", field.name)
        if one is None:
            continue
        if as_name.startswith("@"):
            attributes += f' {as_name[1:]}="{escape(_text(one), _QUOTED)}"'
        elif as_name == "$text":
            content += escape(_text(one), _SPACE)
        else:
            content += "".join(_element(as_name, item) for item in (one if isinstance(one, (list, tuple)) else [one]))
    return f"<{name}{attributes}>{content}</{name}>"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"
    return str(value.value) if isinstance(value, enum.Enum) else str(value)


def decode(cls: type, xml: str | ET.Element) -> Any:
    """Decodes the XML of a payload as a dataclass."""
    element = ET.fromstring(xml) if isinstance(xml, str) else xml
    namespace = element.tag.rpartition("}")[0]
    namespace = namespace and namespace + "}"
    hints, values = _hints(cls), {}
    for field in dataclasses.fields(cls):
        name, hint = field.metadata.get("xml", field.name), hints[field.name]
        if name.startswith("@"):
            found: list[Any] = [text for text in [element.get(name[1:])] if text is not None]
        else:
            found = [element] if name == "$text" else element.findall(namespace + name)
        if typing.get_origin(hint) is list:
            values[field.name] = [_value(typing.get_args(hint)[0], item) for item in found]
        elif found:
            values[field.name] = _value(hint, found[0])
        elif type(None) in typing.get_args(hint):
            values.setdefault(field.name, None)
    return cls(**values)


_known: dict[type, dict[str, Any]] = {}


def _hints(cls: type) -> dict[str, Any]:
    return _known.get(cls) or _known.setdefault(cls, typing.get_type_hints(cls))


def _value(hint: Any, found: Any) -> Any:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(option for option in typing.get_args(hint) if option is not type(None))
    if dataclasses.is_dataclass(hint):
        return decode(hint, found)  # type: ignore[arg-type]
    text = found if isinstance(found, str) else found.text or ""
    return text.strip() in ("true", "1") if hint is bool else hint(text)


def call(request: Any, to: str | None = None) -> Any:
    """Calls another listener and returns the reply: awaited in an async function, at once in a plain one. Raises a `Fault`.

    A payload that is a dataclass of this program is decoded, any other is a text with its XML.
    """
    answer = _worker.call(_current.get().id, encode(request), to)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run_coroutine_threadsafe(answer, _worker.loop).result()
    return answer


class _Worker:
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self.running: dict[str, asyncio.Task[None] | None] = {}
        self.calls: dict[str, dict[str, asyncio.Future[Any]]] = {}
        self.labels = itertools.count()

    async def serve(self, threads: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.writer = int(os.environ["SYSTOLE_WORKER"])
        os.set_inheritable(self.writer, False)
        # A script that reads its standard input must not read messages of the pump.
        self.reader, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        typing.cast(Any, sys.stdout).reconfigure(line_buffering=True)
        self.threads = ThreadPoolExecutor(threads)
        self.begun, self.ended = bytearray(), self.loop.create_future()
        self.loop.add_reader(self.reader, self.read)
        await self.ended

    def read(self) -> None:
        chunk = os.read(self.reader, 1 << 18)
        if not chunk:
            self.loop.remove_reader(self.reader)
            self.ended.set_result(None)
            return
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            if self.begun:
                line, self.begun = bytes(self.begun + line), bytearray()
            self.hear(json.loads(line))
        self.begun += rest

    def hear(self, line: dict[str, Any]) -> None:
        if "type" in line:
            self.start(line)
        elif "as" in line:
            answer = self.calls.get(line["id"], {}).pop(line["as"], None)
            if answer is not None and not answer.done():
                fault = line.get("fault")
                answer.set_exception(_fault(fault)) if fault else answer.set_result(line["reply"])
        elif "cancel" in line:
            task = self.running.pop(line["cancel"], None)
            if task is not None:
                task.cancel()
            self.give_up(line["cancel"])
        elif "ping" in line:
            self.send({"pong": line["ping"]})

    def start(self, line: dict[str, Any]) -> None:
        past = [(one["from"], one["payload"]) for one in line.get("history", [])]
        optional = [line.get(key) for key in ("in_reply_to", "index", "total", "remaining", "deadline")]
        _current.set(Message(line["id"], line["type"], line["from"], line["thread"], *optional, past))  # type: ignore[arg-type]
        function, takes = _functions.get(line["type"], (None, None))
        self.running[line["id"]] = None
        if function is None:
            self.answer(line["id"], {"error": f"no function listens to {line['type']}"})
        elif inspect.iscoroutinefunction(function):
            self.running[line["id"]] = self.loop.create_task(self.run_async(function, takes, line))
        else:
            self.threads.submit(contextvars.copy_context().run, self.run_plain, function, takes, line)

    async def run_async(self, function: Callable[..., Awaitable[Any]], takes: type | None, line: dict[str, Any]) -> None:
        try:
            answer = _answer(await function(decode(takes, line["payload"]) if takes else line["payload"]))
        except Exception as error:
            answer = _error(error)
        self.answer(line["id"], answer)

    def run_plain(self, function: Callable[..., Any], takes: type | None, line: dict[str, Any]) -> None:
        try:
            answer = _answer(function(decode(takes, line["payload"]) if takes else line["payload"]))
        except BaseException as error:  # a `sys.exit` of one function ends no others
            answer = _error(error)
        self.loop.call_soon_threadsafe(self.answer, line["id"], answer)

    def answer(self, id: str, answer: dict[str, Any]) -> None:
        # A message that is not there was cancelled meanwhile.
        if id in self.running:
            del self.running[id]
            self.give_up(id)
            self.send({"id": id, **answer})

    def give_up(self, id: str) -> None:
        for answer in self.calls.pop(id, {}).values():
            answer.cancel()

    async def call(self, id: str, xml: str, to: str | None) -> Any:
        if id not in self.running:
            raise asyncio.CancelledError
        label = str(next(self.labels))
        answer = self.calls.setdefault(id, {})[label] = self.loop.create_future()
        self.send({"id": id, "call": xml, "as": label} | ({"to": to} if to else {}))
        xml = await answer
        cls = _payloads.get(ET.fromstring(xml).tag)
        return decode(cls, xml) if cls else xml

    def send(self, line: dict[str, Any]) -> None:
        if not self.out:
            self.loop.call_soon(self.flush)
        # A lone surrogate is no text: the pump would end the process.
        self.out.append(json.dumps(line, ensure_ascii=False).encode(errors="replace") + b"\n")

    def flush(self) -> None:
        data, self.out = memoryview(b"".join(self.out)), []
        while data:
            data = data[os.write(self.writer, data) :]


def _fault(line: dict[str, Any]) -> Fault:
    return Fault(line["code"], line["message"], line["retryable"], line.get("rule"), line.get("example"))


def _answer(said: Any) -> dict[str, Any]:
    said = [] if said is None else said if isinstance(said, (list, tuple)) else [said]
    return {"payloads": [encode(one) for one in said]}


def _error(error: BaseException) -> dict[str, Any]:
    if not isinstance(error, Fault):
        traceback.print_exception(error)
    return {"error": str(error) or type(error).__name__}


_worker = _Worker()


def run(threads: int = 64) -> None:
    """Handles messages until the organism ends. At most `threads` plain functions run at once."""
    if "SYSTOLE_WORKER" not in os.environ:
        sys.exit("systole runs this program, by worker: in an organism.yaml")
    try:
        asyncio.run(_worker.serve(threads))
    finally:
        # No caller waits for functions that still run.
        sys.stdout.flush()
        os._exit(0)
