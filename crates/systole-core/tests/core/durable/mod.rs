//! The durable core, crashed at every place: a seeded simulation with a journal, a clock and listeners that are made
//! up.
//!
//! One history is a seed. `SYSTOLE_HISTORIES=1000000 cargo test --test core durable` runs more of them, `SYSTOLE_SEED=N`
//! runs one and prints what happens in it.

mod again;
mod client;
mod concluded;
mod listeners;
mod order;
mod random;
mod serial;
mod simulation;
mod slow;
mod store;
mod takeover;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use simulation::{KINDS, Simulation};

/// Histories, unless the environment sets another number. Without optimizations each takes much longer.
const HISTORIES: u64 = if cfg!(debug_assertions) { 4_000 } else { 100_000 };

#[test]
fn nothing_is_lost_or_doubled_in_any_history() {
    if let Some(seed) = number("SYSTOLE_SEED") {
        Simulation::new(seed, true).play();
        return;
    }
    let histories = number("SYSTOLE_HISTORIES").unwrap_or(HISTORIES);
    let next = AtomicU64::new(0);
    let totals = [const { AtomicU64::new(0) }; 3];
    let sent = [const { AtomicU64::new(0) }; KINDS.len()];
    let played = |worker: &dyn Fn() -> Option<u64>| {
        while let Some(seed) = worker() {
            let played = catch_unwind(AssertUnwindSafe(|| Simulation::new(seed, false).play()));
            match played {
                Ok((counts, kinds)) => {
                    for (total, count) in totals.iter().zip(counts).chain(sent.iter().zip(kinds)) {
                        total.fetch_add(count, Ordering::Relaxed);
                    }
                }
                Err(_) => panic!("history {seed} fails: SYSTOLE_SEED={seed} cargo test --test core durable shows it"),
            };
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                played(&|| {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    (seed < histories).then_some(seed)
                });
            });
        }
    });
    let [crashes, takeovers, meanwhile] = totals.map(AtomicU64::into_inner);
    println!("{histories} histories, {crashes} crashes, {takeovers} takeovers, {meanwhile} handlers meanwhile");
    assert!(crashes > histories / 4, "the histories hardly crash: {crashes} in {histories}");
    assert!(takeovers > histories / 4, "partitions hardly move: {takeovers} times in {histories}");
    assert!(meanwhile > histories / 40, "the others hardly go on: {meanwhile} handlers in {histories}");
    for (kind, count) in KINDS.iter().zip(sent.map(AtomicU64::into_inner)) {
        println!("{count} of the kind {kind}");
        assert!(count > histories / 400, "hardly an input of the kind {kind}: {count} in {histories}");
    }
}

#[test]
fn the_open_children_of_a_retried_thread_keep_their_places_in_paths() {
    Simulation::new(85_955, false).play();
}

#[test]
fn an_operator_opens_no_conversation_in_a_core_that_has_given_its_partitions_up() {
    Simulation::new(5226, false).play();
}

#[test]
fn a_retry_while_cores_recover_stands_behind_the_handlers_that_had_begun() {
    Simulation::new(21511, false).play();
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
