//! Helpers of the tests of the program.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
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

/// A folder of a test, removed when the test drops it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes a folder that no other test has, with `name` in its path.
    pub(crate) fn new(name: &str) -> Self {
        let path = fresh(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
