//! A program of a crate that depends on systole alone: the derives of the prelude accept the attributes of serde and
//! schemars.

use systole::prelude::*;
use systole::schema::PayloadSchema;

const NAMESPACE: &str = "urn:example:derives:v1";

/// Orders goods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = NAMESPACE, reply = Done)]
#[serde(rename_all = "kebab-case")]
struct PlaceOrder {
    /// The number of the customer.
    #[serde(rename = "@customer")]
    customer: u32,
    /// Goods, one by one.
    #[serde(rename = "item", default)]
    order_items: Vec<Item>,
    #[schemars(range(min = 1, max = 9))]
    urgency: u8,
    note: Option<String>,
    edges: [Edge; 2],
    #[cfg(any())]
    never: Missing,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Item {
    name: Wrapped<String>,
    size: Size,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Edge {
    to: u8,
    by: u8,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Wrapped<T>(T);

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", crate = "systole::serde")]
#[schemars(crate = "systole::schemars")]
enum Size {
    #[default]
    Small,
    /// The size of two persons.
    Large,
}

/// A payload by hand, with a root of its own.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Done {}

impl Payload for Done {
    const NAMESPACE: &'static str = "";
    const ROOT: &'static str = "finished";
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Below a function, too, and by another name than the type's.
    #[derive(Serialize, Deserialize, JsonSchema, Payload)]
    #[payload(namespace = "", root = "inner", reply = Self)]
    struct Local {
        a: i64,
    }
    assert_eq!(PlaceOrder::qname().to_string(), "{urn:example:derives:v1}place-order");
    assert_eq!((Done::ROOT, Local::ROOT), ("finished", "inner"));
    fn reply<R: Request>() -> &'static str {
        R::Reply::ROOT
    }
    assert_eq!((reply::<PlaceOrder>(), reply::<Local>()), ("finished", "inner"));
    PayloadSchema::of::<Done>()?;
    PayloadSchema::of::<Local>()?;
    let schema = PayloadSchema::of::<PlaceOrder>()?;
    for part in ["Orders goods.", "Goods, one by one.", "name=\"customer\"", "name=\"item\"", "value=\"9\"", "large"] {
        assert!(schema.document().contains(part), "{part} is missing in {}", schema.document());
    }
    // Fields have the order of the source, though nothing in this program keeps the order of JSON objects.
    let at = |name: &str| schema.document().find(&format!("name=\"{name}\"")).unwrap_or_default();
    for (first, second) in [("item", "urgency"), ("urgency", "note"), ("note", "edges"), ("to", "by")] {
        assert!(at(first) < at(second), "{first}, {second}: {}", schema.document());
    }
    let _ = Local { a: 1 }.a;
    Ok(())
}
