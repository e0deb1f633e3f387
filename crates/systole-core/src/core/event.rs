//! Events for operators.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeStruct, Serializer};
use systole_xml::ladder::Repair;
use uuid::Uuid;

use super::usage::Usage;
use crate::journal::Number;
use crate::vocab::{
    Amounts, Budget, Fault, FaultCode, MessageId, Name, QName, ThreadId, ThreadPath, Time, Traceparent, trace_of,
};

/// Bytes of a text in an event: thousands of events may wait for their subscribers.
const SHOWN: usize = 4 << 10;

/// An event for operators: it holds thread paths, so it is never for listeners. As JSON it is one object: the name of its
/// kind, its number, its place, and the fields of its kind that have a value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Event {
    /// The place among the events of the organism since its start, from 1. The organism numbers events as it takes them;
    /// an event of a core by itself has 0.
    pub number: u64,
    /// The conversation; nil for an event of none.
    pub root: ThreadId,
    /// The thread: that of the root for an event of the whole conversation, nil for an event of none.
    pub thread: ThreadId,
    /// The caller elsewhere that the thread works for, by its place in a trace.
    pub traceparent: Option<Traceparent>,
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
        Self { number: 0, root, thread, traceparent: None, path, at, kind }
    }

    /// Adds the caller elsewhere that the thread works for.
    #[must_use]
    pub fn traceparent(self, traceparent: Option<Traceparent>) -> Self {
        Self { traceparent, ..self }
    }

    /// Returns the id of the trace of its conversation, in hexadecimal digits; none for an event of no conversation.
    pub fn trace(&self) -> Option<String> {
        let trace = || format!("{:032x}", u128::from_be_bytes(trace_of(self.root, self.traceparent)));
        (!self.root.as_uuid().is_nil()).then(trace)
    }

    /// Makes an event that belongs to no conversation.
    pub fn of_none(path: ThreadPath, at: Time, kind: EventKind) -> Self {
        let nil = ThreadId::from_uuid(Uuid::nil());
        Self::new((nil, nil), path, at, kind)
    }

    /// Counts the bytes of the texts and lists that the event holds, for those who keep many.
    pub fn heap_bytes(&self) -> usize {
        match &self.kind {
            EventKind::Repaired { repairs, text, .. } => size_of_val(&**repairs) + text.len(),
            EventKind::Refused { output: text, fault, .. } => text.len() + fault.message.len(),
            EventKind::Progress { text, .. }
            | EventKind::ProgramSaid { text, .. }
            | EventKind::ModelWrites { text, .. }
            | EventKind::ModelAnswered { text, .. }
            | EventKind::ModelFailed { error: text, .. } => text.len(),
            EventKind::Faulted { fault, .. } => fault.message.len(),
            EventKind::Injected { claimed, .. } => claimed.as_ref().map_or(0, String::len),
            EventKind::Forged { claimed, thread, .. } => [claimed, thread].into_iter().flatten().map(String::len).sum(),
            EventKind::Operated { of, error, .. } => of.len() + error.as_ref().map_or(0, |error| error.len()),
            EventKind::Rejected { call, reason, .. } => call.len() + reason.len(),
            EventKind::LeftOut { why, .. } => why.len(),
            EventKind::Unattended { .. }
            | EventKind::Delivered { .. }
            | EventKind::Handled { .. }
            | EventKind::Emitted { .. }
            | EventKind::Summarized { .. }
            | EventKind::Opened { .. }
            | EventKind::Spent { .. }
            | EventKind::Closed { .. }
            | EventKind::Left { .. }
            | EventKind::DeadLetter { .. }
            | EventKind::LetterDropped { .. }
            | EventKind::Fenced { .. }
            | EventKind::Blocked { .. }
            | EventKind::Released { .. } => 0,
        }
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Record<'a> {
            event: &'static str,
            number: u64,
            at: Time,
            root: ThreadId,
            thread: ThreadId,
            #[serde(skip_serializing_if = "Option::is_none")]
            trace: Option<String>,
            path: &'a ThreadPath,
            #[serde(flatten)]
            kind: &'a EventKind,
        }
        let Self { number, root, thread, path, at, kind, .. } = self;
        let trace = self.trace();
        let (event, number, at, root, thread) = (kind.name(), *number, *at, *root, *thread);
        Record { event, number, at, root, thread, trace, path, kind }.serialize(serializer)
    }
}

/// The kind of an event.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum EventKind {
    /// A client's message was taken.
    Injected {
        /// The message.
        message: MessageId,
        /// The client.
        from: Name,
        /// The sender that the bytes claimed, where it is another one.
        #[serde(skip_serializing_if = "Option::is_none")]
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
        #[serde(skip_serializing_if = "Option::is_none")]
        in_reply_to: Option<MessageId>,
        /// The payload; `None` for a fault.
        #[serde(skip_serializing_if = "Option::is_none")]
        payload: Option<QName>,
        /// Earlier runs of the handler on this message that ended with their process, if there were any.
        #[serde(skip_serializing_if = "Option::is_none")]
        attempts: Option<u8>,
    },
    /// A handler ended, and its thread is still open. One whose thread closes before ends with that.
    Handled {
        /// The message.
        message: MessageId,
        /// The way in which it ended.
        outcome: HandlerEnd,
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
        /// The message: that of the client, or the one that the listener's handler works on.
        message: MessageId,
        /// The bytes before the repair, shortened as in [`Refused`](Self::Refused).
        text: Arc<str>,
        /// The number of the bytes before the repair.
        bytes: usize,
    },
    /// An envelope that a listener wrote names another sender, or a thread that isn't its own;
    /// the claims are ignored.
    Forged {
        /// The client or listener that wrote the bytes.
        by: Name,
        /// The sender that it names, where that is another one.
        #[serde(skip_serializing_if = "Option::is_none")]
        claimed: Option<String>,
        /// The thread that it names, where that is not one of its own.
        #[serde(rename = "claimed_thread", skip_serializing_if = "Option::is_none")]
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
        /// The time of the attempt.
        #[serde(rename = "ms", serialize_with = "serialize_ms")]
        took: Duration,
    },
    /// A model answered a listener.
    ModelAnswered {
        /// The listener.
        by: Name,
        /// The message that the listener handles.
        message: MessageId,
        /// The index of the handler's note that keeps the answer; none for the use that a worker reports.
        #[serde(skip)]
        note: Option<u32>,
        /// Name of the backend.
        backend: Arc<str>,
        /// The model, as the provider names it.
        model: Arc<str>,
        /// Tokens and cost.
        usage: Usage,
        /// The time of the attempt that got it.
        #[serde(rename = "ms", serialize_with = "serialize_ms")]
        took: Duration,
        /// The answer, shortened as in [`Refused`](Self::Refused).
        text: Arc<str>,
    },
    /// A fault was made.
    Faulted {
        /// The fault.
        #[serde(flatten)]
        fault: Fault,
        /// The mistake behind a `route` fault, where a sender made one.
        #[serde(flatten)]
        misroute: Option<Misroute>,
    },
    /// A thread opened.
    Opened {
        /// The thread above it; `None` for a root.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<ThreadId>,
    },
    /// A thread with a budget closes.
    #[serde(serialize_with = "serialize_spent")]
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
        #[serde(skip_serializing_if = "Option::is_none")]
        in_reply_to: Option<Arc<str>>,
        /// The payload.
        payload: QName,
        /// The code, if it is a fault.
        #[serde(skip_serializing_if = "Option::is_none")]
        fault: Option<FaultCode>,
    },
    /// A message is undeliverable.
    DeadLetter {
        /// The payload, if the message got that far.
        #[serde(skip_serializing_if = "Option::is_none")]
        payload: Option<QName>,
        /// The reason.
        reason: FaultCode,
    },
    /// A dead letter was dropped, since later ones need its room.
    LetterDropped {
        /// The number of the letter. JSON has it as text: it has more digits than JSON keeps everywhere.
        #[serde(rename = "letter", serialize_with = "serialize_number")]
        number: Number,
        /// The payload, if the message got that far.
        #[serde(skip_serializing_if = "Option::is_none")]
        payload: Option<QName>,
        /// The reason why it was undeliverable.
        reason: FaultCode,
    },
    /// An operator acted. It belongs to no conversation.
    Operated {
        /// The operator.
        by: Name,
        /// The name of the act.
        act: &'static str,
        /// The conversation, the thread, the dead letter or the listener that it was about.
        of: Arc<str>,
        /// The reason why it had no effect.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Arc<str>>,
    },
    /// Another process has taken partitions of a core over, which drops their conversations. It belongs to no conversation.
    Fenced {
        /// The core.
        core: u16,
    },
    /// The gateway rejected a request. It belongs to no conversation. A flood of them has no events: the next one counts
    /// them.
    Rejected {
        /// The principal of the token, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<Name>,
        /// Method and path of the request, shortened.
        call: Arc<str>,
        /// The status of the answer.
        status: u16,
        /// The code of the problem, for machines.
        code: &'static str,
        /// The reason, shortened.
        reason: Arc<str>,
        /// Rejected requests before it without an event.
        #[serde(skip_serializing_if = "is_zero")]
        untold: u64,
    },
    /// A listener keeps the thread of its shard without an await: nothing else runs there, and no timeout can stop it.
    Blocked {
        /// The listener.
        listener: Name,
        /// The shard.
        shard: u16,
        /// Time since the start of the handler.
        #[serde(rename = "ms", serialize_with = "serialize_ms")]
        took: Duration,
    },
    /// A listener that was reported so has released the thread.
    Released {
        /// The listener.
        listener: Name,
        /// The shard.
        shard: u16,
        /// Time that the handler took.
        #[serde(rename = "ms", serialize_with = "serialize_ms")]
        took: Duration,
    },
}

impl EventKind {
    /// The name of the kind, as JSON has it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Injected { .. } => "injected",
            Self::Unattended { .. } => "unattended",
            Self::Delivered { .. } => "delivered",
            Self::Handled { .. } => "handled",
            Self::Emitted { .. } => "emitted",
            Self::Repaired { .. } => "repaired",
            Self::Forged { .. } => "forged",
            Self::Refused { .. } => "refused",
            Self::LeftOut { .. } => "left-out",
            Self::Summarized { .. } => "summarized",
            Self::Progress { .. } => "progress",
            Self::ProgramSaid { .. } => "program-said",
            Self::ModelWrites { .. } => "model-writes",
            Self::ModelFailed { .. } => "model-failed",
            Self::ModelAnswered { .. } => "model-answered",
            Self::Faulted { .. } => "fault",
            Self::Opened { .. } => "thread-opened",
            Self::Spent { .. } => "spent",
            Self::Closed { .. } => "thread-closed",
            Self::Left { .. } => "left",
            Self::DeadLetter { .. } => "dead-letter",
            Self::LetterDropped { .. } => "dead-letter-dropped",
            Self::Operated { .. } => "operated",
            Self::Fenced { .. } => "fenced",
            Self::Rejected { .. } => "rejected",
            Self::Blocked { .. } => "blocked",
            Self::Released { .. } => "released",
        }
    }
}

/// The way in which a handler ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandlerEnd {
    /// It returned, with payloads or without.
    Returned,
    /// It returned a failure.
    Failed,
    /// It panicked.
    Panicked,
    /// The message was dropped without an answer, or the handler was aborted.
    Dropped,
}

impl HandlerEnd {
    /// The name, as JSON has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Returned => "returned",
            Self::Failed => "failed",
            Self::Panicked => "panicked",
            Self::Dropped => "dropped",
        }
    }
}

impl Serialize for HandlerEnd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The amounts that were spent of a budget. As JSON each stands beside its bound, which is null where there is none.
#[derive(Debug)]
pub struct Spending<'a> {
    /// The bounds.
    pub budget: &'a Budget,
    /// The amounts.
    pub spent: &'a Amounts,
}

impl Serialize for Spending<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Amount<T> {
            spent: T,
            most: Option<T>,
        }
        let Self { budget, spent } = self;
        let mut fields = serializer.serialize_struct("Spending", 4)?;
        fields.serialize_field("tokens", &Amount { spent: spent.tokens, most: budget.tokens })?;
        fields.serialize_field("cost", &Amount { spent: spent.cost, most: budget.cost })?;
        fields.serialize_field("calls", &Amount { spent: spent.calls, most: budget.calls })?;
        fields.serialize_field("threads", &Amount { spent: spent.threads, most: budget.threads })?;
        fields.end()
    }
}

fn serialize_spent<S: Serializer>(budget: &Budget, spent: &Amounts, serializer: S) -> Result<S::Ok, S::Error> {
    Spending { budget, spent }.serialize(serializer)
}

fn serialize_number<S: Serializer>(number: &Number, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn serialize_ms<S: Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(took.as_millis() as u64)
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
    /// A message of a client that must sign, without a valid signature.
    #[error("its sender must sign: {0}")]
    Unsigned(Arc<str>),
    /// A request that the core does not answer there.
    #[error("the core answers no such request there")]
    NoRequest,
}

impl Serialize for Misroute {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(Some(2))?;
        fields.serialize_entry("denied", &self.is_denied())?;
        fields.serialize_entry("reason", &format_args!("{self}"))?;
        fields.end()
    }
}

impl Misroute {
    /// Returns whether the sender may not send the payload: its target is not among its `calls`, or it has to be signed.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::NotInCalls | Self::Unsigned(_))
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
    use serde_json::{json, to_string, to_value};

    use super::*;

    fn event(kind: EventKind) -> Event {
        let path =
            ThreadPath::new(vec![(Name::parse("researcher").unwrap(), 1), (Name::parse("calculator").unwrap(), 2)]);
        let [root, thread] = [0x67e5_5044, 7].map(|id| ThreadId::from_uuid(uuid::Uuid::from_u128(id)));
        Event::new((root, thread), path, "2030-01-02T03:04:05Z".parse().unwrap(), kind)
    }

    #[test]
    fn json_has_what_belongs_to_the_kind_and_no_nulls() {
        let dead = event(EventKind::DeadLetter { payload: None, reason: FaultCode::Route });
        assert_eq!(
            to_string(&dead).unwrap(),
            r#"{"event":"dead-letter","number":0,"at":"2030-01-02T03:04:05Z","root":"00000000-0000-0000-0000-000067e55044","thread":"00000000-0000-0000-0000-000000000007","trace":"00000000000000000000000067e55044","path":"root/researcher/calculator#2","reason":"route"}"#
        );
    }

    #[test]
    fn json_of_a_fault_has_its_fields_beside_those_of_the_event() {
        let fault = Fault::new(FaultCode::Route, "why");
        let json = to_value(event(EventKind::Faulted { fault: fault.clone(), misroute: None })).unwrap();
        assert_eq!((&json["code"], &json["message"], json.get("reason")), (&json!("route"), &json!("why"), None));
        let misroute = Some(Misroute::NotInCalls);
        let json = to_value(event(EventKind::Faulted { fault: fault.clone(), misroute })).unwrap();
        assert_eq!((&json["denied"], json["reason"].is_string()), (&json!(true), true));
        let refused = EventKind::Refused { by: Name::parse("a").unwrap(), output: "x".into(), fault };
        assert_eq!(to_value(event(refused)).unwrap()["fault"]["code"], "route");
    }

    #[test]
    fn json_has_what_was_spent_beside_the_budget() {
        let (budget, spent) =
            ("calls=3".parse().unwrap(), Amounts { calls: 3, tokens: 40, threads: 2, ..Amounts::default() });
        let json = to_value(event(EventKind::Spent { budget, spent })).unwrap();
        assert_eq!(json["calls"], json!({ "spent": 3, "most": 3 }));
        assert_eq!(json["tokens"], json!({ "spent": 40, "most": null }));
    }

    #[test]
    fn an_excerpt_is_bounded_text() {
        assert_eq!(&*excerpt(b"a\xffb", SHOWN), "a\u{fffd}b");
        let long = excerpt(&[b'x'; 17], 10);
        assert!(long.ends_with("x… 7 bytes more"), "{long}");
    }
}
