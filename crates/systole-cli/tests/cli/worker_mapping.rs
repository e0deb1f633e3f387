//! One payload in three languages: the packages for Python and TypeScript read what Rust wrote, and write what the schema of
//! the Rust type accepts and Rust reads as the same value.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use systole::ladder::strict::canonicalize;
use systole::prelude::*;
use systole::schema::{Catalog, PayloadSchema, Validator, encode};
use systole::vocab::XmlLimits;

use crate::kit::worker::{ROOT, python};
use crate::worker_node::node;

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:mapping:v1")]
struct ShipmentOrder {
    #[serde(rename = "@id")]
    id: u64,
    #[serde(rename = "@gift")]
    gift: Option<bool>,
    #[serde(rename = "@label")]
    label: String,
    item: String,
    #[serde(rename = "due-on")]
    due_on: String,
    amount: f64,
    limit: f64,
    note: Option<String>,
    #[serde(default)]
    number: Vec<i32>,
    #[serde(default)]
    line: Vec<Line>,
    unit: Unit,
    address: Address,
    route: Route,
    #[serde(rename = "$value")]
    way: Way,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Line {
    #[serde(rename = "@cents")]
    cents: i32,
    #[serde(rename = "$text")]
    article: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Unit {
    Mile,
    SquareMetre,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Address {
    street: String,
    place: Place,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Place {
    town: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Route {
    #[serde(rename = "$value", default)]
    stops: Vec<Stop>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Stop {
    Town(String),
    LongBreak { minutes: u32 },
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Way {
    Fetched,
    ByCourier { street: String, note: Option<String> },
}

/// A value with all parts, and one with none that may be left out.
fn orders() -> [ShipmentOrder; 2] {
    let full = ShipmentOrder {
        id: u64::MAX,
        gift: Some(true),
        label: "a \"b\"\t\r\n<&>".into(),
        item: " R&D <b> ]]>\r \u{e9}\u{1f600} ".into(),
        due_on: "2031-02-28".into(),
        amount: -1e-7,
        limit: f64::INFINITY,
        note: Some(String::new()),
        number: vec![-1, 0, 7],
        line: vec![Line { cents: -3, article: "bread".into() }, Line { cents: 0, article: String::new() }],
        unit: Unit::SquareMetre,
        address: Address { street: "Mill Lane 3".into(), place: Place { town: Some("Hull".into()) } },
        route: Route { stops: vec![Stop::Town("x".into()), Stop::LongBreak { minutes: 5 }, Stop::Town("y".into())] },
        way: Way::ByCourier { street: "Quay 1".into(), note: Some("ring".into()) },
    };
    let empty = ShipmentOrder {
        id: 0,
        gift: None,
        label: String::new(),
        item: String::new(),
        due_on: "2031-12-31".into(),
        amount: 1.5,
        limit: 0.0,
        note: None,
        number: vec![],
        line: vec![],
        unit: Unit::Mile,
        address: Address { street: String::new(), place: Place { town: None } },
        route: Route { stops: vec![] },
        way: Way::Fetched,
    };
    [full, empty]
}

const PYTHON: &str = r#"
import enum, sys
from datetime import date
from systole_sdk import decode, encode, named, payload

@dataclass
class Line:
    cents: int = named("@cents")
    article: str = named("$text")

class Unit(enum.Enum):
    MILE = "mile"
    SQUARE_METRE = "square-metre"

@dataclass
class Place:
    town: str | None

@dataclass
class Address:
    street: str
    place: Place

@dataclass
class Town:
    name: str = named("$text")

@dataclass
class LongBreak:
    minutes: int

@dataclass
class Route:
    stops: list[Town | LongBreak] = named("$value")

@payload("urn:example:mapping:v1")
@dataclass
class ShipmentOrder:
    id: int = named("@id")
    gift: bool | None = named("@gift")
    label: str = named("@label")
    item: str
    due: date = named("due-on")
    amount: float
    limit: float
    note: str | None
    number: list[int]
    line: list[Line]
    unit: Unit
    address: Address
    route: Route
    way: Fetched | ByCourier = named("$value")

orders = [
    ShipmentOrder(
        2**64 - 1, True, 'a "b"\t\r\n<&>', " R&D <b> ]]>\r \u00e9\U0001f600 ", date(2031, 2, 28), -1e-7, float("inf"), "",
        [-1, 0, 7], [Line(-3, "bread"), Line(0, "")], Unit.SQUARE_METRE, Address("Mill Lane 3", Place("Hull")),
        Route([Town("x"), LongBreak(5), Town("y")]), ByCourier("Quay 1", "ring"),
    ),
    ShipmentOrder(
        0, None, "", "", date(2031, 12, 31), 1.5, 0.0, None, [], [], Unit.MILE, Address("", Place(None)), Route([]), Fetched(),
    ),
]
read = [decode(ShipmentOrder, xml) for xml in sys.stdin.buffer.read().decode().split("\0")]
assert read == orders, read
sys.stdout.buffer.write("\0".join(map(encode, orders)).encode())
"#;

const TYPESCRIPT: &str = r#"
import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { encode, payload, t } from "PACKAGE";

const ShipmentOrder = payload("{urn:example:mapping:v1}shipment-order", {
  id: t.attribute(t.bigint),
  gift: t.optional(t.attribute(t.bool)),
  label: t.attribute(t.text),
  item: t.text,
  dueOn: t.named("due-on", t.text),
  amount: t.float,
  limit: t.float,
  note: t.optional(t.text),
  number: t.list(t.int),
  line: t.list(t.object({ cents: t.attribute(t.int), article: t.content(t.text) })),
  unit: t.oneOf("mile", "square-metre"),
  address: t.object({ street: t.text, place: t.object({ town: t.optional(t.text) }) }),
  route: t.object({ stops: t.list(t.choice({ town: t.text, "long-break": t.object({ minutes: t.int }) })) }),
  way: t.choice({ fetched: t.object({}), courier: t.named("by-courier", t.object({ street: t.text, note: t.optional(t.text) })) }),
});

const orders = [
  {
    id: 2n ** 64n - 1n, gift: true, label: 'a "b"\t\r\n<&>', item: " R&D <b> ]]>\r \u{e9}\u{1f600} ", dueOn: "2031-02-28", amount: -1e-7,
    limit: Infinity, note: "", number: [-1, 0, 7], line: [{ cents: -3, article: "bread" }, { cents: 0, article: "" }],
    unit: "square-metre", address: { street: "Mill Lane 3", place: { town: "Hull" } },
    route: { stops: [{ town: "x" }, { "long-break": { minutes: 5 } }, { town: "y" }] },
    way: { courier: { street: "Quay 1", note: "ring" } },
  },
  {
    id: 0n, label: "", item: "", dueOn: "2031-12-31", amount: 1.5, limit: 0, number: [], line: [], unit: "mile",
    address: { street: "", place: {} }, route: { stops: [] }, way: { fetched: {} },
  },
];
const read = readFileSync(0, "utf8").split("\0").map((xml) => ({ ...ShipmentOrder.decode(xml) }));
assert.deepEqual(read, orders);
process.stdout.write(orders.map((order) => encode(ShipmentOrder(order))).join("\0"));
"#;

/// Hands the values that Rust wrote to a program, as XML or as JSON, and reads the values that it writes.
fn read_and_written_by(program: &mut Command, is_json: bool) {
    let limits = XmlLimits::default();
    let schema = PayloadSchema::of::<ShipmentOrder>().unwrap();
    let mut validator = Validator::new(Arc::new(Catalog::only([schema])));
    let written = orders().map(|order| {
        let payload = encode(&order).unwrap();
        let xml = payload.as_str().to_owned();
        let text = if is_json { validator.catalog().to_named_json(&payload).unwrap() } else { xml };
        validator.validate(payload).unwrap_or_else(|error| panic!("Rust wrote {text}: {error}"));
        text
    });
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(written.join("\0").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program:?} did not read {written:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let read: Vec<ShipmentOrder> = text
        .split('\0')
        .map(|text| {
            let valid = match is_json {
                true => {
                    validator.payload_of_json(text.as_bytes(), |_| true, &limits).map_err(|error| error.to_string())
                }
                false => {
                    let canonical = canonicalize(&text.to_owned().into(), &limits).unwrap();
                    validator.validate(canonical).map_err(|error| error.to_string())
                }
            };
            let valid = valid.unwrap_or_else(|error| panic!("{text}: {error}"));
            valid.decode::<ShipmentOrder>().unwrap().into_value()
        })
        .collect();
    assert_eq!(read, orders());
}

#[test]
fn python_reads_and_writes_the_payloads_of_rust() {
    read_and_written_by(&mut python(PYTHON), false);
}

#[test]
fn typescript_reads_and_writes_the_payloads_of_rust() {
    if node() {
        read_and_written_by(&mut typescript(TYPESCRIPT), false);
    }
}

#[test]
fn python_reads_and_writes_the_json_of_rust() {
    let of_json = r#"
import json
from systole_sdk import _json, named, payload
decode = lambda cls, text: _json.decode(cls, json.loads(text, parse_float=_json.Number))
encode = lambda value: json.dumps(_json.encode(value), ensure_ascii=False)
"#;
    read_and_written_by(
        &mut python(&PYTHON.replace("from systole_sdk import decode, encode, named, payload\n", of_json)),
        true,
    );
}

#[test]
fn typescript_reads_and_writes_the_json_of_rust() {
    if node() {
        let script = TYPESCRIPT
            .replace(
                "import { encode, ",
                "const encode = (order) => JSON.stringify(encodeJson(order));\nimport { encodeJson, ",
            )
            .replace("ShipmentOrder.decode(xml)", "ShipmentOrder.decodeJson(JSON.parse(xml))");
        read_and_written_by(&mut typescript(&script), true);
    }
}

fn typescript(script: &str) -> Command {
    let script = script.replace("PACKAGE", &format!("{ROOT}/sdk/typescript/index.js"));
    let mut command = Command::new("node");
    command.args(["--input-type=module", "-e", &script]);
    command
}
