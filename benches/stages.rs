//! The stages of the ladder and their references: `cargo bench --bench stages`.

use std::fmt;

use divan::counter::BytesCount;
use systole_bench::{Side, specimens};

fn main() {
    divan::main();
}

#[divan::bench(args = all())]
fn stage(bencher: divan::Bencher<'_, '_>, wanted: &Wanted) {
    let specimen = specimens().into_iter().nth(wanted.specimen).expect("the numbers are those of the specimens");
    let mut stages = specimen.stages().expect("the payloads are contracts");
    let stage = &mut stages[wanted.stage];
    bencher.counter(BytesCount::new(specimen.bytes)).bench_local(|| stage.run());
}

/// A stage and a message, by their indexes.
struct Wanted {
    specimen: usize,
    stage: usize,
    name: String,
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn all() -> impl Iterator<Item = Wanted> {
    specimens().into_iter().enumerate().flat_map(|(specimen, message)| {
        let stages = message.stages().expect("the payloads are contracts");
        let named = stages.into_iter().enumerate().map(move |(stage, found)| {
            let side = if found.side == Side::Systole { "systole" } else { "reference" };
            Wanted { specimen, stage, name: format!("{}, {side}: {}", message.name, found.name) }
        });
        named.collect::<Vec<_>>()
    })
}
