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
import sys

# Before the modules whose syntax is of that version: an older one has to say what it lacks.
if sys.version_info < (3, 10):
    raise ImportError("systole_sdk needs Python 3.10 or later, and this is %d.%d (%s)" % (*sys.version_info[:2], sys.executable))

from ._listeners import call, draft, listener, message, progress, record, run, usage
from ._process import Fault, Message
from ._xml import decode, encode, named, payload

__all__ = [
    "Fault", "Message", "call", "decode", "draft", "encode", "listener", "message", "named", "payload", "progress", "record",
    "run", "usage",
]
