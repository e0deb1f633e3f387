//! The end of an organism by itself: a thread that it can't do without has failed.
//!
//! The first reason counts. All shards are told: each client that waits gets a fault, and nothing more is taken. Who
//! runs the organism awaits [`Organism::broken`](super::Organism::broken) and ends it; its journal holds all that was
//! confirmed.

use systole_core::journal::JournalError;

#[cfg(feature = "gateway")]
use super::link::Links;

/// Why an organism can't go on.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum Breakdown {
    /// The journal of the organism can't be written.
    #[error("the journal can't be written: {0}")]
    Journal(JournalError),
    /// One of its threads has ended by itself.
    #[error("'{name}' has ended by itself ({why})")]
    Thread {
        /// The thread, or the work that it does.
        name: String,
        /// The reason, as far as it is known.
        why: String,
    },
}

systole_core::vocab::debug_is_display!(Breakdown);

/// A piece of work without which an organism can't go on. If it panics while it has this, the organism breaks down.
#[cfg(feature = "gateway")]
pub(crate) struct Vital {
    links: Links,
    name: &'static str,
}

#[cfg(feature = "gateway")]
impl Vital {
    pub(super) fn new(links: Links, name: &'static str) -> Self {
        Self { links, name }
    }

    /// The work has ended before the organism did.
    pub(crate) fn fail(&self, why: impl std::fmt::Display) {
        self.links.break_down(Breakdown::Thread { name: self.name.to_owned(), why: why.to_string() });
    }

    /// Does the work.
    pub(crate) async fn keep<T>(self, work: impl Future<Output = T>) -> T {
        // A panic drops this on its way out.
        work.await
    }
}

#[cfg(feature = "gateway")]
impl Drop for Vital {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "it panicked: see above".to_owned();
            self.links.break_down(Breakdown::Thread { name: self.name.to_owned(), why });
        }
    }
}
