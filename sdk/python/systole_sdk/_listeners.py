"""Functions that a program of listeners calls: `listener`, `call`, `record` and the like."""
from __future__ import annotations

import asyncio
import collections
import dataclasses
import inspect
import json
import os
import sys
import typing
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, overload

from ._process import Message, Recorded, Worker, current, legible
from ._xml import bare, check, limit_text, said

_worker = Worker()
_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def listener(what: str) -> Callable[[_Function], _Function]: ...
@overload
def listener(what: _Function) -> _Function: ...
def listener(what: Any) -> Any:
    """Registers a function for the payloads of its first parameter's type, or for a name: `@listener("{namespace}name")`, or
    `@listener("name")` in whatever namespace.
    """
    if isinstance(what, str):
        return lambda function: _listen(function, what)
    return _listen(what, None)


def _listen(function: Callable[..., Any], name: str | None) -> Callable[..., Any]:
    first = next(iter(inspect.signature(function).parameters), None)
    hint = bare(typing.get_type_hints(function).get(first or "", Any))
    hint = typing.get_origin(hint) if typing.get_origin(hint) is dict else hint
    if not dataclasses.is_dataclass(hint) and hint not in (str, dict, Any):
        what = "a dataclass that is a payload, or str for the XML, or dict for the JSON"
        raise TypeError(f"{function.__name__}: {first} is {said(hint)}: write {what}")
    takes = None if hint is Any else hint
    name = name or getattr(takes, "__payload__", None)
    if name is not None and not name.startswith("{"):
        name = "{}" + name
    if name is None:
        raise TypeError(f"{function.__name__}: name its payload, @listener('{{namespace}}name'), or annotate a dataclass")
    if name in _worker.functions:
        other = _worker.functions[name][0].__name__
        raise TypeError(f"{function.__name__}: {name} has a listener, {other}: write one function for it")
    _worker.functions[name] = (function, takes)
    return function


def message() -> Message:
    """The message that the calling function handles."""
    return _handled()[0]


def _handled() -> tuple[Message, Recorded]:
    try:
        return current.get()
    except LookupError:
        raise RuntimeError(
            "no message is handled here; a thread that a function starts has its message by "
            "contextvars.copy_context().run, as in pool.submit(contextvars.copy_context().run, work)"
        ) from None


def call(request: Any, to: str | None = None) -> Any:
    """Calls another listener and returns the reply: awaited in an async function, at once in a plain one. Raises a `Fault`.

    A payload that is a dataclass of this program is decoded, any other is a text with its XML, or a dict with its JSON.
    """
    return _answered(_worker.call(message().id, _worker.encode(request), None if to is None else limit_text("to", _string("to", to))))


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
    name = limit_text("the name", _string("the name", name))
    of, recorded = _handled()
    if asyncio._get_running_loop():
        return _record(of.id, name, learn, recorded[name])
    if recorded[name]:
        return recorded[name].popleft()
    value = _as_json(name, learn())
    _answered(_worker.ask(of.id, {"record": name, "value": value}))
    return value


async def _record(id: str, name: str, learn: Callable[[], Any], known: collections.deque[Any]) -> Any:
    if known:
        return known.popleft()
    value = learn()
    value = _as_json(name, await value if inspect.isawaitable(value) else value)
    await _answered(_worker.ask(id, {"record": name, "value": value}))
    return value


def _as_json(name: str, value: Any) -> Any:
    """The value as a run after this one will get it."""
    value = json.loads(json.dumps(value, allow_nan=False))
    _limit(f"the value of {name}", value, 100)
    return value


def _limit(where: str, value: Any, left: int) -> None:
    """Refuses a value that is nested too deep, and half of a surrogate pair in its texts."""
    if isinstance(value, str):
        limit_text(where, value)
    elif isinstance(value, (dict, list)):
        if not left:
            raise ValueError("a recorded value is nested deeper than 100")
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str):
                limit_text(f"{where}: a key", key)
            _limit(f"{where}[{key!r}]", one, left - 1)


def progress(text: str) -> None:
    """Tells operators how far the function is: the event `progress`, with 4096 bytes of the text."""
    _worker.loop.call_soon_threadsafe(_worker.progress, message().id, _string("progress", text))


def draft(text: str, *, anew: bool = False) -> None:
    """Shows what the function has written so far of its answer: adds text to its draft, which clients read while it grows
    (docs/drafts.md). It has no effect, and is gone when the answer is there. With `anew` the text before is given up.
    """
    id, text = message().id, legible(_string("draft", text))
    if asyncio._get_running_loop() is _worker.loop:
        _worker.draft(id, text, anew)
    else:
        _worker.loop.call_soon_threadsafe(_worker.draft, id, text, anew)


def usage(
    *,
    input: int = 0,
    output: int = 0,
    cached: int = 0,
    written: int = 0,
    cost: float = 0.0,
    model: str | None = None,
    provider: str | None = None,
    seconds: float = 0.0,
) -> None:
    """Reports what a request of the function to a model used: tokens of the request (`input`; `cached` and `written` are parts
    of it) and of the answer, and the cost in the currency of the prices. It is charged to the budget of the thread, and is an
    event `model-answered`. Call it after each request, whatever becomes of its answer.
    """
    used: dict[str, Any] = {}
    for name, tokens in (("input", input), ("output", output), ("cached", cached), ("written", written)):
        if not isinstance(tokens, int) or not 0 <= tokens < 1 << 63:
            raise ValueError(f"{name} has to be a whole number from 0 on, not {tokens!r}")
        used[name] = tokens
    if not 0 <= cost < float("inf") or not 0 <= seconds < 1 << 32:
        raise ValueError(f"cost and seconds have to be numbers from 0 on, not {cost!r} and {seconds!r}")
    names = {name: legible(_string(name, value)[:256])[:256] for name, value in (("model", model), ("provider", provider)) if value is not None}
    used.update(cost=cost, ms=round(seconds * 1000), **names)
    _worker.loop.call_soon_threadsafe(_worker.usage, message().id, used)


def _string(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} has to be a str, not {type(value).__name__}")
    return value


def run(threads: int = 64) -> None:
    """Handles messages until the organism ends. At most `threads` plain functions compute at once; those that wait for the
    answer to a `call`, or for a `record`, don't count.
    """
    if threads < 1:
        raise ValueError(f"threads has to be 1 or more, not {threads}")
    check(takes for _, takes in _worker.functions.values() if dataclasses.is_dataclass(takes))
    if _worker.is_described:
        return
    if "SYSTOLE_WORKER" not in os.environ:
        sys.exit("systole runs this program, by worker: in an organism.yaml")
    _worker.serve(threads)
