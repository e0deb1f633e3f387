//! Runs one stage of the ladder on one of the messages of `systole bench`, for counts of instructions:
//! `stages MESSAGE STAGE TIMES`, with a message of `171`, `945` and `text`. `docs/xsd.md` has its figures.

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_xml::ladder::{Canonical, Element, Envelope, Raw, Validated, parse};
use systole_xml::schema::{Catalog, Payload, PayloadSchema, Validator, decode, encode};
use systole_xml::vocab::{XmlLimits, ns};

const NAMESPACE: &str = "urn:systole:bench:v1";

#[derive(Serialize, Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Note {
    text: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Order {
    customer: String,
    reference: String,
    currency: Currency,
    express: bool,
    placed: String,
    total: f64,
    #[serde(default)]
    item: Vec<Item>,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
enum Currency {
    #[serde(rename = "EUR")]
    Euro,
    #[serde(rename = "GBP")]
    Pound,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Item {
    #[serde(rename = "@line")]
    line: u32,
    #[serde(rename = "@unit")]
    unit: String,
    name: String,
    quantity: u32,
    price: f64,
}

macro_rules! payload {
    ($($type:ty, $root:literal;)*) => {
        $(impl Payload for $type {
            const NAMESPACE: &'static str = NAMESPACE;
            const ROOT: &'static str = $root;
        })*
    };
}

payload! { Add, "add"; Note, "note"; Order, "order"; }

fn main() {
    let mut args = std::env::args().skip(1);
    let (message, stage) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
    let times = args.next().and_then(|times| times.parse().ok()).unwrap_or(1);
    match message.as_str() {
        "171" => run::<Add>(
            envelope("", "<to>calculator</to>", "<add xmlns=\"urn:systole:bench:v1\"><a>4</a><b>2</b></add>"),
            &stage,
            times,
        ),
        "945" => run::<Order>(order(), &stage, times),
        "text" => run::<Note>(note(), &stage, times),
        other => panic!("there is no message '{other}': write 171, 945 or text"),
    }
}

fn run<T: Payload>(message: Bytes, stage: &str, times: usize) {
    let mut catalog = Catalog::new();
    catalog.add(PayloadSchema::of::<T>().expect("the payload is a contract")).expect("it is the only one");
    let mut validator = Validator::new(Arc::new(catalog));
    let strict = canonical(&message);
    let payload = opened(strict.clone()).payload().clone();
    let proof = valid(&mut validator, payload.clone());
    let value: T = decode(&proof).expect("the message is what it says");
    let (raw, limits) = (Raw::new(message), XmlLimits::default());
    for _ in 0..times {
        match stage {
            "strict" => drop(black_box(parse(&raw, &limits))),
            "envelope" => drop(black_box(Envelope::open(strict.clone()))),
            "validation" => drop(black_box(validator.validate(payload.clone()))),
            "decoding" => drop(black_box(decode::<T>(&proof))),
            "encoding" => drop(black_box(encode(&value))),
            "all" => {
                let envelope = opened(canonical(raw.bytes()));
                drop(black_box(decode::<T>(&valid(&mut validator, envelope.payload().clone()))));
            }
            other => {
                panic!("there is no stage '{other}': write strict, envelope, validation, decoding, encoding or all")
            }
        }
    }
}

fn canonical(message: &Bytes) -> Canonical {
    parse(&Raw::new(message.clone()), &XmlLimits::default()).expect("the message is well-formed")
}

fn opened(message: Canonical) -> Envelope {
    Envelope::open(message).expect("the message is an envelope")
}

fn valid(validator: &mut Validator, payload: Canonical) -> Validated<Element> {
    validator.validate(payload).expect("the message keeps its schema")
}

/// 945 bytes, 28 elements, not canonical.
fn order() -> Bytes {
    let names = [
        "hinge &amp; four screws, brass, 80 mm, a pair",
        "door handle, left, with rose, satin iron",
        "washer 12 mm, zinc, thin",
    ];
    let item = |line: usize| {
        let (name, quantity, price) = (names[line % names.len()], 1 + line * 7 % 120, 75 + line * 1234 % 20_000);
        format!(
            "<item unit='piece' line=\"{line}\"><name>{name}</name><quantity>{quantity}</quantity><price>{}.{:02}</price></item>",
            price / 100,
            price % 100
        )
    };
    let items: String = (1..=4).map(item).collect();
    let payload = format!(
        "<order xmlns=\"{NAMESPACE}\"><customer>ada.lovelace@example.org</customer><reference>2026-11-000417</reference>\
         <currency>EUR</currency><express>true</express><placed>2026-11-22T01:42:36Z</placed><total>402.50</total>{items}</order>"
    );
    let meta = "<to>front</to><thread>67e55044-10b1-426f-9247-bb680e5fe0c8</thread>";
    envelope("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", meta, &payload)
}

/// 1,000 bytes of text, some of them not ASCII, some of them escaped.
fn note() -> Bytes {
    let sentence = "The pump keeps every word it's given: prose, code &amp; “quotes”, line\nafter line. ";
    let mut text = sentence.repeat(1000usize.div_ceil(sentence.len()));
    let end = (0..=1000).rev().find(|&at| text.is_char_boundary(at)).unwrap_or_default();
    text.truncate(end);
    text.truncate(text.rfind('.').map_or(end, |stop| stop + 1));
    let filler = 1000 - text.len();
    text.extend(std::iter::repeat_n('.', filler));
    envelope("", "", &format!("<note xmlns=\"{NAMESPACE}\"><text>{text}</text></note>"))
}

fn envelope(declaration: &str, meta: &str, payload: &str) -> Bytes {
    let around = ns::ENVELOPE;
    format!("{declaration}<message xmlns=\"{around}\"><meta><from>cli</from>{meta}</meta>{payload}</message>").into()
}
