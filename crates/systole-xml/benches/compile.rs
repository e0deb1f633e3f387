//! Compiling of schemas: those of the pump, and one as large as those of industry. `cargo bench --bench compile`.
//!
//! Separate from the stages, because it counts allocations: memory that is allocated and not freed is the size of the
//! compiled form. Allocations of libxml2 are not counted.

use std::fmt;

use systole_xml::schema::{XsdDocument, oracle};

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
