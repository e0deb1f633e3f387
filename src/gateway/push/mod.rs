//! Pushing: the messages of listeners that are sent to, by way of [`Outbound`](crate::outbound::Outbound).
//!
//! A message waits in its mailbox as any other does; its delivery waits in the outbox under the same id. Whatever ends
//! the delivery ends the message, in that order: so a start after a crash finds a delivery that goes on, or one that
//! has ended and whose end is told now. A message that has been answered, or that nobody waits for any more, is not
//! sent any further. What is for a listener that rests stays in its mailbox alone until it works.
//!
//! Not here: when something is sent again, and where it may be sent: `docs/outbound.md`.

mod answer;
mod courses;
mod lane;
mod places;

use crate::vocab::{MessageId, Name};

pub(super) use courses::Pusher;
pub use places::PushError;
pub(super) use places::{Places, guard};

/// What is to be done about messages that are pushed.
#[derive(Debug)]
pub(super) enum Order {
    /// It waits in its mailbox.
    Push(MessageId),
    /// It was answered otherwise.
    Answered(MessageId),
    /// Nobody waits for it any more.
    Abandon(MessageId),
    /// Those of a listener go elsewhere from now on.
    Move(Name, String),
    /// A listener was told to rest, and nothing more is sent to it; or to work again.
    Presence(Name),
}
