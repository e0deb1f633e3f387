//! Leases: one message after the other, each for one worker alone while it works on it.

use std::time::Duration;

use systole_core::vocab::MessageId;

use super::BoxFuture;
use super::backoff::Backoff;
use super::delivery::InboundDelivery;
use super::dispatch::{Outcome, of, say};
use super::error::RemoteError;
use super::handler::{Failed, Handler, handle};
use super::inbound::{Inbound, Item};
use super::mailbox::{LONGEST_WAIT, Leased, Mailbox};
use crate::outbound::retry::Policy;

/// Time of a lease, unless it is extended.
const VISIBILITY: Duration = Duration::from_secs(30);

/// Leases one message at a time, and extends the lease for as long as its handler runs.
///
/// - Several workers share a mailbox: each message is handled by one of them at a time.
/// - At least once: the message of a worker that ends is leased to the next one when its lease expires (30 s), 5 times
///   in all; then it is a dead letter, and its caller gets an `agent-error`.
/// - A handler without a reply ends the message: the contract's `silence` says whether its caller is notified.
/// - A handler that answers later ([`Handled::Later`](super::Handled::Later)) holds the message: no lease runs, no
///   other worker gets it, also after a start of the gateway or the end of this worker.
/// - [`Failed::for_now`] gives a message back, to come again after a back-off; every other failure ends it.
/// - A handler is dropped when its message is lost: its caller has gone, or another worker has leased it.
#[derive(Debug)]
pub struct LeaseDelivery {
    mailbox: Mailbox,
    visibility: Duration,
    wait: Duration,
    policy: Policy,
    backoff: Backoff,
}

impl LeaseDelivery {
    /// Shortest and longest lease.
    pub const LEASES: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(12 * 3600);

    /// Makes a delivery that waits 60 s for a message, and leases it for 30 s at a time.
    pub fn new(mailbox: Mailbox) -> Self {
        let policy = mailbox.options().policy.clone();
        let backoff = Backoff::new(policy.clone());
        Self { mailbox, visibility: VISIBILITY, wait: LONGEST_WAIT, policy, backoff }
    }

    /// Time of a lease, in whole seconds: at least 1, at most 12 h.
    #[must_use]
    pub fn visibility(self, visibility: Duration) -> Self {
        let visibility = visibility.clamp(*Self::LEASES.start(), *Self::LEASES.end());
        Self { visibility, ..self }
    }

    /// Time for which the gateway waits for a message, in whole seconds: 60 at most.
    #[must_use]
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait: wait.min(LONGEST_WAIT), ..self }
    }

    async fn one(&self, handler: &dyn Handler) -> Result<usize, RemoteError> {
        let Some(Leased { item, receipt }) = self.mailbox.lease(self.visibility, self.wait).await? else {
            return Ok(0);
        };
        let Item { id, message, .. } = item;
        let (id, message) = match (id, message) {
            (Some(id), Ok(message)) => (id, message),
            (Some(id), Err(broken)) => {
                tracing::warn!(%id, error = %broken, "a message failed");
                say(&self.mailbox, id, &Outcome::Fail(broken.to_string())).await?;
                return Ok(0);
            }
            (None, _) => {
                let problem = "a message was leased that has no id".to_owned();
                return Err(RemoteError::Unusable { what: "the lease".to_owned(), problem });
            }
        };
        tokio::select! {
            handled = self.handle(handler, message, &receipt) => handled?,
            lost = self.keep(id, &receipt) => tracing::warn!(%id, error = %lost, "a message was lost while it was handled"),
        }
        Ok(1)
    }

    async fn handle(&self, handler: &dyn Handler, message: Inbound, receipt: &str) -> Result<(), RemoteError> {
        let (id, source, deliveries) = (message.id, message.source.clone(), message.deliveries);
        let handled = handle(handler, message).await;
        if let Err(failed) = &handled {
            tracing::warn!(%id, error = %failed.why, "a message failed");
        }
        match handled {
            Err(Failed { why, later: true }) => {
                let delay = self.policy.backoff(deliveries.saturating_sub(1), 0.5);
                settled(id, self.mailbox.nack(id, receipt, &why, delay).await)
            }
            handled => match of(handled, &source) {
                Outcome::Nothing => settled(id, self.mailbox.ack(id, receipt).await),
                Outcome::Later => settled(id, self.mailbox.hold(id, receipt).await),
                outcome => say(&self.mailbox, id, &outcome).await,
            },
        }
    }

    /// Extends a lease again and again; returns when it is lost.
    async fn keep(&self, id: MessageId, receipt: &str) -> RemoteError {
        loop {
            tokio::time::sleep(self.visibility / 3).await;
            match self.mailbox.extend(id, receipt, self.visibility).await {
                Ok(()) => {}
                Err(error) if error.is_final() => return error,
                Err(error) => tracing::warn!(%id, %error, "a lease can't be extended at the moment"),
            }
        }
    }
}

/// Ignores a final refusal: the message may have ended, or another worker may have it.
fn settled(id: MessageId, done: Result<(), RemoteError>) -> Result<(), RemoteError> {
    match done {
        Err(error) if error.is_final() => {
            tracing::warn!(%id, %error, "a message was no longer this worker's");
            Ok(())
        }
        done => done,
    }
}

impl InboundDelivery for LeaseDelivery {
    fn run_once<'a>(&'a mut self, handler: &'a dyn Handler) -> BoxFuture<'a, Result<usize, RemoteError>> {
        Box::pin(async move {
            let one = self.one(handler).await;
            self.backoff.note(one)
        })
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn interval(&self) -> Duration {
        self.backoff.wait(if self.wait.is_zero() { Duration::from_secs(5) } else { Duration::ZERO })
    }
}
