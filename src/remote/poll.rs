//! Polling: one page after the other, in order, with a cursor that survives the process.

use std::path::Path;
use std::time::Duration;

use super::BoxFuture;
use super::backoff::Backoff;
use super::cursor::Cursor;
use super::delivery::InboundDelivery;
use super::dispatch::Dispatcher;
use super::error::RemoteError;
use super::handler::Handler;
use super::mailbox::{LONGEST_WAIT, Mailbox};

/// Wait between batches where the gateway isn't asked to wait.
const INTERVAL: Duration = Duration::from_secs(5);

/// Reads a mailbox page by page.
///
/// - One batch for each [`run_once`](InboundDelivery::run_once), oldest first.
/// - The cursor moves past each message that was dispatched, also if its handler failed: its caller gets an
///   `agent-error`, and it is one of the mailbox's dead letters.
/// - A lost cursor is cleared, also on disk; the next batch begins with the messages that are left.
/// - A message without an id or a text doesn't stop the others.
/// - A message that has an answer by now, or whose caller has gone, is skipped.
///
/// One reader for each mailbox; several share it by a [`LeaseDelivery`](super::LeaseDelivery) each. Redriven dead
/// letters are for those alone: they stand behind the cursor.
#[derive(Debug)]
pub struct PollDelivery {
    dispatcher: Dispatcher,
    limit: u32,
    wait: Duration,
    backoff: Backoff,
}

impl PollDelivery {
    /// Reads from the oldest message on; 20 messages at a time, and a long poll of 60 s.
    pub fn new(mailbox: Mailbox) -> Self {
        let backoff = Backoff::new(mailbox.options().policy.clone());
        let dispatcher = Dispatcher::new(mailbox, Cursor::in_memory());
        Self { dispatcher, limit: 20, wait: LONGEST_WAIT, backoff }
    }

    /// Continues at the cursor in a file, which is replaced after each message.
    ///
    /// # Errors
    /// [`RemoteError::Cursor`] if the file can't be read, or holds something else.
    pub fn cursor_file(mut self, file: &Path) -> Result<Self, RemoteError> {
        self.dispatcher.cursor = Cursor::open(file)?;
        Ok(self)
    }

    /// Messages of one batch: 1 to 500.
    #[must_use]
    pub fn limit(self, limit: u32) -> Self {
        Self { limit: limit.clamp(1, 500), ..self }
    }

    /// Time for which the gateway waits for a message, in whole seconds: 60 at most. With 0, batches come every 5 s.
    #[must_use]
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait: wait.min(LONGEST_WAIT), ..self }
    }

    async fn batch(&mut self, handler: &dyn Handler) -> Result<usize, RemoteError> {
        self.dispatcher.catch_up().await?;
        let Dispatcher { mailbox, cursor, .. } = &self.dispatcher;
        let page = match mailbox.page(cursor.place(), self.limit, self.wait).await {
            Err(error) if error.status() == Some(410) => {
                self.dispatcher.begin_anew().await?;
                return Ok(0);
            }
            page => page?,
        };
        let mut handled = 0;
        for item in &page.items {
            handled += usize::from(self.dispatcher.dispatch(item, handler).await?);
        }
        self.leave(page.next, page.items.is_empty()).await?;
        Ok(handled)
    }

    /// Moves to the end of the page, which covers items without a cursor of their own.
    async fn leave(&mut self, next: Option<String>, empty: bool) -> Result<(), RemoteError> {
        let cursor = &mut self.dispatcher.cursor;
        match next {
            Some(next) if !empty && cursor.place() != Some(&next) => cursor.move_to(&next).await,
            None if !empty && cursor.place().is_none() => {
                let problem = "neither its items nor the page have a cursor: it would come again for ever".to_owned();
                Err(RemoteError::Unusable { what: "the page of the mailbox".to_owned(), problem })
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl InboundDelivery for PollDelivery {
    fn run_once<'a>(&'a mut self, handler: &'a dyn Handler) -> BoxFuture<'a, Result<usize, RemoteError>> {
        Box::pin(async move {
            let batch = self.batch(handler).await;
            self.backoff.note(batch)
        })
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn interval(&self) -> Duration {
        self.backoff.wait(if self.wait.is_zero() { INTERVAL } else { Duration::ZERO })
    }
}
