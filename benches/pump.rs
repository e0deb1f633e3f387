//! The loads of `systole-bench`, one round at a time: `cargo bench --bench pump`.
//!
//! Each round of a load waits until all its work is done. Times are wall time; `systole-bench` measures CPU time and
//! memory.

use divan::counter::ItemsCount;
use systole_bench::{Latencies, Load, Scale, groups};

fn main() {
    divan::main();
}

/// Takes few samples, because a load runs for seconds where divan expects microseconds.
#[divan::bench(args = cases(), sample_count = 5, sample_size = 1)]
fn round(bencher: divan::Bencher<'_, '_>, case: &str) {
    let mut load = start(case);
    let deliveries = load.round(&mut Latencies::default()).expect("the loads run");
    bencher
        .counter(ItemsCount::new(deliveries))
        .bench_local(|| load.round(&mut Latencies::default()).expect("the loads run"));
}

/// The cases, except those that leave their threads behind, which a second round would find.
fn cases() -> impl Iterator<Item = &'static str> {
    groups().into_iter().filter(|group| group.letter != 'f').flat_map(|group| group.cases).map(|case| case.name)
}

fn start(name: &str) -> Box<dyn Load> {
    // Only `cargo bench` measures; `cargo test --benches` needs the smallest scale.
    let scale = if std::env::args().any(|argument| argument == "--bench") { Scale::Full } else { Scale::Smoke };
    let mut cases = groups().into_iter().flat_map(|group| group.cases);
    let case = cases.find(|case| case.name == name).expect("the names are those of the cases");
    case.start(scale).expect("the organisms start")
}
