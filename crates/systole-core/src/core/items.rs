//! Items of Queue 1.

use std::time::Duration;

use systole_xml::ladder::Canonical;

use super::books::Entry;
use super::gauge::Permit;
use super::invocations::Holdings;
use super::io::{CallId, Emission, HandlerOutcome, Injected, Join};
use super::key::{InvocationId, ThreadKey};
use crate::journal::Number;
use crate::vocab::{MessageId, Name, ThreadId};

/// An item of Queue 1.
pub(super) enum Item {
    Injected(Injected, Entry),
    Response(Response),
    Calls(Calls),
    /// The calls of the handler come first: they stand before this.
    Reattached(InvocationId),
    Redriven(Redriven, Entry),
    /// The messages that the client sent before it left come first.
    Left(ThreadId),
    Cancel(ThreadId),
}

/// The response of a handler, on Queue 1.
pub(super) struct Response {
    pub thread: ThreadKey,
    /// The call that the thread owed an answer to.
    pub answers: MessageId,
    pub source: Source,
    pub holdings: Holdings,
    pub outcome: HandlerOutcome,
}

/// The source of emissions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// The message that was handled.
    pub message: MessageId,
    /// The number of that message in the journal.
    pub number: Number,
    /// The index of the first emission: awaited calls went before.
    pub index: u64,
}

/// A group of calls that a handler awaits, on Queue 1.
pub(super) struct Calls {
    pub thread: ThreadKey,
    pub invocation: InvocationId,
    pub call: CallId,
    pub requests: Vec<Emission>,
    pub join: Join,
    pub within: Option<Duration>,
}

/// A dead letter on Queue 1.
pub(super) struct Redriven {
    pub from: Name,
    pub to: Option<Name>,
    pub payload: Canonical,
    /// The number that it had.
    pub number: Number,
    /// The conversation that it was in.
    pub conversation: Option<ThreadId>,
    /// The id of the root that it opens, in the partition of the letter.
    pub root: ThreadId,
    pub permit: Permit,
}
