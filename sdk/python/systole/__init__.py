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
import collections
import contextlib
import contextvars
import dataclasses
import enum
import functools
import inspect
import itertools
import json
import math
import numbers
import os
import re
import sys
import traceback
import types
import typing
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import date, time
from decimal import Decimal
from typing import Any
from xml.sax.saxutils import escape

__all__ = [
    "Fault", "Message", "call", "decode", "encode", "listener", "message", "named", "payload", "progress", "record", "run",
]

_FAULT = ("code", "message", "retryable", "rule", "example")
_SPACE = {"\r": "&#xD;"}
_QUOTED = {"\r": "&#xD;", "\n": "&#xA;", "\t": "&#x9;", '"': "&quot;"}
_payloads: dict[str, type] = {}
_functions: dict[str, tuple[Callable[..., Any], type | None]] = {}
_Recorded = dict[str, collections.deque[Any]]
_current: contextvars.ContextVar[tuple[Message, _Recorded]] = contextvars.ContextVar("message")


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
    history: list[tuple[str, str]]


def message() -> Message:
    """The message that the calling function handles."""
    return _handled()[0]


def _handled() -> tuple[Message, _Recorded]:
    try:
        return _current.get()
    except LookupError:
        raise RuntimeError(
            "no message is handled here; a thread that a function starts has its message by "
            "contextvars.copy_context().run, as in pool.submit(contextvars.copy_context().run, work)"
        ) from None


def payload(name: str) -> Callable[[type], type]:
    """Makes a dataclass a payload, by its namespace and the class's name in kebab case, or by `{namespace}name`."""

    _string("the name of a payload", name)

    def mark(cls: type) -> type:
        if "__dataclass_fields__" not in vars(cls):
            raise TypeError(f"{cls.__name__} is no dataclass: write @dataclass between @payload and the class")
        cls.__payload__ = name if name.startswith("{") else f"{{{name}}}{_kebab(cls.__name__)}"  # type: ignore[attr-defined]
        _payloads[cls.__payload__] = cls  # type: ignore[attr-defined]
        return cls

    return mark


def _kebab(name: str) -> str:
    """The name of a class in kebab case, as of a Rust type: `TaskDone` is `task-done`, `HTTPRequest` `http-request`."""
    out = ""
    for before, letter, after in zip(" " + name, name, name[1:] + " "):
        starts = before.islower() or before in "0123456789" or before.isupper() and after.islower()
        if (letter == "_" or letter.isupper() and starts) and not out.endswith("-"):
            out += "-"
        out += letter.lower().strip("_")
    return out.strip("-")


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
    hint = _bare(typing.get_type_hints(function).get(first or "", str))
    takes = hint if dataclasses.is_dataclass(hint) else None
    if takes is None and hint not in (str, Any):
        raise TypeError(f"{function.__name__}: {first} is {_said(hint)}: write a dataclass that is a payload, or str for the XML")
    name = name or getattr(takes, "__payload__", None)
    if name is None:
        raise TypeError(f"{function.__name__}: name its payload, @listener('{{namespace}}name'), or annotate a dataclass")
    if name in _functions:
        raise TypeError(f"{function.__name__}: {name} has a listener, {_functions[name][0].__name__}: write one function for it")
    _functions[name] = (function, takes)  # type: ignore[assignment]
    return function


def encode(value: Any) -> str:
    """Encodes a payload as XML; a text is XML already."""
    if isinstance(value, str):
        return value
    if not hasattr(type(value), "__payload__"):
        raise TypeError(f"{type(value).__name__} is no payload: return a dataclass that is one, or XML as a str")
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
    if isinstance(value, enum.Enum):
        return "None" if value.value is None else _text(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, uuid.UUID, numbers.Integral)):
        return str(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} is no decimal in XML")
        return format(value, "f")
    if isinstance(value, float):
        return str(value) if math.isfinite(value) else "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"
    raise TypeError(f"a value of the type {type(value).__name__} has no text in XML")


def decode(cls: type, xml: str | ET.Element) -> Any:
    """Decodes the XML of a payload as a dataclass. A field that is absent has the default of the dataclass, or None."""
    element = ET.fromstring(xml) if isinstance(xml, str) else xml
    namespace = "".join(element.tag.rpartition("}")[:2])
    values: dict[str, Any] = {}
    for field in _fields(cls):
        found: list[Any] = [element]
        if field.name.startswith("@"):
            found = [text for text in [element.get(field.name[1:])] if text is not None]
        elif field.name != "$text":
            found = element.findall(namespace + field.name)
        if len(found) > 1 and not field.many:
            raise ValueError(f"{field.where}: there are {len(found)} elements: write list[{_said(field.item)}]")
        if found:
            values[field.key] = field.many(map(field.read, found)) if field.many else field.read(found[0])
        elif field.absent:
            values[field.key] = field.absent()
    return cls(**values)


class _Field(typing.NamedTuple):
    """The reading of a field: `read` makes an item of an element or an attribute, `many` a list or a tuple of items. `absent`
    makes the value of a field without items; where it is None, that is left to the dataclass.
    """

    where: str
    key: str
    name: str
    item: Any
    read: Callable[[Any], Any]
    many: Callable[..., Any] | None
    absent: Callable[[], Any] | None


@functools.cache
def _fields(cls: type) -> list[_Field]:
    try:
        hints = typing.get_type_hints(cls)
    except NameError as error:
        raise TypeError(f"{cls.__name__}: {error}: declare the types of its fields at the top of the module") from None
    return [_field(f"{cls.__name__}.{field.name}", field, hints[field.name]) for field in dataclasses.fields(cls) if field.init]


def _field(where: str, field: dataclasses.Field[Any], hint: Any) -> _Field:
    name = field.metadata.get("xml", field.name)
    item, optional = _optional(_bare(hint))
    args, many = typing.get_args(item), None
    if typing.get_origin(item) is list or typing.get_origin(item) is tuple and args[1:] == (...,):
        many, item = typing.get_origin(item), _bare(args[0])
    try:
        read = _reader(where, item)
    except TypeError as error:
        raise TypeError(f"{where}: {_said(hint)} has no mapping to XML: {error}") from None
    if name.startswith(("@", "$")) and (many or dataclasses.is_dataclass(item)):
        raise TypeError(f"{where}: {_said(hint)} is elements, and {name} is text: write a type that is text, or another name")
    is_left = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    return _Field(where, field.name, name, item, read, many, None if is_left else (lambda: None) if optional else many)


def _bare(hint: Any) -> Any:
    """The type that a `NewType` or a statement `type` names."""
    while inner := getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None):
        hint = inner
    return hint


def _optional(hint: Any) -> tuple[Any, bool]:
    """A type without None, and whether it had it."""
    args = typing.get_args(hint)
    some = tuple(one for one in args if one is not None and one is not type(None))
    if typing.get_origin(hint) is typing.Literal:
        return typing.Literal[some], some != args
    if typing.get_origin(hint) in (typing.Union, types.UnionType) and len(some) == 1:
        return _bare(some[0]), True
    return hint, False


def _said(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not typing.get_origin(hint) else str(hint).replace("typing.", "")


def _reader(where: str, hint: Any) -> Callable[[Any], Any]:
    if dataclasses.is_dataclass(hint):
        return functools.partial(decode, hint)  # type: ignore[arg-type]
    parse = _parser(hint)

    def read(found: str | ET.Element) -> Any:
        text = found if isinstance(found, str) else "".join([found.text or "", *(child.tail or "" for child in found)])
        try:
            return parse(text)
        except (ArithmeticError, LookupError, ValueError) as error:
            raise ValueError(f"{where}: {text!r} is no {_said(hint)}") from error

    return read


def _parser(hint: Any) -> Callable[[str], Any]:
    """The function that parses a text as a type: a value of the wrong type is an error, never a guess."""
    if typing.get_origin(hint) is typing.Literal:
        return _choice(typing.get_args(hint))
    if isinstance(hint, type) and not typing.get_origin(hint):
        if isinstance(hint, enum.EnumMeta):
            return _choice(list(hint), lambda text: hint(int(text) if issubclass(hint, enum.Flag) else text))
        if hint is bool:
            return lambda text: {"true": True, "1": True, "false": False, "0": False}[text.strip()]
        if issubclass(hint, (date, time)):
            return lambda text: hint.fromisoformat(_iso(text))
        if issubclass(hint, (str, int, float, Decimal, uuid.UUID)):
            return hint
    raise TypeError(
        "write str, int, float, bool, Decimal, date, datetime, time, UUID, an Enum, a Literal or a dataclass, "
        "or list[X], tuple[X, ...] or X | None of one of these"
    )


def _choice(values: typing.Iterable[Any], other: Callable[[str], Any] | None = None) -> Callable[[str], Any]:
    """Parses the text of one of these values, with white space around it unless that is another one."""
    texts = {spell(_text(one)): one for spell in (str.strip, str) for one in values}

    def parse(text: str) -> Any:
        known = text if text in texts else text.strip()
        return other(text) if other and known not in texts else texts[known]

    return parse


def _iso(text: str) -> str:
    """A time as Python 3.10 reads it: no `Z`, and 3 or 6 digits of a second."""
    text = re.sub(r"\.(\d{1,6})\d*", lambda found: "." + found[1].ljust(6, "0"), text.strip())
    return text[:-1] + "+00:00" if text.endswith("Z") else text


def _check() -> None:
    """Raises a TypeError for a payload with a field that has no mapping."""
    todo: list[Any] = [*_payloads.values(), *(takes for _, takes in _functions.values() if takes)]
    known: set[Any] = set()
    while todo:
        if (cls := todo.pop()) not in known:
            known.add(cls)
            todo += [field.item for field in _fields(cls) if dataclasses.is_dataclass(field.item)]


def call(request: Any, to: str | None = None) -> Any:
    """Calls another listener and returns the reply: awaited in an async function, at once in a plain one. Raises a `Fault`.

    A payload that is a dataclass of this program is decoded, any other is a text with its XML.
    """
    return _answered(_worker.call(message().id, encode(request), None if to is None else _string("to", to)))


def _answered(answer: Coroutine[Any, Any, Any]) -> Any:
    """The answer of the worker's loop: awaited in it and in another loop of a plain function, at once without a loop."""
    loop = asyncio._get_running_loop()
    if loop is _worker.loop:
        return answer
    return _elsewhere(answer) if loop else asyncio.run_coroutine_threadsafe(answer, _worker.loop).result()


async def _elsewhere(answer: Coroutine[Any, Any, Any]) -> Any:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(answer, _worker.loop))


def record(name: str, learn: Callable[[], Any]) -> Any:
    """Learns a value that can't be learned twice alike, records it as JSON and returns it: awaited in an async function, at once
    in a plain one. `learn` is a plain function; in an async function it may be one, too.

    The value is durable when it is returned. A function that runs again, after the end of its process or of the organism, gets
    the recorded value of that name, and `learn` isn't called. Equal names get theirs in the order in which they were recorded: so
    values that are learned side by side need different names.
    """
    name = _as_json(_string("the name", name))
    of, recorded = _handled()
    if asyncio._get_running_loop():
        return _record(of.id, name, learn, recorded[name])
    if recorded[name]:
        return recorded[name].popleft()
    value = _as_json(learn())
    _answered(_worker.ask(of.id, {"record": name, "value": value}))
    return value


async def _record(id: str, name: str, learn: Callable[[], Any], known: collections.deque[Any]) -> Any:
    if known:
        return known.popleft()
    value = learn()
    value = _as_json(await value if inspect.isawaitable(value) else value)
    await _answered(_worker.ask(id, {"record": name, "value": value}))
    return value


def _as_json(value: Any) -> Any:
    """The value as a run after this one will get it."""
    value = json.loads(_json(value))
    if _depth(value) > 100:
        raise ValueError("a recorded value is nested deeper than 100")
    return value


def _json(value: Any) -> bytes:
    # A lone surrogate is no text: the pump would end the process.
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode(errors="replace")


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, (dict, list)) else 0


def _string(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} has to be a str, not {type(value).__name__}")
    return value


def progress(text: str) -> None:
    """Tells operators how far the function is: the event `progress`, with 4096 bytes of the text."""
    _worker.loop.call_soon_threadsafe(_worker.progress, message().id, _string("progress", text))


class _Worker:
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
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
        self.writer = int(os.environ["SYSTOLE_WORKER"])
        os.set_inheritable(self.writer, False)
        # A script that reads its standard input must not read messages of the pump.
        self.reader, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        typing.cast(Any, sys.stdout).reconfigure(line_buffering=True)
        self.loop.add_reader(self.reader, self.read)
        while True:
            with contextlib.suppress(SystemExit, KeyboardInterrupt):  # one in a task: whoever awaits it gets it
                self.loop.run_forever()

    def read(self) -> None:
        chunk = os.read(self.reader, 1 << 18)
        if not chunk:
            try:
                self.flush()
                sys.stdout.flush()
            finally:  # No caller waits for functions that still run.
                os._exit(0)
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
        past = [(one["from"], one["payload"]) for one in line.get("history", [])]
        optional = [line.get(key) for key in ("in_reply_to", "index", "total", "remaining", "deadline")]
        recorded: _Recorded = collections.defaultdict(collections.deque)
        for one in line.get("recorded", []):
            recorded[one["name"]].append(one["value"])
        head = Message(line["id"], line["type"], line["from"], line["thread"], *optional, past)  # type: ignore
        _current.set((head, recorded))
        function, takes = _functions.get(line["type"], (None, None))
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
            answer = _answer(await function(decode(takes, line["payload"]) if takes else line["payload"]))
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and line["id"] not in self.running:
                raise  # The pump cancelled it.
            answer = _error(line["id"], error)
        self.answer(line["id"], answer)

    def run_plain(self, function: Callable[..., Any], takes: type | None, line: dict[str, Any]) -> None:
        answer: dict[str, Any] = {}
        try:
            if line["id"] in self.running:  # else it was cancelled, or answered: the pool keeps work that it found no thread for
                answer = _answer(function(decode(takes, line["payload"]) if takes else line["payload"]))
        except BaseException as error:  # a `sys.exit` of one function ends no others
            if line["id"] in self.running:  # else it was cancelled: what its function raises is no failure
                answer = _error(line["id"], error)
        self.loop.call_soon_threadsafe(self.end_plain, line["id"], answer)

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
            self.send({"id": id, **answer})

    def give_up(self, id: str) -> None:
        for answer in self.calls.pop(id, {}).values():
            answer.cancel()
        self.resume(id)

    async def call(self, id: str, xml: str, to: str | None) -> Any:
        xml = await self.ask(id, {"call": xml} | ({"to": to} if to else {}))
        cls = _payloads.get(ET.fromstring(xml).tag)
        return decode(cls, xml) if cls else xml

    async def ask(self, id: str, line: dict[str, Any]) -> Any:
        """Sends a line about a message, and awaits its answer."""
        if id not in self.running:
            raise asyncio.CancelledError
        if id in self.computing:
            self.computing.discard(id)
            self.asking.add(id)
            self.begin()
        label = str(next(self.labels))
        answer = self.calls.setdefault(id, {})[label] = self.loop.create_future()
        self.send({"id": id, **line, "as": label})
        return await answer

    def progress(self, id: str, text: str) -> None:
        if id in self.running:
            self.send({"id": id, "progress": text})

    def send(self, line: dict[str, Any]) -> None:
        if not self.out:
            self.loop.call_soon(self.flush)
        self.out.append(_json(line) + b"\n")

    def flush(self) -> None:
        data, self.out = memoryview(b"".join(self.out)), []
        while data:
            data = data[os.write(self.writer, data) :]


def _answer(said: Any) -> dict[str, Any]:
    said = [] if said is None else said if isinstance(said, (list, tuple)) else [said]
    return {"payloads": [encode(one) for one in said]}


def _error(id: str, error: BaseException) -> dict[str, Any]:
    text = type(error).__name__
    with contextlib.suppress(BaseException):  # It may be one that has no text, or can't be printed.
        text = str(error) or text
        if not isinstance(error, Fault):
            traceback.print_exception(error)
    # The pump passes on the fault of that call: its code, and whether a retry may help.
    of, label = isinstance(error, Fault) and error._call or (None, None)
    return {"error": text} | ({"as": label} if of == id else {})


_worker = _Worker()


def run(threads: int = 64) -> None:
    """Handles messages until the organism ends. At most `threads` plain functions compute at once; those that wait for the
    answer to a `call`, or for a `record`, don't count.
    """
    if threads < 1:
        raise ValueError(f"threads has to be 1 or more, not {threads}")
    _check()
    if "SYSTOLE_WORKER" not in os.environ:
        sys.exit("systole runs this program, by worker: in an organism.yaml")
    _worker.serve(threads)
