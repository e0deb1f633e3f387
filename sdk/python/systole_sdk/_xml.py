"""Payloads as XML: dataclasses, mapped as the types of Rust are (docs/types.md)."""
from __future__ import annotations

import dataclasses
import enum
import functools
import math
import numbers
import re
import sys
import types
import typing
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeVar
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
# A character that XML doesn't have.
_NO_CHARACTER = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Half of a surrogate pair, which no text in UTF-8 has.
_LONE = re.compile("[\ud800-\udfff]")
_RESERVED = ("http://www.w3.org/XML/1998/namespace", "http://www.w3.org/2000/xmlns/")

_Class = TypeVar("_Class")

# The payloads of this program, by name.
payloads: dict[str, type] = {}


@typing.overload
def payload(name: str) -> Callable[[type[_Class]], type[_Class]]: ...
@typing.overload
def payload(name: type[_Class]) -> type[_Class]: ...
def payload(name: Any) -> Any:
    """Makes a dataclass a payload, by its namespace and the class's name in kebab case, or by `{namespace}name`.

    Without a namespace, `@payload` or `@payload("{}name")`, it is the payload of that name in whatever namespace.
    """
    if isinstance(name, type):
        return payload("{}" + _kebab(name.__name__))(name)
    if not isinstance(name, str):
        raise TypeError(f"the name of a payload has to be a str, not {type(name).__name__}")

    def mark(cls: type[_Class]) -> type[_Class]:
        if "__dataclass_fields__" not in vars(cls):
            raise TypeError(f"{cls.__name__} is no dataclass: write @dataclass between @payload and the class")
        namespace, local = split_name(name) if name.startswith("{") else (name, _kebab(cls.__name__))
        if not _NAMESPACE.fullmatch(namespace) or namespace in _RESERVED:
            raise TypeError(f"{cls.__name__}: {namespace!r} is no namespace: write a URI, such as urn:example:orders:v1")
        _check_name(cls.__name__, local)
        for field in dataclasses.fields(typing.cast(Any, cls)):
            _name(f"{cls.__name__}.{field.name}", field)
        qname = f"{{{namespace}}}{local}"
        if (own := vars(cls).get("__payload__", qname)) != qname:
            raise TypeError(f"{cls.__name__} is the payload {own}, and can't be {qname}, too: write another class")
        if (other := payloads.setdefault(qname, cls)) is not cls:
            raise TypeError(f"{cls.__name__}: {qname} is {said(other)} of {other.__module__}, too: write another name")
        cls.__payload__ = qname  # type: ignore[attr-defined]
        return cls

    return mark


def split_name(name: str) -> tuple[str, str]:
    """The namespace and the local part of `{namespace}name`."""
    namespace, _, local = name.rpartition("}")
    return namespace[1:], local


def _name(where: str, field: dataclasses.Field[Any]) -> str:
    """The name of a field in the XML, with `@` before that of an attribute."""
    name = field.metadata.get("xml", field.name)
    if not isinstance(name, str):
        raise TypeError(f"{where}: the name in its metadata, xml, has to be a str, not {type(name).__name__}")
    _check_name(where, name)
    return name


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
        return limit_text("the XML", value)
    if not hasattr(type(value), "__payload__"):
        how = "a dict needs `json: true` at the listener" if isinstance(value, dict) else "return a dataclass that is one, or XML as a str"
        raise TypeError(f"{type(value).__name__} is no payload: {how}")
    namespace, local = split_name(value.__payload__)
    declared = next(cls for cls in type(value).__mro__ if "__payload__" in vars(cls))
    _check_class(said(type(value)), declared, value)
    return _element(local, declared, value, f' xmlns="{escape(namespace, _QUOTED)}"' if namespace else "")


def limit_text(where: str, text: str) -> str:
    """Refuses half of a surrogate pair, with its place: it is no character, and no line to the pump can have it."""
    if found := _LONE.search(text):
        line, column = text.count("\n", 0, found.start()) + 1, found.start() - text.rfind("\n", 0, found.start())
        code = f"U+{ord(found[0]):04X} is half of a surrogate pair, and no character"
        raise ValueError(f"{where}: line {line}, column {column}: {code}: remove it, or replace it (encode(errors='replace'))")
    return text


def _element(name: str, cls: Any, value: Any, attributes: str = "") -> str:
    content = ""
    for field in _fields(cls).values():
        one = getattr(value, field.key)
        if one is None:
            continue
        if field.name.startswith("@"):
            attributes += f' {field.name[1:]}="{escape(_written(field.where, one), _QUOTED)}"'
        elif field.name == "$text":
            content += escape(_written(field.where, one), _SPACE)
        else:
            for item in one if field.many and isinstance(one, (list, tuple)) else [one]:
                content += _child(field, item)
    return f"<{name}{attributes}>{content}</{name}>"


def _child(field: _Field, item: Any) -> str:
    if field.names:
        return _element(_chosen(field, item), type(item), item)
    if dataclasses.is_dataclass(field.item):
        _check_class(field.where, field.item, item)
        return _element(field.name, field.item, item)
    return f"<{field.name}>{escape(_written(field.where, item), _SPACE)}</{field.name}>"


def _chosen(field: _Field, item: Any) -> str:
    for name, cls in field.names.items():
        if cls is type(item):
            return name
    choices = " or ".join(map(said, field.names.values()))
    raise TypeError(f"{field.where}: {said(type(item))} is none of the choices: write {choices}")


def _check_class(where: str, cls: Any, value: Any) -> None:
    """Raises a TypeError for a value that would be read as another: of another class, or of one with more fields."""
    if not isinstance(value, cls):
        raise TypeError(f"{where} has to be {said(cls)}, not {said(type(value))}")
    own: Any = type(value)
    if more := [key for key in _fields(own) if key not in _fields(cls)]:
        of = f"{said(own)} has {', '.join(more)}"
        raise TypeError(f"{where}: {of}, which {said(cls)} has not, and would be lost: write {said(cls)}, or a choice, $value")


def _written(where: str, value: Any) -> str:
    """The text of a value of a field, in characters that XML has."""
    try:
        text = _text(value)
    except (TypeError, ValueError) as error:
        raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{where}: {error}") from None
    if found := _NO_CHARACTER.search(text):
        raise ValueError(f"{where}: XML has no character U+{ord(found[0]):04X}: remove it, or write base64")
    return text


def _text(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return "None" if value.value is None else _text(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, uuid.UUID, numbers.Integral)):
        return str(value)
    if isinstance(value, (date, time)):
        if not re.fullmatch(_lexical_form(type(value)), text := value.isoformat()):
            raise ValueError(f"{text} has no form in XML: its zone has to be whole minutes, at most 14:00")
        return text
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
    for key, one in getattr(cls, "__dataclass_fields__").items():
        if one._field_type is dataclasses._FIELD_INITVAR:  # type: ignore[attr-defined]
            raise TypeError(f"{cls.__name__}.{key}: an InitVar is in no XML: write a field, or compute it where it is needed")
    hints = _hints(cls)
    fields = [_field(f"{cls.__name__}.{field.name}", field, hints[field.name]) for field in dataclasses.fields(cls)]
    known: dict[str, _Field] = {}
    for field, name in ((field, name) for field in fields for name in field.names or [field.name]):
        if (other := known.setdefault(name, field)) is not field:
            raise TypeError(f"{field.where}: {other.where} is {name} in the XML, too: write another name")
    return {field.key: field for field in fields}


def _hints(cls: type) -> dict[str, Any]:
    """The types of the fields of a dataclass. Those that are written as a text may name anything."""
    try:
        return typing.get_type_hints(cls)
    except Exception as why:
        for field in dataclasses.fields(cls):
            owner = [base for base in cls.__mro__ if vars(base).get("__dataclass_fields__", {}).get(field.name) is field][-1]
            alone = types.SimpleNamespace(__annotations__={field.name: field.type})
            try:
                typing.get_type_hints(alone, vars(sys.modules[owner.__module__]), dict(vars(owner)))
            except Exception as error:
                where = f"{cls.__name__}.{field.name}"
                raise TypeError(f"{where}: {field.type!r} is no type ({error}): declare it at the top of the module") from None
        raise TypeError(f"{cls.__name__}: {why}: declare the types of its fields at the top of the module") from None


def _field(where: str, field: dataclasses.Field[Any], hint: Any) -> _Field:
    name = _name(where, field)
    whole, optional = _optional(bare(hint))
    args, many, item = typing.get_args(whole), None, whole
    if typing.get_origin(item) is list or typing.get_origin(item) is tuple and args[1:] == (...,):
        many, item = typing.get_origin(item), bare(args[0])
    names = _names(where, item) if name == "$value" else {}
    try:
        read = functools.partial(_read_choice, names) if names else _reader(where, item)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{where}: {said(hint)} has no mapping to XML: {error}") from None
    if not names and name.startswith(("@", "$")) and (many or dataclasses.is_dataclass(item)):
        raise TypeError(f"{where}: {said(hint)} is elements, and {name} is text: write a type that is text, or another name")
    if field.init and name == "$text" and optional:
        raise TypeError(f"{where}: an element without a text reads as an empty one: write {said(item)}, without None")
    if field.init and many and optional:
        raise TypeError(f"{where}: a list that is None and an empty one are both nothing in the XML: write {said(whole)}")
    is_left = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    if field.init and is_left and (many or optional):
        _check_default(where, field, many)
    absent = None if is_left else (lambda: None) if optional else many
    return _Field(where, field.name, name, names, item, read, many, absent, field.init)


def _check_default(where: str, field: dataclasses.Field[Any], many: Any) -> None:
    """Raises a TypeError if what is written as nothing, None or an empty list, would be read as a default."""
    default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    if many and (default or not isinstance(default, (list, tuple))):
        how = f"default_factory={said(many)}" if many is list else "default=()"
        raise TypeError(f"{where}: an empty list is nothing in the XML, and reads as the default {default!r}: write {how}")
    if not many and default is not None:
        raise TypeError(f"{where}: None is nothing in the XML, and reads as the default {default!r}: write default=None, or no None")


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
            return lambda text: _moment(hint, _lexical(hint, text))
        if issubclass(hint, (int, float, Decimal, uuid.UUID)):
            return lambda text: hint(_lexical(hint, text))
        if issubclass(hint, str):
            return hint
    raise TypeError(
        "write str, int, float, bool, Decimal, date, datetime, time, UUID, an Enum, a Literal or a dataclass, "
        "or list[X], tuple[X, ...] or X | None of one of these"
    )


_ZONE = "(Z|[-+]((0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"
_DATE, _CLOCK = "[0-9]{4}-[0-9]{2}-[0-9]{2}", f"[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]+)?{_ZONE}"
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
    if not re.fullmatch(_lexical_form(hint), text):
        raise ValueError(text)
    return text


def _lexical_form(hint: type) -> str:
    return next(pattern for cls, pattern in _LEXICAL if issubclass(hint, cls))


def _one_of(values: Iterable[Any], other: Callable[[str], Any] | None = None) -> Callable[[str], Any]:
    """Parses the text of one of these values, with white space around it unless that is another one."""
    exact: dict[str, Any] = {}
    for one in values:
        try:
            first = exact.setdefault(text := _written("its values", one), one)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{error}: write values that are str, int, float, bool, Decimal, date, datetime, time or UUID") from None
        if first is not one:
            raise TypeError(f"{first!r} and {one!r} are both {text!r} in the XML: write other values")
    if not exact:
        raise TypeError("it has no value: write one or more")
    texts = {text.strip(_WHITE): one for text, one in exact.items()} | exact

    def parse(text: str) -> Any:
        known = text if text in texts else text.strip(_WHITE)
        return other(text) if other and known not in texts else texts[known]

    return parse


def _moment(hint: Any, text: str) -> Any:
    """A date, a time or both. 24:00:00 is the beginning of the next day."""
    begun = re.sub("(^|T)24:00:00([.]0+)?(?=Z|[-+]|$)", r"\g<1>00:00:00", text)
    moment = hint.fromisoformat(_iso(begun))
    return moment + timedelta(days=1) if begun != text and issubclass(hint, datetime) else moment


def _iso(text: str) -> str:
    """A time as Python 3.10 reads it: no `Z`, and 3 or 6 digits of a second."""
    text = re.sub(r"\.(\d{1,6})\d*", lambda found: "." + found[1].ljust(6, "0"), text)
    return text[:-1] + "+00:00" if text.endswith("Z") else text
