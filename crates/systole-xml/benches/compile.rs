//! Compiling of schemas: those of the pump, and one as large as those of industry. `cargo bench --bench compile`.
//!
//! Separate from the stages, because it counts allocations: memory that is allocated and not freed is the size of the
//! compiled form. Allocations of libxml2 are not counted.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_xml::schema::{Payload, XsdDocument, oracle};

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

struct Document {
    name: &'static str,
    text: &'static str,
}

const DOCUMENTS: [Document; 5] = [
    Document { name: "envelope.xsd", text: include_str!("../schemas/envelope.xsd") },
    Document { name: "core.xsd", text: include_str!("../schemas/core.xsd") },
    Document { name: "meta.xsd", text: include_str!("../schemas/meta.xsd") },
    Document { name: "task.xsd", text: include_str!("../schemas/task.xsd") },
    Document { name: "large.xsd", text: include_str!("../tests/corpus/xsd/large.xsd") },
];

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A sum of two numbers.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Add {
    /// Left operand.
    a: i64,
    /// Right operand.
    b: i64,
}

/// An order of goods.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Order {
    #[serde(rename = "@customer")]
    customer: u32,
    /// The place of delivery.
    #[schemars(length(min = 1, max = 80))]
    street: String,
    #[schemars(regex(pattern = "^[A-Z]{2}-[0-9]{5}$"))]
    code: String,
    note: Option<String>,
    #[serde(default)]
    line: Vec<Line>,
    #[serde(rename = "$value")]
    way: Way,
}

/// A line of an order.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Line {
    #[serde(rename = "@cents")]
    #[schemars(range(min = 1, max = 100_000))]
    cents: u32,
    #[serde(rename = "@unit")]
    unit: Unit,
    #[serde(rename = "$text")]
    article: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Piece,
    Kilogram,
    Litre,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Way {
    /// At the counter.
    Fetched,
    Courier {
        name: String,
        #[schemars(range(min = 0.0, max = 24.0))]
        hours: f64,
    },
    Post(String),
}

impl Payload for Add {
    const NAMESPACE: &'static str = "urn:example:compile:v1";
    const ROOT: &'static str = "add";
}

impl Payload for Order {
    const NAMESPACE: &'static str = "urn:example:compile:v1";
    const ROOT: &'static str = "order";
}

fn main() {
    divan::main();
}

#[divan::bench(name = "systole", args = DOCUMENTS)]
fn engine(bencher: divan::Bencher<'_, '_>, document: &Document) {
    let document = XsdDocument { name: document.name.to_owned(), text: document.text.to_owned() };
    bencher.bench_local(|| oracle::compile_by_engine(&document).expect("the engine understands it"));
}

#[divan::bench(name = "libxml2", args = DOCUMENTS)]
fn libxml(bencher: divan::Bencher<'_, '_>, document: &Document) {
    bencher.bench_local(|| oracle::compile_by_libxml(document.text).expect("it is a schema"));
}

#[divan::bench(name = "type", types = [Add, Order])]
fn derived<T: Payload>(bencher: divan::Bencher<'_, '_>) {
    bencher.bench_local(|| oracle::contract::<T>().expect("XML can carry it"));
}

#[divan::bench(name = "document", types = [Add, Order])]
fn read<T: Payload>(bencher: divan::Bencher<'_, '_>) {
    let schema = oracle::contract::<T>().expect("XML can carry it");
    let document = XsdDocument { name: String::new(), text: schema.document().to_owned() };
    bencher.bench_local(|| oracle::compile_by_engine(&document).expect("the engine understands it"));
}
