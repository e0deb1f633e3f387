"""Payloads as JSON, for listeners with `json: true`: the same dataclasses, by the mapping of docs/json.md."""
from __future__ import annotations

import dataclasses
import enum
import math
import numbers
import typing
from decimal import Decimal
from json import dumps, loads
from typing import Any

from ._xml import _check_class, _chosen, _Field, _fields, _written, said, split_name

# The greatest whole number that each reader of JSON keeps (RFC 8259, section 6).
_MOST = 2**53 - 1


class Number(float):
    """A number with the text that it has in JSON."""

    text: str

    def __new__(cls, text: str) -> Number:
        number = super().__new__(cls, text)
        number.text = text
        return number


def encode(value: Any) -> dict[str, Any]:
    """Encodes a payload as JSON that names it; a dict of one key is such JSON already."""
    if isinstance(value, dict):
        if len(value) != 1 or not isinstance(next(iter(value)), str):
            raise TypeError(f"a payload as JSON is a dict with one key, its name: {{'name': …}}, not one with {len(value)} keys")
        plain: dict[str, Any] = loads(dumps(value, default=_plain, allow_nan=False))
        return plain
    if isinstance(value, str):
        raise TypeError("the listener has `json: true`, and its payloads are no XML: return a dataclass that is a payload, or a dict")
    if not hasattr(type(value), "__payload__"):
        raise TypeError(f"{type(value).__name__} is no payload: return a dataclass that is one, or a dict {{'name': …}}")
    namespace, local = split_name(value.__payload__)
    declared = next(cls for cls in type(value).__mro__ if "__payload__" in vars(cls))
    _check_class(said(type(value)), declared, value)
    return {value.__payload__ if namespace else local: _object(declared, value)}


def _plain(value: Any) -> Any:
    """The JSON of a value in a dict that JSON doesn't know: that of a field with it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _object(type(value), value)
    return value.value if isinstance(value, enum.Enum) else _written("a value", value)


def _object(cls: Any, value: Any) -> Any:
    """The JSON of an element with the fields of a dataclass: its bare text where there is nothing else."""
    fields = _fields(cls).values()
    if [field.name for field in fields] == ["$text"]:
        (field,) = fields
        return "" if (one := getattr(value, field.key)) is None else _scalar(field, one)
    # Elements of a choice that may be repeated have an order, which properties don't keep.
    ordered: list[Any] | None = [] if any(field.names and field.many for field in fields) else None
    out: dict[str, Any] = {} if ordered is None else {"$": ordered}
    for field in fields:
        if (one := getattr(value, field.key)) is None:
            continue
        if field.name.startswith("@"):
            out[field.name] = _scalar(field, one)
        elif field.name == "$text":
            out["$"] = _scalar(field, one)
        else:
            is_many = field.many and isinstance(one, (list, tuple))
            children = [_child(field, item) for item in (one if is_many else [one])]
            if ordered is not None:
                ordered += [{name: child} for name, child in children]
            elif not field.many:
                out.update(children)
            elif children:
                out[field.name] = [child for _, child in children]
    return out


def _child(field: _Field, item: Any) -> tuple[str, Any]:
    if field.names:
        return _chosen(field, item), _object(type(item), item)
    if dataclasses.is_dataclass(field.item):
        _check_class(field.where, field.item, item)
        return field.name, _object(field.item, item)
    return field.name, _scalar(field, item)


def _scalar(field: _Field, value: Any) -> Any:
    """A value as JSON has it without loss, or else its text."""
    if isinstance(value, enum.Enum) and value.value is not None:
        return _scalar(field, value.value)
    if isinstance(value, bool):
        return value
    if isinstance(value, numbers.Integral) and abs(int(value)) <= _MOST:
        return int(value)
    if isinstance(value, float) and not isinstance(value, Decimal) and math.isfinite(value):
        return float(value)
    return _written(field.where, value)


def decode(cls: type, json: dict[str, Any]) -> Any:
    """Decodes the JSON of a payload, `{"name": …}`, as a dataclass."""
    return _decode(cls, next(iter(json.values())))


def _decode(cls: type, found: Any) -> Any:
    attributes, children, text = _parts(found)
    values: dict[str, Any] = {}
    for field in (field for field in _fields(cls).values() if field.is_read):
        if field.name.startswith("@"):
            read = [attributes[field.name]] if field.name in attributes else []
        elif field.name == "$text":
            read = [text]
        else:
            names = field.names or {field.name: field.item}
            read = [(name, one) if field.names else one for name, one in children if name in names]
        if len(read) > 1 and not field.many:
            raise ValueError(f"{field.where}: there are {len(read)} elements: write list[{said(field.item)}]")
        if read:
            items = (_item(field, one) for one in read)
            values[field.key] = field.many(items) if field.many else next(items)
        elif field.absent:
            values[field.key] = field.absent()
    return cls(**values)


def _parts(found: Any) -> tuple[dict[str, Any], list[tuple[str, Any]], Any]:
    """The attributes, the child elements in their order, and the text of an element."""
    attributes: dict[str, Any] = {}
    children: list[tuple[str, Any]] = []
    text: Any = ""
    if not isinstance(found, dict):
        return attributes, children, found
    for key, value in found.items():
        if key.startswith("@"):
            attributes[key] = value
        elif key == "$" and isinstance(value, list):
            children += [(split_name(name)[1], one) for item in value if isinstance(item, dict) for name, one in item.items()]
            text = "".join(item for item in value if isinstance(item, str))
        elif key == "$":
            text = value
        else:
            children += [(split_name(key)[1], one) for one in (value if isinstance(value, list) else [value])]
    return attributes, children, text


def _item(field: _Field, found: Any) -> Any:
    if field.names:
        name, found = found
        return _decode(field.names[name], found)
    if dataclasses.is_dataclass(field.item):
        return _decode(typing.cast(type, field.item), found)
    return field.read(_text(found))


def _text(found: Any) -> str:
    """The text that a value has in XML."""
    if isinstance(found, dict):
        return _text(found.get("$", ""))
    if isinstance(found, list):
        return " ".join(map(_text, found))
    if found is None or isinstance(found, str):
        return found or ""
    if isinstance(found, bool):
        return str(found).lower()
    return getattr(found, "text", None) or str(found)


def declared(json: dict[str, Any], payloads: dict[str, type]) -> type | None:
    """The dataclass of a payload as JSON, among those by name: a local name stands for that of any namespace."""
    name = next(iter(json))
    local = split_name(name)[1]
    if name != local:
        return payloads.get(name) or payloads.get("{}" + local)
    return next((cls for known, cls in payloads.items() if split_name(known)[1] == local), None)
