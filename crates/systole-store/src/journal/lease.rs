//! The lease of an organism that several nodes can run, as a store keeps it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use systole_core::journal::JournalError;
use systole_core::lease::{Answer, Ask, Holder};
use uuid::Uuid;

/// A node of an organism, as the others know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCard {
    /// Its name.
    pub name: Arc<str>,
    /// The URL by which the others reach its gateway.
    pub url: Arc<str>,
    /// The random id of its process.
    pub process: Uuid,
    /// The length of its leases.
    pub lease: Duration,
}

/// The future of an answer; it stays on the thread that asked.
pub type Asking<'a, T> = Pin<Box<dyn Future<Output = Result<T, JournalError>> + 'a>>;

/// The lease in a store, for one node. Questions are asked one after the other, on one runtime of tokio.
pub trait LeaseStore: fmt::Debug + Send {
    /// Asks a question, in one attempt.
    ///
    /// # Errors
    /// [`JournalError`] if there is no answer; what was asked may have been done.
    ///
    /// # Cancel safety
    /// Dropping the future gives the question up; what was asked may have been done, or be done later.
    fn ask(&mut self, ask: Ask) -> Asking<'_, Answer>;

    /// Lists the nodes that asked within the last three lengths of a lease, this one among them.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    fn nodes(&mut self) -> Asking<'_, Vec<SeenNode>>;
}

/// A node that has asked for the lease, or renewed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenNode {
    /// Its name.
    pub name: Arc<str>,
    /// The URL by which the others reach it.
    pub url: Arc<str>,
    /// The random id of its process.
    pub process: Uuid,
    /// The time since its last question, by the clock of the database.
    pub ago: Duration,
}

/// The nodes of an organism, as the store knows them at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterState {
    /// The lease; none if no node was ever there.
    pub lease: Option<LeaseState>,
    /// The nodes, by name.
    pub nodes: Vec<SeenNode>,
}

/// The lease, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseState {
    /// The node that has it, or had it last.
    pub holder: Holder,
    /// The time since it was taken.
    pub since: Duration,
    /// The number of the last start in the life of the journal.
    pub epoch: i64,
}
