//! The messages of the benchmarks: payload types, and envelopes as a client writes them.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole::schema::Payload;
use systole_core::vocab::ns;

const NAMESPACE: &str = "urn:systole:bench:v1";

/// A payload of two numbers, the smallest of the benchmarks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = NAMESPACE, reply = Self)]
pub(super) struct Add {
    /// Left operand.
    pub(super) a: i64,
    /// Right operand.
    pub(super) b: i64,
}

/// A payload of one long text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = NAMESPACE)]
pub(super) struct Note {
    /// The text.
    pub(super) text: String,
}

/// A payload of many small elements of several types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = NAMESPACE)]
pub(super) struct Order {
    /// The customer.
    pub(super) customer: String,
    /// The customer's reference.
    pub(super) reference: String,
    /// The currency of the prices.
    pub(super) currency: Currency,
    /// Set for an urgent order.
    pub(super) express: bool,
    /// The time of the order.
    pub(super) placed: String,
    /// The price of all items.
    pub(super) total: f64,
    /// The ordered items.
    #[serde(default)]
    pub(super) item: Vec<Item>,
}

/// A currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) enum Currency {
    /// Euro.
    #[serde(rename = "EUR")]
    Euro,
    /// Pound sterling.
    #[serde(rename = "GBP")]
    Pound,
}

/// A line of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Item {
    /// The line number.
    #[serde(rename = "@line")]
    pub(super) line: u32,
    /// The unit of the quantity.
    #[serde(rename = "@unit")]
    pub(super) unit: String,
    /// The name of the item.
    pub(super) name: String,
    /// The quantity.
    pub(super) quantity: u32,
    /// The price of one unit.
    pub(super) price: f64,
}

/// The ball of ping-pong, and the token of the dispatch case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = NAMESPACE, reply = Self)]
pub(super) struct Ball {
    /// The number of throws.
    pub(super) turn: u32,
}

/// A payload type with a sample envelope, as a client would write it.
pub(super) trait Sample: Payload + Clone {
    /// The sample envelope.
    fn envelope() -> Bytes;
}

impl Sample for Add {
    /// A sample of 171 bytes, 7 elements.
    fn envelope() -> Bytes {
        Self::to("calculator")
    }
}

impl Add {
    /// A question to a listener, addressed by name.
    pub(super) fn to(listener: &str) -> Bytes {
        envelope("", &format!("<to>{listener}</to>"), "<add xmlns=\"urn:systole:bench:v1\"><a>4</a><b>2</b></add>")
    }
}

impl Sample for Note {
    /// A sample with 1,000 bytes of text, some of them not ASCII, some of them escaped.
    fn envelope() -> Bytes {
        let text = Self::sample().text.replace('&', "&amp;");
        envelope("", "", &format!("<note xmlns=\"{NAMESPACE}\"><text>{text}</text></note>"))
    }
}

impl Note {
    /// The value of the sample: 1,000 bytes in XML.
    pub(super) fn sample() -> Self {
        let sentence = "The pump keeps every word it's given: prose, code & “quotes”, line\nafter line. ";
        let escapes = "amp;".len();
        let mut text = String::new();
        while text.len() + text.matches('&').count() * escapes + sentence.len() + escapes <= 1000 {
            text.push_str(sentence);
        }
        let filler = 1000 - text.len() - text.matches('&').count() * escapes;
        text.extend(std::iter::repeat_n('.', filler));
        Self { text }
    }
}

impl Sample for Order {
    /// A sample of 945 bytes, 28 elements.
    fn envelope() -> Bytes {
        orders(4)
    }
}

impl Sample for Ball {
    fn envelope() -> Bytes {
        envelope("", "", &format!("<ball xmlns=\"{NAMESPACE}\"><turn>0</turn></ball>"))
    }
}

/// An envelope with an order of `lines` lines. It is not canonical: an XML declaration, unsorted attributes,
/// apostrophes around values.
pub(super) fn orders(lines: usize) -> Bytes {
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
    let items: String = (1..=lines).map(item).collect();
    let payload = format!(
        "<order xmlns=\"{NAMESPACE}\"><customer>ada.lovelace@example.org</customer><reference>2026-11-000417</reference>\
         <currency>EUR</currency><express>true</express><placed>2026-11-22T01:42:36Z</placed><total>402.50</total>{items}</order>"
    );
    let meta = "<to>front</to><thread>67e55044-10b1-426f-9247-bb680e5fe0c8</thread>";
    envelope("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", meta, &payload)
}

fn envelope(declaration: &str, meta: &str, payload: &str) -> Bytes {
    let around = ns::ENVELOPE;
    format!("{declaration}<message xmlns=\"{around}\"><meta><from>cli</from>{meta}</meta>{payload}</message>").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_have_the_sizes_that_the_bars_speak_of() {
        let elements = |bytes: &Bytes| bytes.windows(2).filter(|pair| pair == b"</").count();
        assert_eq!((Add::envelope().len(), elements(&Add::envelope())), (171, 7));
        assert_eq!((Order::envelope().len(), elements(&Order::envelope())), (945, 28));
        let note = String::from_utf8(Note::envelope().to_vec()).unwrap();
        let text = note.split("<text>").nth(1).and_then(|rest| rest.split("</text>").next()).unwrap();
        assert_eq!(text.len(), 1000);
    }
}
