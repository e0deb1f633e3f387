//! The loads of `systole bench`, one round at a time: `cargo bench --bench pump`.
//!
//! Each round of a load waits until all that it began is done. Times are wall time; CPU time and
//! memory are what `systole bench` is for.

use divan::counter::ItemsCount;
use systole_bench::{Latencies, Load, Scale, groups};

fn main() {
    divan::main();
}

/// A load runs for seconds where divan wants microseconds: as few samples as say something.
#[divan::bench(args = cases(), sample_count = 5, sample_size = 1)]
fn round(bencher: divan::Bencher<'_, '_>, case: &str) {
    let mut load = start(case);
    let deliveries = load.round(&mut Latencies::default()).expect("the loads run");
    bencher
        .counter(ItemsCount::new(deliveries))
        .bench_local(|| load.round(&mut Latencies::default()).expect("the loads run"));
}

/// All but those that leave their threads behind: a second round would find them there.
fn cases() -> impl Iterator<Item = &'static str> {
    groups().into_iter().filter(|group| group.letter != 'f').flat_map(|group| group.cases).map(|case| case.name)
}

fn start(name: &str) -> Box<dyn Load> {
    // Only `cargo bench` measures; for `cargo test --benches` as little as possible will do.
    let scale = if std::env::args().any(|argument| argument == "--bench") { Scale::Full } else { Scale::Smoke };
    let mut cases = groups().into_iter().flat_map(|group| group.cases);
    let case = cases.find(|case| case.name == name).expect("the names are those of the cases");
    case.start(scale).expect("the organisms start")
}
