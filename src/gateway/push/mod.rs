//! Pushes of messages to listeners, by the engine of [`crate::outbound`].
//!
//! Deliveries have no store of their own: the engine takes the next message from its mailbox, and notes its attempts
//! there. The end of a delivery is the end of its message.
//!
//! Not here: when a message is sent again, and which addresses are allowed: `docs/outbound.md`.

mod answer;
mod endpoints;
mod format;
mod store;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

pub use endpoints::PushError;
pub(super) use endpoints::{Endpoints, may_register};
pub use format::PushFormat;
pub(super) use store::MailStore;

use super::service::{MailboxService, Push};
use crate::outbound::Engine;

/// Time for the attempts in flight when the gateway ends before its organism.
const GRACE: Duration = Duration::from_secs(2);

/// Sender of the messages of all listeners that messages are pushed to.
pub(super) struct PushScheduler {
    engine: Engine,
    mailboxes: MailboxService,
    news: mpsc::UnboundedReceiver<Push>,
}

impl PushScheduler {
    /// Starts the engine; answers have at most `answer` bytes. `None` if the organism has not started, or another
    /// engine runs.
    pub(super) fn new(store: MailStore, answer: usize) -> Result<Option<Self>, PushError> {
        let mailboxes = store.mailboxes.clone();
        let (Some(news), Some(clock)) = (mailboxes.pushes(), mailboxes.clock()) else { return Ok(None) };
        let options = store.endpoints.options(answer, store.organism.identity().cloned());
        let engine = Engine::start(Arc::new(store), options, clock.clone())?;
        Ok(Some(Self { engine, mailboxes, news }))
    }

    /// Pushes until `end` is true; the messages that are left wait for the next start.
    pub(super) async fn run(mut self, mut end: watch::Receiver<bool>) {
        let pushed = self.mailboxes.modes().map(|(name, _)| name).filter(|name| self.mailboxes.is_pushed(name));
        pushed.for_each(|name| self.engine.wake(name.clone()));
        loop {
            tokio::select! {
                _ = end.wait_for(|end| *end) => break,
                Some(news) = self.news.recv() => match news {
                    Push::Wake(name) => self.engine.wake(name),
                    Push::Withdraw(name, id) => self.engine.stop(&name, id),
                    Push::Answered(name, id) => self.engine.finish(&name, id),
                    Push::Move(name) => {
                        self.engine.move_target(&name);
                        // Messages may have waited for the first URL that the listener registers.
                        self.engine.wake(name);
                    }
                },
            }
        }
        // The organism has waited for them; outcomes can't be written any more.
        let grace = if self.mailboxes.is_sealed() { Duration::ZERO } else { GRACE };
        self.engine.close(grace).await;
    }
}
