//! Waiting for processes, with a deadline that says what it waited for.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a test waits for something that has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The value that something comes to at last.
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

/// Whether a process still runs: no zombie that waits for its parent, who may not be us.
pub(crate) fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}
