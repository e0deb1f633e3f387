//! Errors of deliveries and of the outbox.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use systole_core::vocab::{MessageId, Name};

use super::answer::DeliveryAnswer;
use super::cause::Cause;
use crate::runtime::sqlite::FileProblem;

/// The end of a delivery.
pub type DeliveryOutcome = Result<DeliveryAnswer, Undelivered>;

/// The report on a delivery that was given up.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("delivery {id} to {target} at {url}: {cause} after {attempts}/{limit} attempts in {elapsed:.1?}: {message}")]
#[non_exhaustive]
pub struct Undelivered {
    /// The delivery.
    pub id: MessageId,
    /// The target.
    pub target: Name,
    /// The URL without its query.
    pub url: String,
    /// Reason why the delivery was given up.
    pub cause: Cause,
    /// The last message; never empty.
    pub message: String,
    /// Attempts that were begun.
    pub attempts: u32,
    /// Attempts that were allowed.
    pub limit: u32,
    /// Time that the delivery took of its budget.
    pub elapsed: Duration,
}

systole_core::vocab::debug_is_display!(Undelivered);

/// Reason why an outbox can't be opened, read or written.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OutboxError {
    /// The file of the outbox is unusable.
    #[error("outbox {}: {problem}", .file.display())]
    Store {
        /// The file.
        file: PathBuf,
        /// The problem, and its remedy.
        problem: Arc<FileProblem>,
    },
    /// The outbox was closed.
    #[error("the outbox is closed: waiting deliveries go on when it is opened again")]
    Closed,
}

systole_core::vocab::debug_is_display!(OutboxError);

/// Reason why nothing can be sent.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OutboundError {
    /// The outbox can't be opened.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// The certificates to trust can't be read.
    #[error("the certificates to trust can't be read: give them as PEM: {0}")]
    Certificates(String),
    /// TLS or HTTP can't be set up.
    #[error("HTTP can't be set up: {0}")]
    Http(String),
}

systole_core::vocab::debug_is_display!(OutboundError);
