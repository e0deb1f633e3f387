"""Contracts as JSON Schema, made of the payloads of a program (docs/json.md): `python3 -m systole_sdk schema agent.py`."""
from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import typing
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from ._xml import _Field, _fields, _text, payloads, split_name

_FORMATS: list[tuple[type, str]] = [
    (datetime, "date-time"), (date, "date"), (time, "time"), (UUID, "uuid"), (Decimal, "decimal"), (str, ""),
]


def document() -> dict[str, Any]:
    """The JSON Schema document of all payloads, whose namespace is its `$id`."""
    namespaces = {split_name(name)[0] for name in payloads}
    if not payloads:
        raise ValueError("the program has no payloads: write @payload above a dataclass")
    if len(namespaces) > 1:
        raise ValueError(f"a document has payloads of one namespace, and these are of several: {', '.join(sorted(namespaces))}")
    (namespace,) = namespaces
    whole: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    if namespace:
        whole["$id"] = namespace
    return whole | {"$defs": {split_name(name)[1]: _object(cls, ()) for name, cls in payloads.items()}}


def _object(cls: Any, above: tuple[Any, ...]) -> dict[str, Any]:
    if cls in above:
        raise TypeError(f"{cls.__name__} is in itself: write its schema by hand, with a $ref")
    fields = _fields(cls).values()
    doc = {"description": inspect.cleandoc(cls.__doc__)} if cls.__doc__ and not cls.__doc__.startswith(f"{cls.__name__}(") else {}
    if [field.name for field in fields] == ["$text"]:
        (field,) = fields
        return doc | _item(field, above)
    properties, required = {}, []
    declared = {field.name: field for field in dataclasses.fields(cls)}
    for field in fields:
        if field.name.startswith("$"):
            raise TypeError(f"{field.where}: {field.name} has no JSON Schema: write a field with a name, or an .xsd file")
        schema = _item(field, above + (cls,))
        default = declared[field.key].default
        if field.many:
            schema = {"type": "array", "items": schema}
        elif default is dataclasses.MISSING and declared[field.key].default_factory is dataclasses.MISSING and not field.absent:
            required.append(field.name)
        elif default is not dataclasses.MISSING and default is not None:
            schema |= {"default": _plain(default)}
        properties[field.name] = schema
    whole = doc | {"type": "object", "properties": properties}
    return whole | ({"required": required} if required else {}) | {"additionalProperties": False}


def _item(field: _Field, above: tuple[Any, ...]) -> dict[str, Any]:
    hint = field.item
    if dataclasses.is_dataclass(hint):
        return _object(hint, above)
    values = list(typing.get_args(hint)) if typing.get_origin(hint) is typing.Literal else []
    if isinstance(hint, enum.EnumMeta):
        values = [one.value for one in typing.cast(Any, hint)]
    if values:
        plain = [_plain(one) for one in values]
        return {"enum": plain if len({type(one) for one in plain}) == 1 else [str(_text(one)) for one in values]}
    for cls, name in ((bool, "boolean"), (int, "integer"), (float, "number")):
        if issubclass(hint, cls):
            return {"type": name}
    return {"type": "string"} | next({"format": name} if name else {} for cls, name in _FORMATS if issubclass(hint, cls))


def _plain(value: Any) -> Any:
    """A value as JSON."""
    value = value.value if isinstance(value, enum.Enum) else value
    return value if isinstance(value, (bool, int, float, str)) else _text(value)


def written() -> str:
    return json.dumps(document(), indent=2, ensure_ascii=False)
