//! Waits for processes, with a deadline whose failure names the condition.

// Not every test needs both.
#![allow(dead_code)]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time limit of a wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `done` gives a value.
pub(crate) fn until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        std::thread::yield_now();
    }
}

/// Checks whether a process runs: a zombie that waits for its parent, which may not be the test, doesn't.
pub(crate) fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}
