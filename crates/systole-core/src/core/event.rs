//! Events for operators.

use std::sync::Arc;
use std::time::Duration;

use systole_xml::ladder::Repair;

use super::usage::Usage;
use crate::journal::Number;
use crate::vocab::{Amounts, Budget, Fault, FaultCode, MessageId, Name, QName, ThreadId, ThreadPath, Time};

/// Bytes of a text in an event: thousands of events may wait for their subscribers.
const SHOWN: usize = 4 << 10;

/// An event for operators: it holds thread paths, so it is never for listeners.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Event {
    /// The conversation; nil for an event of none.
    pub root: ThreadId,
    /// The thread: that of the root for an event of the whole conversation, nil for an event of none.
    pub thread: ThreadId,
    /// The path of the thread; the listener alone where it belongs to no conversation.
    pub path: ThreadPath,
    /// The time of the step that caused the event, on the clock of the organism.
    pub at: Time,
    /// The kind of the event.
    pub kind: EventKind,
}

impl Event {
    /// Makes an event of a thread of a conversation.
    pub fn new((root, thread): (ThreadId, ThreadId), path: ThreadPath, at: Time, kind: EventKind) -> Self {
        Self { root, thread, path, at, kind }
    }
}

/// The kind of an event.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum EventKind {
    /// A client's message was taken.
    Injected {
        /// The message.
        message: MessageId,
        /// The client.
        from: Name,
        /// The sender that the bytes claimed, where it is another one.
        claimed: Option<String>,
    },
    /// A question to a person waits: nobody can answer it here.
    Unattended {
        /// The listener.
        by: Name,
    },
    /// A listener's handler got a message.
    Delivered {
        /// The message.
        message: MessageId,
        /// The sender.
        from: Name,
        /// The message that it answers.
        in_reply_to: Option<MessageId>,
        /// The payload; `None` for a fault.
        payload: Option<QName>,
        /// Earlier runs of the handler on this message that ended with their process, if there were any.
        attempts: Option<u8>,
    },
    /// A handler emitted a payload.
    Emitted {
        /// The payload.
        payload: QName,
    },
    /// The bytes of a client or listener had to be repaired.
    Repaired {
        /// The client or listener that wrote the bytes.
        by: Name,
        /// The changes.
        repairs: Vec<Repair>,
        /// The bytes before the repair, shortened as in [`Refused`](Self::Refused).
        text: Arc<str>,
    },
    /// An envelope that a listener wrote names another sender, or a thread that isn't its own;
    /// the claims are ignored.
    Forged {
        /// The client or listener that wrote the bytes.
        by: Name,
        /// The sender that it names, where that is another one.
        claimed: Option<String>,
        /// The thread that it names, where that is not one of its own.
        thread: Option<String>,
    },
    /// An output of a listener was refused, wholly or in part.
    Refused {
        /// The listener.
        by: Name,
        /// The output, 4 KiB at most (the journal and dead letters keep 64 KiB): as text, where bytes that are no
        /// UTF-8 are U+FFFD.
        output: Arc<str>,
        /// The first reason.
        fault: Fault,
    },
    /// The context of a thread left messages out, for the bounds of a context: what its listener is given of the thread
    /// lacks them.
    LeftOut {
        /// The number of messages.
        messages: u32,
        /// The bound for which they are left out (`limits: context_messages`), or the reason why they have no summary.
        why: Arc<str>,
    },
    /// A summary stands in the context of a thread in place of messages.
    Summarized {
        /// The number of messages, without those of an earlier summary.
        messages: u32,
        /// The bytes of the summary.
        bytes: usize,
    },
    /// A listener tells how far it is with a message.
    Progress {
        /// The listener.
        by: Name,
        /// The sentence, shortened.
        text: Arc<str>,
    },
    /// The end of what a program wrote on standard error before it failed to handle a message.
    ProgramSaid {
        /// The listener.
        by: Name,
        /// The text, shortened.
        text: Arc<str>,
    },
    /// A model goes on with an answer, which nothing has judged yet.
    ModelWrites {
        /// The listener.
        by: Name,
        /// The end of the text so far, shortened.
        text: Arc<str>,
    },
    /// A request of a listener to a model got no answer. The same one may be sent again, there or elsewhere.
    ModelFailed {
        /// The listener.
        by: Name,
        /// The message that the listener handles.
        message: MessageId,
        /// Name of the backend.
        backend: Arc<str>,
        /// The number of the attempt at this backend, from 1.
        attempt: u32,
        /// The failure with the provider's words, shortened.
        error: Arc<str>,
        /// Tokens and cost that are charged.
        usage: Usage,
    },
    /// A model answered a listener.
    ModelAnswered {
        /// The listener.
        by: Name,
        /// The message that the listener handles.
        message: MessageId,
        /// Name of the backend.
        backend: Arc<str>,
        /// The model, as the provider names it.
        model: Arc<str>,
        /// Tokens and cost.
        usage: Usage,
        /// The answer, shortened as in [`Refused`](Self::Refused).
        text: Arc<str>,
    },
    /// A fault was made.
    Faulted {
        /// The fault.
        fault: Fault,
        /// The mistake behind a `route` fault, where a sender made one.
        misroute: Option<Misroute>,
    },
    /// A thread opened.
    Opened {
        /// The thread above it; `None` for a root.
        parent: Option<ThreadId>,
    },
    /// A thread with a budget closes.
    Spent {
        /// The most that it and the threads below it might use.
        budget: Budget,
        /// The amounts that they used.
        spent: Amounts,
    },
    /// A thread closed.
    Closed {
        /// Messages that were queued on it and are discarded as cancelled.
        cancelled: usize,
    },
    /// A message left for its client.
    Left {
        /// The message.
        message: MessageId,
        /// The client's label of the message that it answers.
        in_reply_to: Option<Arc<str>>,
        /// The payload.
        payload: QName,
        /// The code, if it is a fault.
        fault: Option<FaultCode>,
    },
    /// A message is undeliverable.
    DeadLetter {
        /// The payload, if the message got that far.
        payload: Option<QName>,
        /// The reason.
        reason: FaultCode,
    },
    /// A dead letter was dropped, since later ones need its room.
    LetterDropped {
        /// The number of the letter.
        number: Number,
        /// The payload, if the message got that far.
        payload: Option<QName>,
        /// The reason why it was undeliverable.
        reason: FaultCode,
    },
    /// A listener keeps the thread of its shard without an await: nothing else runs there, and no timeout can stop it.
    Blocked {
        /// The listener.
        listener: Name,
        /// The shard.
        shard: u16,
        /// Time since the start of the handler.
        took: Duration,
    },
    /// A listener that was reported so has released the thread.
    Released {
        /// The listener.
        listener: Name,
        /// The shard.
        shard: u16,
        /// Time that the handler took.
        took: Duration,
    },
}

/// The mistake behind a `route` fault. Its receiver reads the same text for all mistakes, so that it can't find out
/// the calls of other parties; operators read this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misroute {
    /// No listener accepts the payload.
    #[error("no listener accepts it")]
    NotAccepted,
    /// Only `addressed` listeners accept the payload, and none is named.
    #[error("the listeners that accept it are `addressed`: name one in <to>")]
    NotAddressed,
    /// `<to>` names no listener.
    #[error("<to> names no listener: there is no '{0}'")]
    UnknownListener(Name),
    /// `<to>` names a listener that does not accept the payload.
    #[error("'{0}', which <to> names, does not accept it")]
    NotAcceptedBy(Name),
    /// `<to>` can't be a name.
    #[error("<to> holds no name of a listener")]
    NoName,
    /// The route exists, but not for this sender.
    #[error("the `calls` of its sender don't list it")]
    NotInCalls,
    /// A reply that was not announced.
    #[error("the `replies` of its sender don't list it")]
    NotInReplies,
    /// A message to its own sender, which doesn't accept it.
    #[error("its sender continues with it, and does not accept it")]
    NotContinued,
    /// An address that is not one of the sender's threads.
    #[error("<thread> names no thread that its sender spawned and did not close")]
    UnknownThread,
    /// A thread of its own for several listeners.
    #[error("a spawned thread has one listener, and several would take it")]
    ManyListeners,
    /// A request that the core does not answer there.
    #[error("the core answers no such request there")]
    NoRequest,
}

impl Misroute {
    /// Returns whether the payload has a target which its sender may not call.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::NotInCalls)
    }
}

/// Returns the start of a text that a listener or a model wrote, as an event shows it.
pub(super) fn shown(written: &[u8]) -> Arc<str> {
    excerpt(written, SHOWN)
}

/// Returns the start of a text that a listener wrote, at most that many bytes.
pub(super) fn excerpt(written: &[u8], most: usize) -> Arc<str> {
    let kept = String::from_utf8_lossy(&written[..written.len().min(most)]);
    match written.len().saturating_sub(most) {
        0 => kept.into(),
        more => format!("{kept}… {more} bytes more").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_bounded_text() {
        assert_eq!(&*excerpt(b"a\xffb", SHOWN), "a\u{fffd}b");
        let long = excerpt(&[b'x'; 17], 10);
        assert!(long.ends_with("x… 7 bytes more"), "{long}");
    }
}
