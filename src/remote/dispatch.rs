//! From an item to its outcome: shared by all deliveries that read a mailbox in order, with a cursor.
//!
//! The cursor moves past a message once its outcome is reported, also when it failed: no message blocks those behind
//! it. An outcome that can't be reported, because the gateway is away, is kept and reported at the begin of the next
//! batch; its handler doesn't run again.

use serde_json::Value;
use systole_core::vocab::MessageId;

use super::cursor::Cursor;
use super::error::RemoteError;
use super::handler::{Failed, Handled, Handler, handle};
use super::inbound::{Inbound, Item};
use super::mailbox::Mailbox;
use super::source::Source;

/// Refusals of an outcome, without a final reason, before it is given up: no message may block a mailbox for ever.
const REFUSALS: u32 = 5;

/// Outcome of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Reply(String),
    Fail(String),
    /// The message ends without a reply.
    Nothing,
    /// The handler's program answers later.
    Later,
}

/// An outcome that is not reported yet.
#[derive(Debug)]
struct UnreportedOutcome {
    id: MessageId,
    outcome: Outcome,
    cursor: Option<String>,
    refusals: u32,
}

/// Handles items one after the other, and keeps the cursor.
#[derive(Debug)]
pub(super) struct Dispatcher {
    pub(super) mailbox: Mailbox,
    pub(super) cursor: Cursor,
    unreported: Option<UnreportedOutcome>,
}

impl Dispatcher {
    pub(super) fn new(mailbox: Mailbox, cursor: Cursor) -> Self {
        Self { mailbox, cursor, unreported: None }
    }

    /// Handles an item if it waits; false if it doesn't.
    pub(super) async fn dispatch(&mut self, item: &Value, handler: &dyn Handler) -> Result<bool, RemoteError> {
        self.catch_up().await?;
        let Item { id, cursor, waits, message } = Item::read(item);
        let (Some(id), true) = (id, waits) else {
            if waits {
                tracing::warn!("a message without an id is passed over");
            }
            self.pass(cursor).await?;
            return Ok(false);
        };
        let (outcome, dispatched) = match message {
            Ok(message) => (outcome(handler, message).await, true),
            Err(broken) => (Outcome::Fail(broken.to_string()), false),
        };
        if let Outcome::Fail(why) = &outcome {
            tracing::warn!(%id, error = %why, "a message failed");
        }
        self.unreported = Some(UnreportedOutcome { id, outcome, cursor, refusals: 0 });
        self.catch_up().await?;
        Ok(dispatched)
    }

    /// Reports the outcome that could not be reported before, and moves on.
    pub(super) async fn catch_up(&mut self) -> Result<(), RemoteError> {
        let Some(unreported) = &mut self.unreported else { return Ok(()) };
        if let Err(error) = say(&self.mailbox, unreported.id, &unreported.outcome).await {
            unreported.refusals += u32::from(error.status().is_some_and(|status| status >= 500));
            if error.is_unauthorized() || unreported.refusals < REFUSALS {
                return Err(error);
            }
            tracing::error!(id = %unreported.id, %error, "an outcome can't be reported: its caller gets no answer");
        }
        let cursor = self.unreported.take().and_then(|unreported| unreported.cursor);
        self.pass(cursor).await
    }

    /// Drops a lost cursor: the next batch begins with the messages that are left.
    pub(super) async fn begin_anew(&mut self) -> Result<(), RemoteError> {
        tracing::warn!("the cursor is lost: reading goes on with the oldest message that is left");
        self.cursor.clear().await
    }

    async fn pass(&mut self, cursor: Option<String>) -> Result<(), RemoteError> {
        match cursor {
            Some(place) => self.cursor.move_to(&place).await,
            None => Ok(()),
        }
    }
}

async fn outcome(handler: &dyn Handler, message: Inbound) -> Outcome {
    let source = message.source.clone();
    of(handle(handler, message).await, &source)
}

/// The outcome of a handler's result: a reply needs a source that it can go to.
pub(super) fn of(handled: Result<Handled, Failed>, source: &Source) -> Outcome {
    match handled {
        Ok(Handled::Later) => Outcome::Later,
        Ok(Handled::Reply(text)) if text.trim().is_empty() => Outcome::Nothing,
        Ok(Handled::Reply(text)) => {
            source.transport().map_or_else(|unknown| Outcome::Fail(unknown.to_string()), |_| Outcome::Reply(text))
        }
        Err(failed) => Outcome::Fail(failed.why),
    }
}

/// Reports the outcome of a message. A message that has another answer by now, or whose caller no longer waits, is no
/// error; a reply that is refused for good becomes a failure.
pub(super) async fn say(mailbox: &Mailbox, id: MessageId, outcome: &Outcome) -> Result<(), RemoteError> {
    let said = match outcome {
        Outcome::Nothing => mailbox.done(id).await,
        Outcome::Later => mailbox.keep(id).await,
        Outcome::Fail(why) => mailbox.fail(id, why).await,
        Outcome::Reply(text) => match mailbox.reply(id, text.clone()).await {
            Err(error) if error.is_final() && error.status() != Some(409) => {
                tracing::warn!(%id, %error, "a reply is refused");
                mailbox.fail(id, &format!("the reply of the agent was refused: {error}")).await
            }
            said => said,
        },
    };
    match said {
        Err(error) if error.is_final() => {
            tracing::warn!(%id, %error, "no caller waits for the answer to a message, or it has another one");
            Ok(())
        }
        said => said,
    }
}
