//! Schemas of an industry's size, compiled: `cargo bench --bench compile`.
//!
//! Apart from the stages, because it counts allocations: what is allocated and not freed is the size of the compiled
//! form. What libxml2 allocates is not seen.

use systole::schema::XsdDocument;
use systole::schema::oracle;

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

const LARGE: &str = include_str!("../tests/corpus/xsd/large.xsd");

fn main() {
    divan::main();
}

#[divan::bench(name = "compile large.xsd, systole")]
fn engine(bencher: divan::Bencher<'_, '_>) {
    let document = XsdDocument { name: "large.xsd".to_owned(), text: LARGE.to_owned() };
    bencher.bench_local(|| oracle::compile_by_engine(&document).expect("the engine understands it"));
}

#[divan::bench(name = "compile large.xsd, libxml2")]
fn libxml(bencher: divan::Bencher<'_, '_>) {
    bencher.bench_local(|| oracle::compile_by_libxml(LARGE).expect("it is a schema"));
}
