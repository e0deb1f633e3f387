use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use systole_core::vocab::{MessageId, Name, Time};

use super::delivery::Delivery;
use super::error::{OutboxError, Outcome};

/// Future of a [`DeliveryStore`].
pub(crate) type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, OutboxError>> + Send + 'a>>;

/// Durable state of deliveries, as far as sending them needs it: the outbox, or the mailboxes of an organism.
///
/// What a future says is durable when it is ready; once polled it happens, whether it is awaited or not.
pub(crate) trait DeliveryStore: fmt::Debug + Send + Sync + 'static {
    /// The delivery to a target whose turn it is.
    fn head(&self, target: Name) -> Stored<'_, Option<Job>>;

    /// Notes that an attempt begins, before it does; `false` if the delivery is not wanted any more.
    fn begin(&self, id: MessageId, attempts: u32, spent: Duration) -> Stored<'_, bool>;

    /// Notes that an attempt failed, and the time of the next one; `false` as above.
    fn back_off(&self, id: MessageId, until: Time, error: String, spent: Duration) -> Stored<'_, bool>;

    /// Notes the end of a delivery; `false` as above. `told`: whether its sender hears of it now.
    fn settle(&self, id: MessageId, outcome: Outcome, spent: Duration, now: Time, told: bool) -> Stored<'_, bool>;
}

/// A delivery whose turn has come.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) delivery: Delivery,
    /// Attempts that were begun.
    pub(crate) attempts: u32,
    /// Time that it took of its budget.
    pub(crate) spent: Duration,
    /// Time of its next attempt; none if at once.
    pub(crate) next: Option<Time>,
    /// Reason why its last attempt failed.
    pub(crate) last_error: Option<String>,
}
