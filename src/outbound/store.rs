//! The store of deliveries that an engine sends.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use systole_core::vocab::{MessageId, Name, Time};

use super::delivery::OutboundDelivery;
use super::error::DeliveryOutcome;
use crate::runtime::OpenWork;

/// Future of a [`DeliveryStore`].
pub(crate) type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreClosed>> + Send + 'a>>;

/// Durable state of deliveries, as far as sending them needs it: the mailboxes of an organism.
///
/// The effect of a future is durable when it is ready; once polled it happens, whether it is awaited or not.
pub(crate) trait DeliveryStore: fmt::Debug + Send + Sync + 'static {
    /// The next delivery to a target.
    fn head(&self, target: Name) -> Stored<'_, Option<Job>>;

    /// Notes that an attempt begins, before it does; none if the delivery was ended elsewhere.
    fn begin(&self, id: MessageId, attempts: u32, spent: Duration) -> Stored<'_, Option<Begun>>;

    /// Notes that an attempt failed, and the time of the next one; `false` if the delivery was ended elsewhere.
    fn back_off(&self, id: MessageId, until: Time, error: String, spent: Duration) -> Stored<'_, bool>;

    /// Notes the end of a delivery, unless it was ended elsewhere, and logs one that was given up.
    fn settle(&self, id: MessageId, outcome: DeliveryOutcome) -> Stored<'_, ()>;
}

/// The store takes no more notes: it is closed, or has failed and logged that.
#[derive(Debug)]
pub(crate) struct StoreClosed;

/// An attempt in flight, from before it is noted until its outcome is. An organism that ends in order waits for it.
#[derive(Debug, Default)]
pub(crate) struct Begun(#[expect(dead_code, reason = "it is there until it is dropped")] pub(crate) Option<OpenWork>);

/// A delivery that is next for its target.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) delivery: OutboundDelivery,
    /// Attempts that were begun.
    pub(crate) attempts: u32,
    /// Time that the delivery took of its budget.
    pub(crate) spent: Duration,
    /// Time of the next attempt; none if at once.
    pub(crate) next: Option<Time>,
    /// Reason why the last attempt failed.
    pub(crate) last_error: Option<String>,
}
