//! Ends of deliveries that no handle has seen.

use tokio::sync::watch;

use super::error::OutboxError;
use super::outbox::{OutboxWriter, SettledDelivery};

/// Deliveries that ended without a handle: it was dropped, or held by a process that has ended.
///
/// Each comes at least once: again after each start, until it is acknowledged with
/// [`Outbound::acknowledge`](super::Outbound::acknowledge) or its retention is over.
#[derive(Debug)]
pub struct Outcomes {
    writer: OutboxWriter,
    news: watch::Receiver<u64>,
    /// The turn of the last outcome that came.
    turn: i64,
}

impl Outcomes {
    pub(super) fn new(writer: OutboxWriter, news: watch::Receiver<u64>) -> Self {
        Self { writer, news, turn: 0 }
    }

    /// The next outcome, in the order in which the deliveries ended; waits until there is one.
    ///
    /// # Errors
    /// [`OutboxError`] if the outbox can't be read, or is closed.
    ///
    /// # Cancel safety
    /// The future can be dropped, and the method called again.
    pub async fn next(&mut self) -> Result<SettledDelivery, OutboxError> {
        loop {
            self.news.borrow_and_update();
            let after = self.turn;
            if let Some((turn, settled)) = self.writer.run(move |outbox| outbox.untold(after)).await? {
                self.turn = turn;
                return Ok(settled);
            }
            self.news.changed().await.map_err(|_| OutboxError::Closed)?;
        }
    }
}
