use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use systole_core::vocab::{MessageId, Name};

use super::answer::Answer;
use super::cause::Cause;
use crate::shell::sqlite::Problem;

/// How a delivery has ended.
pub type Outcome = Result<Answer, Undelivered>;

/// A delivery that was given up.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("delivery {id} to {target} at {url}: {cause} after {attempts}/{limit} attempts in {elapsed:.1?}: {message}")]
pub struct Undelivered {
    /// The delivery.
    pub id: MessageId,
    /// Whom it was for.
    pub target: Name,
    /// Where it was sent, without the query.
    pub url: String,
    /// Why it was given up.
    pub cause: Cause,
    /// What was said last; never empty.
    pub message: String,
    /// Attempts that were begun.
    pub attempts: u32,
    /// Attempts that it had.
    pub limit: u32,
    /// What it took of its budget.
    pub elapsed: Duration,
}

systole_core::vocab::debug_is_display!(Undelivered);

/// Why an outbox can't be opened, read or written.
#[derive(Clone, thiserror::Error)]
pub enum OutboxError {
    /// Its file is not in order.
    #[error("outbox {}: {problem}", .file.display())]
    Store {
        /// The file.
        file: PathBuf,
        /// What is wrong with it, and what to do.
        problem: Arc<Problem>,
    },
    /// It was closed.
    #[error("the outbox is closed: what waits goes on when it is opened again")]
    Closed,
}

systole_core::vocab::debug_is_display!(OutboxError);

/// Why nothing can be sent.
#[derive(thiserror::Error)]
pub enum OutboundError {
    /// Its outbox can't be opened.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// What is to be trusted is no certificate.
    #[error("the certificates to trust can't be read: give them as PEM: {0}")]
    Certificates(String),
    /// TLS or HTTP can't be set up.
    #[error("HTTP can't be set up: {0}")]
    Http(String),
}

systole_core::vocab::debug_is_display!(OutboundError);
