//! Records of the mailboxes of remote listeners, and of the submissions of clients over a network.

use std::sync::Arc;

use bytes::Bytes;

use super::Number;
use crate::vocab::{MessageId, Name, QName, ThreadId, Time};

/// A message in the mailbox of a remote listener, as it came: this part never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailRecord {
    /// Place in the order of arrival, over all mailboxes; never given twice in the life of a journal.
    pub seq: Number,
    /// Listener whose mailbox it is in.
    pub mailbox: Name,
    /// Id of the message in the pump.
    pub id: MessageId,
    /// Thread of the listener.
    pub thread: ThreadId,
    /// Sender, as stamped by the pump.
    pub from: Name,
    /// Message that this one answers.
    pub in_reply_to: Option<MessageId>,
    /// Qualified name of the payload.
    pub payload: QName,
    /// Canonical envelope.
    pub envelope: Bytes,
    /// Time of arrival.
    pub at: Time,
}

/// Delivery status of a message in a mailbox: each later one replaces the one before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MailStatus {
    /// State of the message.
    pub state: MailState,
    /// Attempts to deliver it so far: leases, or requests to push it.
    pub deliveries: u32,
    /// Earliest time of the next delivery; [`Time::MAX`] while a reader holds the message without a time limit.
    pub due: Time,
    /// Receipt of the lease or hold that is in force, and of the one under which the message ended.
    pub receipt: Option<[u8; 16]>,
    /// Time that attempts to push it took so far, in nanoseconds.
    pub spent: u64,
    /// Last error that a reader or an attempt reported.
    pub error: Option<Arc<str>>,
    /// Answer of the listener: bytes of a reply, or text of a failure.
    pub answer: Option<Bytes>,
}

/// State of a message in a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum MailState {
    /// Unanswered: the pump waits for an answer.
    #[default]
    Waiting,
    /// Unanswered, and redriven from the dead letters: its caller has had an answer, so the pump waits for none.
    Redriven,
    /// Answered with a reply.
    Replied,
    /// Done without a reply.
    Acked,
    /// Given up by its reader, without a reply.
    Terminated,
    /// Failed, or delivered too often: a dead letter of its mailbox.
    Dead,
    /// Abandoned by the pump: its caller has gone, or its thread has closed.
    Gone,
}

impl MailState {
    /// Every state.
    pub const ALL: [Self; 7] =
        [Self::Waiting, Self::Redriven, Self::Replied, Self::Acked, Self::Terminated, Self::Dead, Self::Gone];

    /// Name of the state in the journal.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Redriven => "redriven",
            Self::Replied => "replied",
            Self::Acked => "acked",
            Self::Terminated => "terminated",
            Self::Dead => "dead",
            Self::Gone => "gone",
        }
    }

    /// State of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Returns whether an answer can still come.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Redriven)
    }

    /// Returns whether the message has ended for good: its rows are kept for the retention alone.
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Waiting | Self::Redriven | Self::Dead)
    }
}

/// A message of a mailbox that has not ended: waiting, redriven or dead. Without its envelope, which readers look up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenMail {
    /// Place in the order of arrival.
    pub seq: Number,
    /// Listener whose mailbox it is in.
    pub mailbox: Name,
    /// Id of the message in the pump.
    pub id: MessageId,
    /// The thread of the message.
    pub thread: ThreadId,
    /// Sender.
    pub from: Name,
    /// Size of the envelope, in bytes.
    pub bytes: u64,
    /// The time at which it came.
    pub at: Time,
    /// Delivery status.
    pub status: MailStatus,
}

/// Presence of a remote listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRecord {
    /// Listener.
    pub name: Name,
    /// Time since which an operator has it paused.
    pub paused: Option<Time>,
    /// Last registration.
    pub registered: Option<Registration>,
}

/// The principal that gets a listener's answers without an addressee: never another person than the first, and none for
/// good once such an answer could be for two messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddresseeRecord {
    /// Mailbox of the listener.
    pub mailbox: Name,
    /// The addressee; `None` if a late answer could be for several.
    pub person: Option<Name>,
}

/// Registration of a remote listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Time of the registration.
    pub at: Time,
    /// Mode of delivery: `poll`, `stream` or `push`.
    pub mode: Arc<str>,
    /// URL that messages are pushed to, instead of the declared one.
    pub url: Option<Arc<str>>,
    /// URL that the configuration declared at that time: a registration ends when that changes.
    pub declared: Option<Arc<str>>,
}

/// A message that a client submitted over a network. It is written in the step in which the pump takes the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionRecord {
    /// Id that the client knows it by: the label of its envelope, and the `in-reply-to` of its answers.
    pub id: MessageId,
    /// Client.
    pub client: Name,
    /// Conversation that it opened; its answers are the messages that left there.
    pub root: ThreadId,
    /// Idempotency key of the request, and the BLAKE3 digest of its body.
    pub key: Option<(Arc<str>, [u8; 32])>,
}
