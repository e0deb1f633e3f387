//! Everything that goes into the core and everything that comes out of it: one closed enum each.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use systole_xml::ladder::{Canonical, Element, Raw, Validated};
use systole_xml::schema::{DecodeError, Draft, IntoDraft, Payload, decode};

use super::blueprint::{ClientId, ListenerId};
use super::contain::Value;
use super::dead::{DeadLetterError, DeadLetterId};
use super::event::Event;
use super::gauge::Permit;
use super::key::{TaskId, ThreadKey};
use super::usage::ModelAnswer;
use crate::journal::{NoteRecord, Number, Op, Recovered, Step};
use crate::vocab::{Fault, MessageId, Name, QName, ThreadId, Time};

/// One of the shards of an organism.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShardId(pub u16);

/// Everything that can move the core.
#[derive(Debug)]
pub enum Input {
    /// The organism starts: `<boot>` goes to each listener that accepts it, below a root of its own.
    Boot {
        /// The id of that root, from outside.
        root: ThreadId,
    },
    /// A message came in at an entrance.
    Injected(Injected),
    /// A handler ended. Each `Output::Start` gets exactly one of these, also after an `Abort`.
    Finished {
        /// Which one.
        task: TaskId,
        /// How it ended.
        outcome: Outcome,
    },
    /// A handler awaits the answers to calls.
    Called {
        /// The handler.
        task: TaskId,
        /// Its number for this group of calls.
        call: CallId,
        /// What it calls; each is an [`EmissionKind::Call`].
        requests: Vec<Emission>,
        /// When the waiting ends.
        join: Join,
    },
    /// A handler dropped the future of a group of calls.
    CallDropped {
        /// The handler.
        task: TaskId,
        /// The group.
        call: CallId,
    },
    /// What came of a group of calls is kept elsewhere: its handler, which [reattaches](super::Contract::reattaches),
    /// won't ask for it again.
    CallForgotten {
        /// The handler.
        task: TaskId,
        /// The group.
        call: CallId,
    },
    /// A handler is about to end: what is attached is written in the step in which its message is consumed, or at
    /// once where it is not consumed any more.
    Attached {
        /// The handler.
        task: TaskId,
        /// The attachment.
        attachment: Attachment,
    },
    /// A handler that [reattaches](super::Contract::reattaches) has asked for all that it still wants of what it called
    /// before.
    Reattached {
        /// The handler.
        task: TaskId,
    },
    /// A handler waits for nothing but calls: it gives its slot back.
    Parked {
        /// The handler.
        task: TaskId,
    },
    /// A listener failed too often: its messages fault at once.
    ListenerDown {
        /// Which one.
        listener: ListenerId,
    },
    /// Its cool-down passed.
    ListenerUp {
        /// Which one.
        listener: ListenerId,
    },
    /// Nobody will read what this conversation still has to say: it closes when it has no open child.
    Left {
        /// The root of the conversation.
        root: ThreadId,
    },
    /// A conversation is given up: everything in it is cancelled.
    Cancel {
        /// The root of the conversation.
        root: ThreadId,
    },
    /// A dead letter is queued again: judged from the start, as if its sender emitted it now, but
    /// below a root of its own that belongs to nobody.
    Requeue {
        /// Which one.
        letter: DeadLetterId,
        /// The id of that root, from outside.
        root: ThreadId,
    },
    /// A dead letter is forgotten.
    Discard {
        /// Which one.
        letter: DeadLetterId,
    },
    /// Another shard has something to say.
    Shard(ShardMessage),
    /// What the journal holds of the conversations that live in this shard. Comes before everything else.
    Recovered(Box<Recovered>),
    /// Everything up to this [`Output::Append`] is durable.
    Appended {
        /// Its number.
        number: u64,
    },
    /// The journal can't be written any more.
    Unwritable,
    /// A client has read what left the organism.
    Read {
        /// Its number: [`Egress::number`].
        number: Number,
    },
    /// A handler learned something that it must learn again if it is run again.
    Noted {
        /// The handler.
        task: TaskId,
        /// The place among its notes.
        index: u32,
        /// What it learned: a name.
        name: Arc<str>,
        /// As JSON.
        value: Arc<str>,
        /// The answer of a model, if it is one.
        answer: Option<Box<ModelAnswer>>,
    },
    /// Time has passed.
    Tick,
    /// The organism stops: pending continues and boot handlers are cancelled, the rest goes on.
    Drain,
    /// The drain's deadline passed: a `cancelled` fault for each open conversation, the rest to
    /// the dead letters.
    Stop,
}

/// Everything that the core asks of its shell.
#[derive(Debug)]
pub enum Output {
    /// Run a handler.
    Start(Start),
    /// Hand a parked handler what it awaits.
    Resume {
        /// The handler.
        task: TaskId,
        /// The group of calls that is decided.
        call: CallId,
        /// The answers in order of index, or the fault that decided against.
        result: Result<Vec<Settled>, Fault>,
    },
    /// Drop a handler at its next await, and report [`Outcome::Aborted`].
    Abort {
        /// The handler.
        task: TaskId,
    },
    /// Something leaves the organism.
    Egress(Egress),
    /// A conversation of a client has closed; nothing more will leave it.
    Closed {
        /// The client that owned it.
        client: ClientId,
        /// Its root.
        root: ThreadId,
    },
    /// Whether a dead letter was queued again or forgotten, as it was asked for. Each such input gets one.
    Letter {
        /// Which one.
        letter: DeadLetterId,
        /// If not, why.
        result: Result<(), DeadLetterError>,
    },
    /// A conversation that its client left, or gave up, is not open here, nor will be: it may
    /// never have been.
    Gone {
        /// What would be its root.
        root: ThreadId,
    },
    /// Something for another shard.
    Shard {
        /// Which shard.
        to: ShardId,
        /// What.
        message: ShardMessage,
    },
    /// Write down what a step changed; [`Input::Appended`] says when it is durable.
    Append {
        /// The number of the step, from 1.
        number: u64,
        /// What it changed.
        step: Step,
    },
    /// Whether the step that an [`Attachment`] waited for was made: then it will not be forgotten.
    Taken {
        /// Ticket of the attachment.
        ticket: u64,
        /// `false`: the organism ends, and leaves it.
        kept: bool,
    },
    /// What a handler noted is durable.
    Noted {
        /// The handler.
        task: TaskId,
        /// The place among its notes.
        index: u32,
    },
    /// Something that operators may see.
    Event(Event),
}

/// A message at an entrance.
#[derive(Debug)]
pub struct Injected {
    /// The principal that the entrance knows.
    pub client: ClientId,
    /// The bytes of one envelope.
    pub raw: Raw,
    /// The id of the conversation that it opens, unless it continues one.
    pub root: ThreadId,
    /// Whether it came over a network.
    pub remote: bool,
    /// Whether the client sends nothing else: the conversation closes once it has no open child.
    pub last: bool,
    /// Operations that are written in the step that takes the message, and answered by [`Output::Taken`].
    pub attachment: Option<Attachment>,
    /// Its place on Queue 1.
    pub permit: Permit,
}

/// Changes of a machine beside the core that become durable in the same step as an input takes effect, or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Attachment {
    /// The changes.
    pub ops: Vec<Op>,
    /// Number under which [`Output::Taken`] reports the step.
    pub ticket: u64,
}

/// The number of a group of awaited calls, counted by the handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u32);

/// How a handler ended.
#[derive(Debug)]
pub enum Outcome {
    /// It returned; these are its emissions, maybe none.
    Emitted(Vec<Emission>),
    /// It wrote bytes: none, one or several payloads, maybe dirty.
    Wrote(Raw),
    /// It returned an error.
    Failed(Failure),
    /// It panicked.
    Panicked,
    /// Its actor was rebuilt under it.
    Discarded,
    /// It was dropped because the core asked for it.
    Aborted,
}

/// The error of a handler.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What went wrong, for whoever called.
    pub message: Arc<str>,
    /// A fault that passes on unchanged.
    pub fault: Option<Fault>,
}

impl Failure {
    /// A failure in a sentence, for whoever called.
    pub fn new(message: impl Into<Arc<str>>) -> Self {
        Self { message: message.into(), fault: None }
    }
}

impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let fault = (&error as &(dyn std::error::Error + 'static)).downcast_ref::<Fault>().cloned();
        Self { message: error.to_string().into(), fault }
    }
}

/// One thing that a handler says.
#[derive(Debug, Clone)]
pub struct Emission {
    /// What it is.
    pub kind: EmissionKind,
    /// The listener that it names; only for calls.
    pub to: Option<Name>,
    /// A spawned thread of its own that it addresses; only for calls.
    pub thread: Option<ThreadId>,
    /// The payload.
    pub payload: Draft,
}

/// What an emission is meant as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmissionKind {
    /// The answer to whoever called.
    Reply,
    /// A request to another listener.
    Call,
    /// Whatever the contract makes of its QName.
    Inferred,
    /// A message to the tail of the thread's own mailbox.
    Continue {
        /// After how long.
        after: Duration,
    },
}

/// When the waiting for several answers ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// With the last reply, or the first fault.
    All,
    /// With the first reply; a fault only if none replied.
    First,
    /// With the n-th reply; a fault once that is out of reach.
    Quorum(u32),
    /// When every call has an outcome.
    Settled,
}

/// The outcome of one awaited call.
#[derive(Debug, Clone)]
pub struct Settled {
    /// Its index among the calls of its group.
    pub index: u32,
    /// The reply, or what went wrong.
    pub outcome: Result<Answer, Fault>,
}

/// A reply to an awaited call.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Who replied.
    pub from: Name,
    /// With what.
    pub payload: Validated<Element>,
}

impl Answer {
    /// The reply as a value.
    ///
    /// # Errors
    /// [`DecodeError`] if it is none of that type.
    pub fn decode<T: Payload>(&self) -> Result<T, DecodeError> {
        decode(&self.payload)
    }
}

impl IntoDraft for Answer {
    fn into_draft(self) -> Draft {
        Draft::Proved(self.payload)
    }
}

/// A handler to run.
#[derive(Debug)]
pub struct Start {
    /// Its name from now on.
    pub task: TaskId,
    /// Whose handler.
    pub listener: ListenerId,
    /// What it gets.
    pub message: Message,
}

/// A processed message, as its receiver gets it.
#[derive(Debug)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// The thread that it is on: the receiver's own.
    pub thread: ThreadId,
    /// Who sent it, as stamped by the pump.
    pub from: Name,
    /// The message that it answers.
    pub in_reply_to: Option<MessageId>,
    /// Payload or fault.
    pub body: Body,
    /// Its place in the fan-out that it answers.
    pub join: Option<JoinPosition>,
    /// When the thread ends at the latest.
    pub deadline: Option<Time>,
    /// W3C trace context, passed on down the tree.
    pub traceparent: Option<Arc<str>>,
    /// The canonical payloads of the thread before this one, oldest first; for contracts with context.
    pub history: Vec<Remembered>,
    /// Its number in the journal; 0 if there is none.
    pub number: Number,
    /// What its handler noted when it ran before a crash, in order.
    pub notes: Vec<NoteRecord>,
}

/// A message that the context of a thread remembers.
#[derive(Debug, Clone)]
pub struct Remembered {
    /// Who sent it.
    pub from: Name,
    /// What it said.
    pub payload: Canonical,
}

/// What a message carries.
#[derive(Debug)]
pub enum Body {
    /// A payload that keeps its contract, decoded for its receiver.
    Payload {
        /// The proof.
        payload: Validated<Element>,
        /// The value that the receiver's decoder made.
        value: Value,
    },
    /// Something went wrong.
    Fault(Fault),
}

/// The place of an answer in its fan-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinPosition {
    /// Which call of the fan-out, from 0.
    pub index: u32,
    /// How many calls there were.
    pub total: u32,
    /// How many answers are still to come.
    pub remaining: u32,
}

/// Something for a client.
#[derive(Debug)]
pub struct Egress {
    /// Its number in the journal; 0 if there is none.
    pub number: Number,
    /// The client.
    pub client: ClientId,
    /// The root of the conversation.
    pub root: ThreadId,
    /// Who answers.
    pub from: Name,
    /// The label of the message that is answered, if the client gave one.
    pub in_reply_to: Option<Arc<str>>,
    /// The canonical envelope.
    pub envelope: Bytes,
    /// The fault inside, if it is one.
    pub fault: Option<Fault>,
    /// The payload inside.
    pub payload: Canonical,
    /// The proof that the payload keeps its schema; none for a fault.
    pub proof: Option<Validated<Element>>,
}

/// What shards say to each other. A conversation lives wholly in one shard; only slots of
/// singletons and messages that continue a conversation cross. Between two of them messages keep their order.
#[derive(Debug)]
pub enum ShardMessage {
    /// A thread wants a slot of a listener whose home is the receiving shard.
    SlotWanted {
        /// Where the thread lives.
        from: ShardId,
        /// The listener.
        listener: ListenerId,
        /// The thread.
        thread: ThreadKey,
        /// The root of its conversation, which shares the slots with the others.
        root: ThreadKey,
        /// Whether it resumes a parked handler.
        resume: bool,
        /// The place of its message in the journal at the start; the greatest number if it came later.
        at: Number,
    },
    /// The slot is given.
    SlotGranted {
        /// The listener.
        listener: ListenerId,
        /// The thread that asked.
        thread: ThreadKey,
    },
    /// A slot comes back.
    SlotReturned {
        /// The listener.
        listener: ListenerId,
    },
    /// The thread doesn't want it any more.
    SlotDeclined {
        /// Where the thread lived.
        from: ShardId,
        /// The listener.
        listener: ListenerId,
        /// The thread.
        thread: ThreadKey,
    },
    /// The sending shard has taken up what the journal holds of it: it wants no more slots for that.
    Recovered,
    /// A message for a conversation that lives in the receiving shard.
    Injected(Box<Injected>),
}

impl Emission {
    /// Whether it may be meant as one of these replies. A name may still lack its namespace.
    pub(super) fn may_be_one_of(&self, replies: &[QName]) -> bool {
        let local = match &self.payload {
            Draft::Canonical(payload) => payload.root().local(),
            Draft::Proved(payload) => payload.payload().root().local(),
            Draft::Unencodable(_) | Draft::NoEnvelope(_) => return false,
        };
        match self.kind {
            EmissionKind::Reply | EmissionKind::Inferred => replies.iter().any(|reply| reply.local() == local),
            EmissionKind::Call | EmissionKind::Continue { .. } => false,
        }
    }
}

impl ShardMessage {
    /// The listener whose slots it is about.
    pub(super) fn listener(&self) -> Option<ListenerId> {
        match self {
            Self::SlotWanted { listener, .. }
            | Self::SlotGranted { listener, .. }
            | Self::SlotReturned { listener }
            | Self::SlotDeclined { listener, .. } => Some(*listener),
            Self::Recovered | Self::Injected(_) => None,
        }
    }
}
