"""Payloads as XML: dataclasses, mapped as the types of Rust are (docs/types.md)."""
from __future__ import annotations

import dataclasses
import enum
import functools
import math
import numbers
import re
import types
import typing
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from xml.sax.saxutils import escape

# White space in XML: Python strips more.
_WHITE = " \t\r\n"
_SPACE = {"\r": "&#xD;"}
_QUOTED = {"\r": "&#xD;", "\n": "&#xA;", "\t": "&#x9;", '"': "&quot;"}

# Characters of a name without a colon (Namespaces in XML 1.0, NCName), at its beginning and behind it.
_FIRST = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff"
    "\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = re.compile(f"[{_FIRST}][-.0-9\u00b7\u0300-\u036f\u203f\u2040{_FIRST}]*")
_NAMESPACE = re.compile("[^\u0000-\u0020{}<>\ud800-\udfff\ufffe\uffff]*")
_RESERVED = ("http://www.w3.org/XML/1998/namespace", "http://www.w3.org/2000/xmlns/")

# The payloads of this program, by name.
payloads: dict[str, type] = {}


def payload(name: str) -> Callable[[type], type]:
    """Makes a dataclass a payload, by its namespace and the class's name in kebab case, or by `{namespace}name`."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a payload has to be a str, not {type(name).__name__}")

    def mark(cls: type) -> type:
        if "__dataclass_fields__" not in vars(cls):
            raise TypeError(f"{cls.__name__} is no dataclass: write @dataclass between @payload and the class")
        namespace, _, local = name[1:].rpartition("}") if name.startswith("{") else (name, "", _kebab(cls.__name__))
        if not _NAMESPACE.fullmatch(namespace) or namespace in _RESERVED:
            raise TypeError(f"{cls.__name__}: {namespace!r} is no namespace: write a URI, such as urn:example:orders:v1")
        _check_name(cls.__name__, local)
        for field in dataclasses.fields(cls):
            _check_name(f"{cls.__name__}.{field.name}", field.metadata.get("xml", field.name))
        qname = f"{{{namespace}}}{local}"
        if (other := payloads.setdefault(qname, cls)) is not cls:
            raise TypeError(f"{cls.__name__}: {qname} is {said(other)} of {other.__module__}, too: write another name")
        cls.__payload__ = qname  # type: ignore[attr-defined]
        return cls

    return mark


def _check_name(where: str, name: str) -> None:
    """Raises a TypeError for a name of an element or an attribute (`@name`) that XML doesn't have."""
    if name not in ("$text", "$value") and (not _NAME.fullmatch(name.removeprefix("@")) or name == "@xmlns"):
        what = "attribute" if name.startswith("@") else "element"
        raise TypeError(f"{where}: {name.removeprefix('@')!r} is no name of an {what} in XML: write letters, digits, - and _")


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
    """A field with another name in the XML: `"other"`, `"@attribute"`, `"$text"` for the text of the element itself, or
    `"$value"` for a choice: a field of the type `A | B` or `list[A | B]` is elements with the names of these dataclasses.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a field has to be a str, not {type(name).__name__}")
    _check_name("named()", name)
    return dataclasses.field(metadata={"xml": name}, **options)


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
    cls: type = type(value)
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
            names = _fields(cls)[field.name].names if as_name == "$value" else {}
            for item in one if isinstance(one, (list, tuple)) else [one]:
                content += _element(_chosen(names, item) if names else as_name, item)
    return f"<{name}{attributes}>{content}</{name}>"


def _chosen(names: dict[str, type], item: Any) -> str:
    for name, cls in names.items():
        if cls is type(item):
            return name
    raise TypeError(f"{said(type(item))} is none of the choices: write {' or '.join(map(said, names.values()))}")


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
    for field in (field for field in _fields(cls).values() if field.is_read):
        found: list[Any] = [element]
        if field.name.startswith("@"):
            found = [text for text in [element.get(field.name[1:])] if text is not None]
        elif field.names:
            tags = {namespace + name for name in field.names}
            found = [child for child in element if child.tag in tags]
        elif field.name != "$text":
            found = element.findall(namespace + field.name)
        if len(found) > 1 and not field.many:
            raise ValueError(f"{field.where}: there are {len(found)} elements: write list[{said(field.item)}]")
        if found:
            values[field.key] = field.many(map(field.read, found)) if field.many else field.read(found[0])
        elif field.absent:
            values[field.key] = field.absent()
    return cls(**values)


def check(classes: Iterable[Any]) -> None:
    """Raises a TypeError for a payload, or for another of these classes, with a field that has no mapping."""
    todo: list[Any] = [*payloads.values(), *classes]
    known: set[Any] = set()
    while todo:
        if (cls := todo.pop()) not in known:
            known.add(cls)
            for field in _fields(cls).values():
                todo += field.names.values() if field.names else [field.item] * dataclasses.is_dataclass(field.item)


class _Field(typing.NamedTuple):
    """The reading of a field: `read` makes an item of an element or an attribute, `many` a list or a tuple of items. `absent`
    makes the value of a field without items; where it is None, that is left to the dataclass. `names` has the dataclasses of a
    choice by the names of their elements. A field that the dataclass sets itself (`init=False`) is written, and not read.
    """

    where: str
    key: str
    name: str
    names: dict[str, type]
    item: Any
    read: Callable[[Any], Any]
    many: Callable[..., Any] | None
    absent: Callable[[], Any] | None
    is_read: bool


@functools.cache
def _fields(cls: type) -> dict[str, _Field]:
    try:
        hints = typing.get_type_hints(cls)
    except NameError as error:
        raise TypeError(f"{cls.__name__}: {error}: declare the types of its fields at the top of the module") from None
    fields = [_field(f"{cls.__name__}.{field.name}", field, hints[field.name]) for field in dataclasses.fields(cls)]
    known: dict[str, _Field] = {}
    for field, name in ((field, name) for field in fields for name in field.names or [field.name]):
        if (other := known.setdefault(name, field)) is not field:
            raise TypeError(f"{field.where}: {other.where} is {name} in the XML, too: write another name")
    return {field.key: field for field in fields}


def _field(where: str, field: dataclasses.Field[Any], hint: Any) -> _Field:
    name = field.metadata.get("xml", field.name)
    _check_name(where, name)
    item, optional = _optional(bare(hint))
    args, many = typing.get_args(item), None
    if typing.get_origin(item) is list or typing.get_origin(item) is tuple and args[1:] == (...,):
        many, item = typing.get_origin(item), bare(args[0])
    names = _names(where, item) if name == "$value" else {}
    try:
        read = functools.partial(_read_choice, names) if names else _reader(where, item)
    except TypeError as error:
        raise TypeError(f"{where}: {said(hint)} has no mapping to XML: {error}") from None
    if not names and name.startswith(("@", "$")) and (many or dataclasses.is_dataclass(item)):
        raise TypeError(f"{where}: {said(hint)} is elements, and {name} is text: write a type that is text, or another name")
    is_left = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    absent = None if is_left else (lambda: None) if optional else many
    return _Field(where, field.name, name, names, item, read, many, absent, field.init)


def _names(where: str, hint: Any) -> dict[str, type]:
    """The dataclasses of a choice, by the names of their payloads or else of the classes."""
    names: dict[str, type] = {}
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    for cls in map(bare, typing.get_args(hint) if is_union else [hint]):
        if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
            raise TypeError(f"{where}: {said(cls)} is no choice: write dataclasses, A | B, A | B | None or list[A | B]")
        name = vars(cls).get("__payload__", "").rpartition("}")[2] or _kebab(cls.__name__)
        _check_name(where, name)
        if name in names:
            raise TypeError(f"{where}: {said(cls)} and {said(names[name])} are both {name} in the XML: rename one")
        names[name] = cls
    return names


def _read_choice(names: dict[str, type], element: ET.Element) -> Any:
    return decode(names[element.tag.rpartition("}")[2]], element)


def bare(hint: Any) -> Any:
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
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return bare(typing.Union[some]), some != args
    return hint, False


def said(hint: Any) -> str:
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
            raise ValueError(f"{where}: {text!r} is no {said(hint)}") from error

    return read


def _parser(hint: Any) -> Callable[[str], Any]:
    """The function that parses a text as a type: a value of the wrong type is an error, never a guess."""
    if typing.get_origin(hint) is typing.Literal:
        return _one_of(typing.get_args(hint))
    if isinstance(hint, type) and not typing.get_origin(hint):
        if isinstance(hint, enum.EnumMeta):
            return _one_of(list(hint), lambda text: hint(int(_lexical(int, text)) if issubclass(hint, enum.Flag) else text))
        if hint is bool:
            return lambda text: _lexical(bool, text) in ("true", "1")
        if issubclass(hint, (date, time)):
            return lambda text: hint.fromisoformat(_iso(_lexical(hint, text)))
        if issubclass(hint, (int, float, Decimal, uuid.UUID)):
            return lambda text: hint(_lexical(hint, text))
        if issubclass(hint, str):
            return hint
    raise TypeError(
        "write str, int, float, bool, Decimal, date, datetime, time, UUID, an Enum, a Literal or a dataclass, "
        "or list[X], tuple[X, ...] or X | None of one of these"
    )


_DATE, _CLOCK = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})?"
_DECIMAL = "[-+]?([0-9]+([.][0-9]*)?|[.][0-9]+)"
# The lexical forms of XML Schema, of a type or of one that it derives from.
_LEXICAL: list[tuple[type, str]] = [
    (bool, "true|false|1|0"),
    (int, "[-+]?[0-9]+"),
    (float, f"{_DECIMAL}([eE][-+]?[0-9]+)?|[-+]?INF|NaN"),
    (Decimal, _DECIMAL),
    (datetime, f"{_DATE}T{_CLOCK}"),
    (date, _DATE),
    (time, _CLOCK),
    (uuid.UUID, "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
]


def _lexical(hint: type, text: str) -> str:
    """A text without the white space around it, in the lexical form of a type: Python's own parsers take others, too."""
    text = text.strip(_WHITE)
    pattern = next(pattern for cls, pattern in _LEXICAL if issubclass(hint, cls))
    if not re.fullmatch(pattern, text):
        raise ValueError(text)
    return text


def _one_of(values: Iterable[Any], other: Callable[[str], Any] | None = None) -> Callable[[str], Any]:
    """Parses the text of one of these values, with white space around it unless that is another one."""
    texts = {spell(_text(one)): one for spell in (lambda text: text.strip(_WHITE), str) for one in values}

    def parse(text: str) -> Any:
        known = text if text in texts else text.strip(_WHITE)
        return other(text) if other and known not in texts else texts[known]

    return parse


def _iso(text: str) -> str:
    """A time as Python 3.10 reads it: no `Z`, and 3 or 6 digits of a second."""
    text = re.sub(r"\.(\d{1,6})\d*", lambda found: "." + found[1].ljust(6, "0"), text)
    return text[:-1] + "+00:00" if text.endswith("Z") else text
