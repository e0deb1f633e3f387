//! Inputs of the machine, and its changes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::journal::{MailRecord, MailState, Number, Op, Registration};
use crate::vocab::{MessageId, Name, Time};

/// Way in which the messages of a mailbox get to their listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryMode {
    /// The listener asks for them: by polls, leases or streams.
    Pulled,
    /// Messages are sent to the listener.
    Pushed,
}

/// Inputs of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailboxInput {
    /// Time has passed: leases end.
    Tick,
    /// The pump has a message for a listener and waits for its end. Its place is given here. The pump runs a message
    /// again after a restart: then it is known.
    Arrived(MailRecord),
    /// An answer to a client is put into a mailbox, to be read there. It has ended from the start.
    AnswerCopy(MailRecord),
    /// The handler of a message is gone, and the pump will run the message again: its core has given the conversation up.
    /// An end that was not durable did not happen.
    Moved {
        /// The message.
        id: MessageId,
    },
    /// The pump waits for a message no more.
    Abandoned {
        /// The message.
        id: MessageId,
    },
    /// The listener ends a message. It needs no lease.
    Settle {
        /// The message.
        id: MessageId,
        /// End of the message.
        settlement: Settlement,
    },
    /// The listener ends a message without a reply and without a receipt. Refused while a reader has the message by a
    /// lease or a hold: only that reader's receipt ends it so.
    Acknowledge {
        /// The mailbox.
        mailbox: Name,
        /// The message.
        id: MessageId,
    },
    /// The listener has handled the messages of a mailbox up to a place: messages that it passed over without an
    /// answer end without one.
    Passed {
        /// The mailbox.
        mailbox: Name,
        /// Last place that it has read.
        through: Number,
    },
    /// The listener has read these messages, and goes on without an answer: they are done without one.
    Skipped {
        /// The mailbox.
        mailbox: Name,
        /// The messages.
        ids: Vec<MessageId>,
    },
    /// The end of a message is durable: it is forgotten.
    Durable {
        /// The message.
        id: MessageId,
    },
    /// A reader leases the oldest free messages, as many as there are receipts.
    Lease {
        /// The mailbox.
        mailbox: Name,
        /// Duration of the lease.
        visibility: Duration,
        /// Receipts, which can't be guessed.
        receipts: Vec<[u8; 16]>,
    },
    /// A reader's action on a message that it holds.
    Handle {
        /// The mailbox.
        mailbox: Name,
        /// The message.
        id: MessageId,
        /// Receipt of its lease.
        receipt: [u8; 16],
        /// The reader's action on the message.
        action: Action,
    },
    /// A reader in order holds a free message without a time limit, and answers later.
    Keep {
        /// The mailbox.
        mailbox: Name,
        /// The message.
        id: MessageId,
        /// Receipt, which can't be guessed.
        receipt: [u8; 16],
    },
    /// Dead letters of a mailbox go behind its last message, to be delivered again.
    Redrive {
        /// The mailbox.
        mailbox: Name,
        /// A dead letter; all of them if it is absent.
        id: Option<MessageId>,
    },
    /// Dead letters of a mailbox are deleted.
    Discard {
        /// The mailbox.
        mailbox: Name,
        /// A dead letter; all of them if it is absent.
        id: Option<MessageId>,
    },
    /// A session takes the oldest free messages, until it confirms or releases them.
    Reserve {
        /// The mailbox.
        mailbox: Name,
        /// The session.
        session: [u8; 16],
        /// Token that they are confirmed by.
        token: [u8; 16],
        /// Messages at most.
        rows: usize,
        /// Bytes of envelopes at most, past the first message.
        bytes: u64,
    },
    /// A session confirms the messages that it took under a token: they end without a reply.
    Confirm {
        /// The session.
        session: [u8; 16],
        /// The token.
        token: [u8; 16],
    },
    /// Frees the messages that a session had reserved.
    Release {
        /// The session.
        session: [u8; 16],
        /// A token; all of them if it is absent.
        token: Option<[u8; 16]>,
    },
    /// An attempt to push a message begins.
    Attempt {
        /// The message.
        id: MessageId,
        /// Attempts, with this one.
        attempts: u32,
        /// Time that it took so far.
        spent: Duration,
    },
    /// An attempt to push a message failed; the next one is due later.
    BackOff {
        /// The message.
        id: MessageId,
        /// Time of the next attempt.
        until: Time,
        /// Reason of the failure.
        error: Arc<str>,
        /// Time that it took so far.
        spent: Duration,
    },
    /// A listener that was pushed to has the message, and answers later.
    Taken {
        /// The message.
        id: MessageId,
    },
    /// An operator tells a listener to rest.
    Pause {
        /// The listener.
        name: Name,
    },
    /// An operator tells a listener to work again.
    Resume {
        /// The listener.
        name: Name,
    },
    /// A listener is shown a message of a person as the one that its answers without an addressee are for. The first such
    /// person is the addressee for good. [`MailboxChange::shown`] says whether the message may be shown so.
    Show {
        /// The mailbox.
        mailbox: Name,
        /// The message.
        id: MessageId,
        /// The sender of the message.
        person: Name,
    },
    /// A listener registers.
    Register {
        /// The listener.
        name: Name,
        /// Registration of the listener.
        registration: Registration,
    },
}

/// End of a message, as its listener reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// Bytes of a reply, dirty or not.
    Reply(Bytes),
    /// A failure: the caller gets an `agent-error`.
    Fail(Arc<str>),
    /// Done without a reply.
    Silent,
}

/// An action of a reader on a message that it has leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Acknowledges: the message ends without a reply.
    Ack,
    /// Gives the message back, to be delivered again from a time on.
    Nack {
        /// Reason.
        error: Option<Arc<str>>,
        /// Time of the next delivery.
        due: Time,
    },
    /// The lease goes on until a time.
    Extend {
        /// End of the lease.
        due: Time,
    },
    /// The reader keeps the message without a time limit, and answers later.
    Hold,
    /// Terminates the message: it is never delivered again, and ends without a reply.
    Term {
        /// Reason.
        error: Option<Arc<str>>,
    },
}

/// Effects of an input.
#[derive(Debug, Default, PartialEq)]
#[must_use = "operations are to be written, ends to be handed to the pump"]
pub struct MailboxChange {
    /// Operations for the journal.
    pub ops: Vec<Op>,
    /// Ends of messages that the pump waits for.
    pub ends: Vec<End>,
    /// Messages that ended, by operations in `ops`: [`MailboxInput::Durable`] follows when those are.
    pub ended: Vec<MessageId>,
    /// Mailboxes that have something new to read or to deliver.
    pub wakes: Vec<Name>,
    /// Messages that a lease or a reservation took.
    pub given: Vec<Given>,
    /// Messages that a session confirmed, and whether that ended them.
    pub confirmed: Vec<(MessageId, bool)>,
    /// Dead letters that were redriven or deleted.
    pub count: usize,
    /// Pushed messages that the pump no longer waits for: their attempts are broken off.
    pub withdrawn: Vec<(Name, MessageId)>,
    /// Pushed messages that are not to be tried again after the attempt that runs.
    pub answered: Vec<(Name, MessageId)>,
    /// States whether the input had taken effect before.
    pub repeated: bool,
    /// States whether an answer without an addressee can be for the message alone that is to be shown.
    pub shown: bool,
}

/// End of a message that the pump waits for.
#[derive(Debug, PartialEq)]
pub struct End {
    /// The message.
    pub id: MessageId,
    /// End of the message, which the pump judges like any emission.
    pub settlement: Settlement,
    /// Operations that are written in the step that consumes the message.
    pub ops: Vec<Op>,
}

/// A message that a reader got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Place in the mailbox.
    pub seq: Number,
    /// Id of the message.
    pub id: MessageId,
    /// Receipt or token that it is held by.
    pub receipt: [u8; 16],
}

/// Reason why an input has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// No such message is remembered, or no such mailbox is there.
    Unknown,
    /// The receipt is not that of the lease in force.
    Stale,
    /// The message has ended otherwise.
    Over(MailState),
    /// The mailbox is full: so many bytes wait in it.
    Full(u64),
    /// The pump has started and not run the message again yet: the same input is taken once it has.
    Early,
}
