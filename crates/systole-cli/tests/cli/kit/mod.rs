//! Helpers of the tests of the program.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) mod running;
pub(crate) mod waiting;
pub(crate) mod worker;

/// A path in the temporary folder that no other test has, with `name` in it.
pub(crate) fn fresh(name: &str) -> PathBuf {
    static PATHS: AtomicUsize = AtomicUsize::new(0);
    let (process, number) = (std::process::id(), PATHS.fetch_add(1, Ordering::Relaxed));
    std::env::temp_dir().join(format!("systole-{process}-{number}-{name}"))
}

/// Checks that a text has these parts.
#[track_caller]
pub(crate) fn has(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "no {part} in {text}"));
}
