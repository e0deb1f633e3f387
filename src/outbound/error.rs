//! Errors of deliveries.

use std::time::Duration;

use systole_core::vocab::{MessageId, Name};

use super::answer::DeliveryAnswer;
use super::cause::Cause;

/// The end of a delivery.
pub(crate) type DeliveryOutcome = Result<DeliveryAnswer, Undelivered>;

/// The report on a delivery that was given up.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("delivery {id} to {target} at {url}: {cause} after {attempts}/{limit} attempts in {elapsed:.1?}: {message}")]
pub(crate) struct Undelivered {
    /// The delivery.
    pub(crate) id: MessageId,
    /// The target.
    pub(crate) target: Name,
    /// The URL without its query.
    pub(crate) url: String,
    /// Reason why the delivery was given up.
    pub(crate) cause: Cause,
    /// The last message; never empty.
    pub(crate) message: String,
    /// Attempts that were begun.
    pub(crate) attempts: u32,
    /// Attempts that were allowed.
    pub(crate) limit: u32,
    /// Time that the delivery took of its budget.
    pub(crate) elapsed: Duration,
}

systole_core::vocab::debug_is_display!(Undelivered);

/// Reason why nothing can be sent.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OutboundError {
    /// The certificates to trust can't be read.
    #[error("the certificates to trust can't be read: give them as PEM: {0}")]
    Certificates(String),
    /// TLS or HTTP can't be set up.
    #[error("HTTP can't be set up: {0}")]
    Http(String),
}

systole_core::vocab::debug_is_display!(OutboundError);
