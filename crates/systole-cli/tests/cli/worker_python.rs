//! The package of `sdk/python` by itself: dataclasses as XML, and what has no mapping.

use std::process::Stdio;

use crate::kit::has;
use crate::kit::worker::{Folder, python};

const ENUMS: &str = r#"
import enum
from systole_sdk import _xml, decode, encode, named, payload

class Any(enum.Enum):
    SPACED, TRIMMED, NUMBER, NO, NONE, HALF = " x ", "x", 1, False, None, 0.5

class Number(enum.IntEnum):
    ZERO, ONE = 0, 1

class Flags(enum.Flag):
    READ, WRITE = 1, 2

def check(kind, *more):
    _xml.payloads.clear()
    @payload("urn:t")
    @dataclass
    class One:
        element: kind
        attribute: kind = named("@attribute")
        some: list[kind]
    for member in [*kind, *more]:
        value = One(member, member, [member])
        assert decode(One, encode(value)) == value, encode(value)
    return One

check(Number)
check(Flags, Flags.READ | Flags.WRITE, Flags(0))
One = check(Any)

@payload("urn:t")
@dataclass
class Texts:
    some: list[str]
    attribute: str = named("@attribute", default="")

assert encode(Texts(["a", "", "b"])).count("<some>") == 3
for wrong in (Texts(["a", None]), Texts([b"a"]), Texts([["a"]]), Texts([{}]), Texts([], attribute=["a"])):
    try:
        assert False, encode(wrong)
    except TypeError as error:
        assert "has no text in XML" in str(error), error

spaced = "<one xmlns='urn:t' attribute=' false'><element>\n1\n</element></one>"
assert decode(One, spaced) == One(Any.NUMBER, Any.NO, [])
"#;

/// Types of fields: what is read, and what is refused at the start.
const TYPES: &str = r#"
import dataclasses, typing
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, NewType, Optional
from uuid import UUID
import systole_sdk
from systole_sdk import _process, _xml, decode, encode, listener, named, payload

check = lambda: _xml.check([])
Cents = NewType("Cents", int)
Line = NewType("Line", list[Cents])

def one(hint, **options):
    made = dataclasses.make_dataclass("One", [("x", hint, dataclasses.field(**options))])
    _xml.payloads.pop("{urn:t}one", None)
    return payload("urn:t")(made)

def read(cls, content, attributes=""):
    return decode(cls, f"<one xmlns='urn:t'{attributes}>{content}</one>").x

# What is written is read again.
east = timezone(timedelta(hours=5, minutes=30))
for hint, *values in [
    (list[str], ["ab", "c"], []), (list[int], [1, 2], []), (tuple[int, ...], (1, 2), ()), (Cents, 5), (Line, [1, 2], []), (Cents | None, 5, None),
    (Decimal, Decimal("0.0000001"), Decimal("1E+3"), Decimal("-0.10")), (float, 1e-7, float("inf"), float("-inf")),
    (date, date(2026, 2, 28)), (time, time(23, 59, 1, 500), time(1, 2, tzinfo=timezone.utc)),
    (datetime, datetime(2026, 1, 2, 3, 4), datetime(2026, 1, 2, 3, 4, 5, 60, tzinfo=timezone.utc), datetime(1, 1, 1, tzinfo=east)),
    (time, time(0, tzinfo=timezone(timedelta(hours=-14))), time(0, tzinfo=timezone(timedelta(hours=13, minutes=59)))),
    (Literal["a", " a", 1, True], "a", " a", 1, True), (Literal["None", None], "None", None), (UUID, UUID(int=1)), (bool, True, False),
]:
    for value in values:
        cls = one(hint)
        again = decode(cls, encode(cls(value)))
        assert again == cls(value) and type(again.x) is type(value), (hint, value, encode(cls(value)))
assert "<x>0.0000001</x>" in encode(one(Decimal)(Decimal("0.0000001")))
assert "<x>1000</x>" in encode(one(Decimal)(Decimal("1E+3")))

# Other spellings of the same values.
assert read(one(datetime), "<x> 2026-01-02T03:04:05.5Z\n</x>") == datetime(2026, 1, 2, 3, 4, 5, 500000, timezone.utc)
assert read(one(datetime), "<x>2026-01-02T03:04:05.123456789</x>").microsecond == 123456
assert read(one(time), "<x>03:04:05Z</x>") == time(3, 4, 5, tzinfo=timezone.utc)
for text, day in (("2026-12-31T24:00:00", None), ("2026-12-31T24:00:00.0Z", timezone.utc), ("2026-12-31T24:00:00+05:30", east)):
    assert read(one(datetime), f"<x>{text}</x>") == datetime(2027, 1, 1, tzinfo=day)
assert read(one(time), "<x>24:00:00Z</x>") == time(0, tzinfo=timezone.utc)
assert read(one(int), "<x>\n+07 </x>") == 7 and read(one(float), "<x> -.5E1 </x>") == -5 and read(one(Decimal), "<x>+1.</x>") == 1
assert read(one(bool), "<x> 1 </x>") is True and read(one(bool), "<x>0</x>") is False

# What is absent has the default.
assert read(one(str, default="dflt"), "") == "dflt" and read(one(Optional[str], default=None), "") is None
assert read(one(list[str], default_factory=list), "") == [] and read(one(tuple[str, ...], default=()), "") == ()
assert read(one(int, default=7, metadata={"xml": "@a"}), "") == 7
assert read(one(str, metadata={"xml": "$text"}), "a<b>c</b>d") == "ad"

# A wrong value is an error with the name of its field.
for hint, content in [
    (int, ""), (int, "1.5"), (bool, "yes"), (bool, ""), (Literal["a"], "b"), (Decimal, "x"), (date, "2026-13-01"), (date, "2026-01-01Z"),
]:
    fails(ValueError, "One.x", repr(content), of=lambda: read(one(hint), f"<x>{content}</x>"))
# So is what the parsers of Python take, and XML Schema doesn't.
for hint, *contents in [
    (int, "1_000", "\u00a01", "\uff11", "1.0", "0x1"), (float, "1_0", "\u0661", "inf", "Infinity", "nan", "-NaN", "\u00a01"),
    (Decimal, "1_0", "1e3", "NaN", "Infinity", "\uff11"), (bool, "\u00a01", "True"), (Literal["a"], "\u00a0a"),
    (date, "20260101", "2026-W01-1", "\uff12026-01-01"), (time, "03:04", "030405", "03", "03:04:05,5", "25:00:00", "24:00:01", "00:00:00+14:01", "00:00:00-15:00", "00:00:00+02:60"),
    (datetime, "2026-01-02", "2026-01-02 03:04:05", "20260102T030405", "2026-01-02T03:04", "2026-01-02T03:04:05+14:30", "9999-12-31T24:00:00"),
    (UUID, "0" * 32, "{00000000-0000-0000-0000-000000000001}", "urn:uuid:00000000-0000-0000-0000-000000000001"),
]:
    for content in contents:
        fails(ValueError, "One.x", f"is no {_xml.said(hint)}", of=lambda: read(one(hint), f"<x>{content}</x>"))
fails(ValueError, "One.x", "2 elements", "list[int]", of=lambda: read(one(int), "<x>1</x><x>2</x>"))
fails(TypeError, "'x'", of=lambda: read(one(int), ""))

# So is a value that XML doesn't have, when it is written.
for text, code in (("a\0", "U+0000"), ("\x0b", "U+000B"), ("\ufffe", "U+FFFE"), ("\ud800", "U+D800"), ("\U0001f600\x7f\x1f", "U+001F")):
    for kind in (dict(), dict(metadata={"xml": "@a"}), dict(metadata={"xml": "$text"})):
        fails(ValueError, "One.x: ", f"XML has no character {code}", of=lambda: encode(one(str, **kind)(text)))
    fails(ValueError, "One.x: ", code, of=lambda: encode(one(list[str])(["", text])))
for zone in (timedelta(hours=14, minutes=1), timedelta(hours=-20), timedelta(seconds=30)):
    for value in (time(0, tzinfo=timezone(zone)), datetime(2026, 1, 1, tzinfo=timezone(zone))):
        fails(ValueError, "One.x: ", "at most 14:00", of=lambda: encode(one(type(value))(value)))
fails(ValueError, "One.x: NaN is no decimal", of=lambda: encode(one(Decimal)(Decimal("nan"))))

# So is a value of another class, and of one whose further fields would not be read again.
@dataclass
class Base:
    y: int
@dataclass
class More(Base):
    z: int = 0
class Same(Base):
    pass
assert encode(one(Base)(Same(1))) == '<one xmlns="urn:t"><x><y>1</y></x></one>'
fails(TypeError, "One.x: More has z, which Base has not", "write Base, or a choice", of=lambda: encode(one(list[Base])([More(1)])))
for wrong in (5, "a", {}, Fetched()):
    fails(TypeError, "One.x has to be Base, not ", of=lambda: encode(one(Base)(wrong)))
fails(TypeError, "One.x: ", "has no text in XML", of=lambda: encode(one(str)(Base(1))))
payload("urn:t")(Base)
fails(TypeError, "More: More has z", of=lambda: encode(More(1)))

class Pair(Enum):
    ONE = 1, 2
class Twins(Enum):
    ONE, WORD = 1, "1"
class Nothings(Enum):
    NOTHING, WORD = None, "None"
class Nul(Enum):
    NUL = "\0"
class Empty(Enum):
    pass

@dataclass
class Inner:
    y: list

# What would be read as another value is refused at the start, with the text to write.
def refused(*parts, of=check):
    fails(TypeError, *parts, of=of)
    _xml.payloads.clear()
for hint, *parts in [
    (Twins, "ONE: 1", "WORD: '1'", "are both '1' in the XML: write other values"), (Nothings, "are both 'None'"),
    (Literal["1", 1], "'1' and 1 are both '1'"), (Literal[True, "true"], "are both 'true'"), (Empty, "it has no value"),
    (Literal[()], "it has no value"), (Literal[None], "it has no value"), (Nul, "U+0000"),
]:
    one(hint)
    refused("One.x: ", "has no mapping to XML", *parts)
for hint, write, *more in [
    (list[int] | None, "write list[int]"), (tuple[str, ...] | None, "write tuple[str, ...]"), (Optional[list[str]], "write list[str]"),
    (Optional[str], "write str, without None", {"metadata": {"xml": "$text"}}),
    (Optional[str], "'a': write default=None", {"default": "a"}), (Optional[str], "write default=None", {"default_factory": lambda: "a"}),
    (list[int], "[1]: write default_factory=list", {"default_factory": lambda: [1]}), (list[int], "None: write ", {"default": None}),
    (tuple[int, ...], "(1,): write default=()", {"default": (1,)}), (dataclasses.InitVar[int], "an InitVar is in no XML"),
    ("list[Nowhere]", "'list[Nowhere]' is no type (name 'Nowhere' is not defined)"), ("list[", "'list[' is no type"), ("int[5]", "'int[5]' is no type"),
]:
    one(hint, **dict(*more))
    refused("One.x: ", write)
for name in (5, None):
    refused("One.x: ", "has to be a str", of=lambda: one(int, metadata={"xml": name}))
refused("One is the payload {urn:t}one, and can't be {urn:u}one", of=lambda: payload("urn:u")(one(int)))

# A type without a mapping is refused at the start, also that of a dataclass in it.
for hint in [
    list, tuple, dict, dict[str, int], set[str], Any, object, bytes, int | str, Optional[int | str], list[list[int]], list[int | None],
    tuple[int, str], Callable[[], int], Pair, timedelta, typing.TypedDict("Typed", {}),
]:
    _xml.payloads.clear()
    one(hint)
    fails(TypeError, "One.x: ", "has no mapping to XML", "list[X], tuple[X, ...] or X | None", of=check) if hint is not Pair \
        else fails(TypeError, "One.x: Pair", "tuple has no text in XML: write values that are str", of=check)
_xml.payloads.clear()
one(list[Inner])
fails(TypeError, "Inner.y: list has no mapping", of=systole_sdk.run)
_xml.payloads.clear()
for hint in (list[int], Inner):
    one(hint, metadata={"xml": "@a"})
    fails(TypeError, "One.x: ", "@a is text", of=check)
_xml.payloads.clear()

@dataclass
class Tree:
    tree: "list[Tree]"

payload("urn:t")(Tree)
check()
assert decode(Tree, encode(Tree([Tree([]), Tree([])]))) == Tree([Tree([]), Tree([])])

class Plain:
    x: int

class Derived(Tree):
    more: int

for cls in (Plain, Derived):
    fails(TypeError, cls.__name__, "@dataclass", of=lambda: payload("urn:t")(cls))
fails(TypeError, "name of a payload", of=lambda: payload(5))
fails(TypeError, "Tree is the payload {urn:t}tree", of=lambda: payload(Tree))

# A name that XML doesn't have is refused where it is declared.
for name in ("", "a b", "1a", "a:b", "-a", "a<b", "\u00aa", "$other", "@", "@1", "@a b", "@xmlns", "@a:b"):
    fails(TypeError, "named(): ", repr(name.removeprefix("@")), "is no name of an", of=lambda: named(name))
for name in ("a", "_a", "a-b.c", "\u00e9t\u00e9", "@a", "@xml", "$text", "$value"):
    named(name)
fails(TypeError, "name of a field", "int", of=lambda: named(5))
def declare(name, *fields):
    return payload(name)(dataclasses.make_dataclass("Declared", fields))
for name in ("{urn:t}", "{urn:t}a b", "{urn:t}1", "{urn:t}a:b"):
    fails(TypeError, "Declared: ", "is no name of an element", of=lambda: declare(name))
for name in ("urn:a b", "urn:\n", "{urn:{}x", "urn:\ud800", "http://www.w3.org/2000/xmlns/", "http://www.w3.org/XML/1998/namespace"):
    fails(TypeError, "Declared: ", "is no namespace: write a URI", of=lambda: declare(name))
fails(TypeError, "_: ", "''", of=lambda: payload("urn:t")(dataclasses.make_dataclass("_", [])))
fails(TypeError, "Declared.x", "'1'", of=lambda: declare("urn:t", ("x", int, dataclasses.field(metadata={"xml": "@1"}))))
Hidden = dataclasses.make_dataclass("Hidden", [("x", int, dataclasses.field(metadata={"xml": "1"}))])
declare("urn:t", ("hidden", Hidden))
fails(TypeError, "Hidden.x: '1' is no name of an element", of=check)

# A payload has one class.
_xml.payloads.clear()
declared = declare("urn:t")
fails(TypeError, "Declared: {urn:t}declared is Declared of ", "write another name", of=lambda: declare("urn:t"))
assert payload("urn:t")(declared) is declared
_xml.payloads.clear()
payload("urn:t")(Tree)

# A field that the dataclass sets itself is written, and not read.
@payload("urn:t")
@dataclass
class Fixed:
    x: int
    version: int = named("@version", init=False, default=2)
    way: Fetched | ByCourier = named("$value", init=False, default_factory=Fetched)
assert encode(Fixed(1)) == '<fixed xmlns="urn:t" version="2"><x>1</x><fetched></fetched></fixed>'
assert decode(Fixed, '<fixed xmlns="urn:t" version="3"><x>1</x><by-courier/></fixed>') == Fixed(1)
fails(TypeError, "type is no payload", of=lambda: encode(Tree))

@listener
def first(tree: Tree): ...
def second(tree: Tree): ...
def third(tree: Optional[Tree]): ...
def fourth(tree: bytes): ...
fails(TypeError, "second", "{urn:t}tree", "first", of=lambda: listener(second))
fails(TypeError, "third", "tree is ", of=lambda: listener("{urn:t}other")(third))
fails(TypeError, "fourth", "bytes", "dict for the JSON", of=lambda: listener("{urn:t}other")(fourth))

# A line of progress has the room that the pump gives.
worker, said = _process.Worker(), []
worker.longest, worker.running["m"], worker.write = 4200, None, said.append
for text in ("\0", "\U0001f600", "x"):
    worker.progress("m", text * 10_000)
    assert 4100 < len(said.pop()) <= 4200

# The fault of a call ends its message with the label of the call, another one doesn't.
def fault(of):
    fault = systole_sdk.Fault("closed", "no", True)
    fault._call = of, "7"
    return fault
assert _process._error("m", fault("m")) == {"error": "closed: no", "as": "7"}
assert len(_process._error("m", ValueError("x" * 10_000))["error"]) == 4096
assert _process._error("m", fault("another")) == _process._error("m", systole_sdk.Fault("closed", "no")) == {"error": "closed: no"}
"#;

/// Choices of elements, by the names of dataclasses.
const CHOICES: &str = r#"
import typing
from systole_sdk import _xml, decode, encode, named, payload

@payload("{urn:elsewhere}Drone")
@dataclass
class Flown:
    metres: int = named("$text")

Way = typing.Union[Fetched, ByCourier, Flown]

@payload("urn:t")
@dataclass
class One:
    before: str
    way: Way = named("$value")
    after: str = ""

@payload("urn:t")
@dataclass
class Optional:
    way: Way | None = named("$value")

@payload("urn:t")
@dataclass
class Many:
    parts: list[Fetched | ByCourier] = named("$value")
    note: str | None = None

@payload("urn:t")
@dataclass
class Single:
    part: tuple[Fetched, ...] = named("$value")

def xml(name, content):
    return f'<{name} xmlns="urn:t">{content}</{name}>'

for value, content in [
    (One("b", Fetched(), "a"), "<before>b</before><fetched></fetched><after>a</after>"),
    (One("b", ByCourier("Mill Lane 3")), "<before>b</before><by-courier><street>Mill Lane 3</street></by-courier><after></after>"),
    (One("b", Flown(7)), "<before>b</before><Drone>7</Drone><after></after>"),
    (Optional(Fetched()), "<fetched></fetched>"), (Optional(None), ""), (Many([]), ""),
    (Many([ByCourier("x"), Fetched(), ByCourier("y", "n")], "z"),
     "<by-courier><street>x</street></by-courier><fetched></fetched><by-courier><street>y</street><note>n</note></by-courier><note>z</note>"),
    (Single((Fetched(), Fetched())), "<fetched></fetched><fetched></fetched>"),
]:
    name = type(value).__name__.lower()
    assert encode(value) == xml(name, content), encode(value)
    assert decode(type(value), xml(name, content)) == value
# Elements of another name, and of another namespace, are none of the choices.
assert decode(Many, xml("many", "<other/><fetched xmlns='urn:u'/><fetched/>")) == Many([Fetched()])

# What is none of the choices, or more than one, is refused.
for wrong in ("fetched", One("", Fetched()), Fetched):
    fails(TypeError, "is none of the choices: write Fetched or ByCourier or Flown", of=lambda: encode(One("", wrong)))
fails(TypeError, "NoneType is none of the choices", of=lambda: encode(Many([None])))
fails(ValueError, "One.way: there are 2 elements", of=lambda: decode(One, xml("one", "<before/><fetched/><fetched/>")))
fails(TypeError, "'way'", of=lambda: decode(One, xml("one", "<before/>")))
_xml.check([])

class Elsewhere:
    Fetched = dataclass(type("Fetched", (), {}))

# A choice that has no mapping is refused at the start.
def refused(*parts, **hints):
    for hint in hints.values():
        _xml.payloads.pop("{urn:t}wrong", None)
        @payload("urn:t")
        @dataclass
        class Wrong:
            fetched: str
            x: hint = named("$value")
        fails(TypeError, *parts, of=lambda: _xml.check([]))
    _xml.payloads.clear()

refused("Wrong.x: ", "is no choice: write dataclasses, A | B, A | B | None or list[A | B]",
        a=str, b=list[str], c=Fetched | str, d=list[Fetched | None], e=dict[str, Fetched], f=typing.Literal["a"], g=list,
        h=tuple[Fetched, ByCourier], i=dict[Fetched, ByCourier], j=type[Fetched])
refused("Fetched and Fetched are both fetched in the XML", a=Fetched | Elsewhere.Fetched)
refused("Wrong.x: Wrong.fetched is fetched in the XML, too", a=Fetched | ByCourier)

# Without `$value` a type is one.
@dataclass
class Plain:
    x: Fetched | ByCourier
fails(TypeError, "Plain.x", "has no mapping to XML", of=lambda: _xml.check([Plain]))

@dataclass
class Inner:
    y: list

@dataclass
class Outer:
    x: Fetched | Inner = named("$value")
fails(TypeError, "Inner.y: list has no mapping", of=lambda: _xml.check([Outer]))
"#;

/// Names of payloads, by those of classes: the table of the Rust types.
const NAMES: &str = r#"
import dataclasses
from systole_sdk import _xml, payload

for line in open("tests/fixtures/kebab-case.txt", encoding="utf-8"):
    name, expected = line.split()
    _xml.payloads.clear()
    cls = payload("urn:t")(dataclasses.make_dataclass(name, []))
    assert cls.__payload__ == "{urn:t}" + expected, cls.__payload__
assert payload("{urn:t}TaskDone")(dataclasses.make_dataclass("TaskDone", [])).__payload__ == "{urn:t}TaskDone"
"#;

#[test]
fn an_older_python_is_told_which_one_the_package_needs() {
    // The parts of the package are never read there.
    let script = r#"
import sys
sys.version_info = (3, 9, 2)
try:
    import systole_sdk
except ImportError as error:
    print(error, sorted(name for name in sys.modules if name.startswith("systole_sdk.")))
"#;
    let output = python(script).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.starts_with("systole_sdk needs Python 3.10 or later, and this is 3.9 (") && said.ends_with(") []\n"),
        "{said}"
    );
}

#[test]
fn the_python_package_reads_what_it_writes_and_refuses_what_has_no_mapping() {
    for script in [NAMES, ENUMS, TYPES, CHOICES] {
        let output = python(script).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A worker that starts a program with its own standard input before `run()` and in its function, and a program of the package
/// among them.
const PARENT: &str = r#"
import subprocess, sys
from systole_sdk import listener, run

def child():
    shell = "cat; ls -l /proc/self/fd | grep -c pipe:"
    read = subprocess.run(["sh", "-c", shell], stdout=subprocess.PIPE, close_fds=False, timeout=30).stdout.decode().strip()
    script = "import systole_sdk, sys; print(sys.stdin.read())"
    own = subprocess.run([sys.executable, "-c", script], input=b"mine", stdout=subprocess.PIPE, timeout=30).stdout.decode()
    return f"<say xmlns='urn:t'>read {read}, {own.strip()}</say>"

early = child()

@listener("{urn:t}do")
def do(xml):
    return early if "early" in xml else child()

run()
"#;

#[test]
fn what_a_worker_starts_reads_none_of_the_protocol_before_run_either() {
    let folder = Folder::new("parent", PARENT, "timeout: 60s");
    let mut running = folder.start(&["--until-idle"]);
    // A child has the pipe that it writes to, and the standard error of the worker.
    has(&running.ask("early"), &[">read 2, mine</say>"]);
    has(&running.ask("late"), &[">read 2, mine</say>"]);
    assert_eq!(running.end().0, Some(0));
}
