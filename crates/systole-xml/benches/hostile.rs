//! The most expensive schemas: the time until each is compiled, with the examples of all its payloads, or refused.
//! `cargo bench --bench hostile`.

#[path = "../tests/xml/hostile_schemas/mod.rs"]
mod hostile_schemas;

use systole_xml::schema::PayloadSchema;

use hostile_schemas::Hostile;

fn main() {
    divan::main();
}

#[divan::bench(args = hostile_schemas::schemas(), sample_count = 5, sample_size = 1)]
fn hostile(bencher: divan::Bencher<'_, '_>, hostile: &Hostile) {
    bencher.bench_local(|| {
        let compiled = PayloadSchema::from_xsd_set(&hostile.documents);
        compiled.iter().flatten().filter(|schema| schema.example().is_some()).count()
    });
}
