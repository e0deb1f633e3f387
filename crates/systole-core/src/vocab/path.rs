//! Thread paths: the listeners from the root to a thread.

use std::fmt;

use super::Name;

/// The listeners from the root to a thread, such as `root/researcher/calculator#2`.
///
/// Paths are for operators only: a listener never sees one. The ordinal counts the threads of one listener
/// that one parent has opened, whether or not they are still open; the first is not written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ThreadPath(Vec<(Name, u32)>);

impl ThreadPath {
    /// A path from its segments below the root, outermost first; ordinals count from 1.
    pub fn new(segments: Vec<(Name, u32)>) -> Self {
        Self(segments)
    }

    /// The segments below the root.
    pub fn segments(&self) -> &[(Name, u32)] {
        &self.0
    }
}

impl fmt::Display for ThreadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("root")?;
        for (name, ordinal) in &self.0 {
            write!(f, "/{name}")?;
            if *ordinal > 1 {
                write!(f, "#{ordinal}")?;
            }
        }
        Ok(())
    }
}
