//! Pushing: the messages of listeners that are sent to, by the sender of [`crate::outbound`].
//!
//! A delivery is no thing of its own: the sender asks the mailbox for the next message, and notes its attempts there.
//! The end of a delivery is the end of its message.
//!
//! Not here: when something is sent again, and where it may be sent: `docs/outbound.md`.

mod answer;
mod format;
mod places;
mod store;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

pub(crate) use format::PushFormat;
pub use places::PushError;
pub(super) use places::{Places, may_register};
pub(super) use store::MailStore;

use super::service::{MailboxService, Push};
use crate::outbound::Engine;
use crate::shell::journal::Journaled;

/// Time for attempts that run when the gateway ends.
const GRACE: Duration = Duration::from_secs(2);

/// Sender of the messages of all listeners that are pushed to.
pub(super) struct Pusher {
    engine: Engine,
    mailboxes: MailboxService,
    news: mpsc::UnboundedReceiver<Push>,
}

impl Pusher {
    /// Sets the sender up; answers may have that many bytes.
    pub(super) fn new(store: MailStore, journal: &Journaled, answer: usize) -> Result<Option<Self>, PushError> {
        let mailboxes = store.mailboxes.clone();
        let (Some(news), Some(clock)) = (mailboxes.pushes(), mailboxes.clock()) else { return Ok(None) };
        let options = store.places.options(journal, answer);
        let engine = Engine::start(Arc::new(store), options, clock.clone())?;
        Ok(Some(Self { engine, mailboxes, news }))
    }

    /// Pushes until it is told to end; what is left then waits for the next start.
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
                        // Messages may have waited for the first place that it names.
                        self.engine.wake(name);
                    }
                },
            }
        }
        self.engine.close(GRACE).await;
    }
}
