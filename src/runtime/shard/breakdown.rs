//! Breakdown of an organism: the failure of a thread that it depends on.
//!
//! The first reason counts. All shards are notified: each waiting client gets a fault, and the organism takes no more
//! messages. The program that runs the organism awaits [`Organism::broken`](crate::runtime::Organism::broken) and ends it; its
//! journal holds everything that was confirmed.

use systole_core::journal::JournalError;

#[cfg(feature = "gateway")]
use super::command::Links;

/// Reason why an organism can't go on.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Breakdown {
    /// The journal of the organism can't be written.
    #[error("the journal can't be written: {0}")]
    Journal(JournalError),
    /// The node has no lease on the organism any more: another one may run it.
    #[error("the lease of this node has ended")]
    Lapsed,
    /// A thread of the organism has ended by itself.
    #[error("'{name}' has ended by itself ({why})")]
    Thread {
        /// The thread, or its work.
        name: String,
        /// The reason, if known.
        why: String,
    },
}

systole_core::vocab::debug_is_display!(Breakdown);

/// Guard of work that an organism depends on. A panic while it is held breaks the organism down.
#[cfg(feature = "gateway")]
pub(crate) struct CriticalThread {
    links: Links,
    name: &'static str,
}

#[cfg(feature = "gateway")]
impl CriticalThread {
    pub(crate) fn new(links: Links, name: &'static str) -> Self {
        Self { links, name }
    }

    /// Breaks the organism down, because the work has ended too early.
    pub(crate) fn fail(&self, why: impl std::fmt::Display) {
        self.links.break_down(Breakdown::Thread { name: self.name.to_owned(), why: why.to_string() });
    }

    /// Runs the work under the guard.
    pub(crate) async fn keep<T>(self, work: impl Future<Output = T>) -> T {
        // A panic drops the guard on its way out.
        work.await
    }
}

#[cfg(feature = "gateway")]
impl Drop for CriticalThread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "it panicked: see above".to_owned();
            self.links.break_down(Breakdown::Thread { name: self.name.to_owned(), why });
        }
    }
}
