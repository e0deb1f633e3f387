//! Inputs and outputs of the core: one closed enum each.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use systole_xml::ladder::{Canonical, Raw, Repair};
use systole_xml::schema::{Catalog, DecodeError, Draft, Element, IntoDraft, Payload, Validated, decode};

use super::blueprint::{Blueprint, ClientId, ListenerId, Version};
use super::budgets::Short;
use super::catch_panic::Value;
use super::dead_letters::{DeadLetterError, DeadLetterId};
use super::event::Event;
use super::exit::ExitPlace;
use super::gauge::Permit;
use super::judge::Decoders;
use super::key::{InvocationId, ThreadKey};
use super::read::{LABEL, ReadAnswer, ReadMessage, Unreadable};
use super::usage::{ModelAnswer, ModelFailure, Usage};
use crate::journal::{ActRecord, Moment, NoteRecord, Number, Op, Recovered, Step, Torn};
use crate::protocol::write_fault;
use crate::vocab::{Amounts, Fault, MessageId, Name, QName, ThreadId, Time, Traceparent};

/// The address of a core in its organism, never used again. Those of the cores that it starts with count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CoreId(pub u16);

/// Inputs of the core.
#[derive(Debug)]
pub enum Input {
    /// The organism starts: `<boot>` goes to each listener that accepts it, below a root of its own.
    Boot {
        /// The id of that root, given from outside.
        root: ThreadId,
    },
    /// A message came in at an entrance.
    Injected(Injected),
    /// A handler ended. Each `Output::Start` gets exactly one of these, also after an `Abort`.
    Finished {
        /// The handler.
        invocation: InvocationId,
        /// The end of the handler.
        outcome: HandlerOutcome,
    },
    /// A handler awaits the answers to calls.
    Called {
        /// The handler.
        invocation: InvocationId,
        /// The handler's number for this group of calls.
        call: CallId,
        /// The calls; each is an [`EmissionKind::Call`].
        requests: Vec<Emission>,
        /// The rule by which the waiting ends.
        join: Join,
        /// The greatest wait: past it, each call without an outcome has a fault for one, and the join decides.
        within: Option<Duration>,
    },
    /// A handler dropped the future of a group of calls.
    CallDropped {
        /// The handler.
        invocation: InvocationId,
        /// The group.
        call: CallId,
    },
    /// The result of a group of calls is stored elsewhere: its handler, which
    /// [reattaches](super::OnRestart::Reattach), won't ask for it again.
    CallForgotten {
        /// The handler.
        invocation: InvocationId,
        /// The group.
        call: CallId,
    },
    /// A handler is about to end: the attachment is written in the step in which its message is consumed, or at once if
    /// the message has been consumed.
    Attached {
        /// The handler.
        invocation: InvocationId,
        /// The attachment.
        attachment: Attachment,
    },
    /// A handler that [reattaches](super::OnRestart::Reattach) has asked for all earlier calls that it still wants.
    Reattached {
        /// The handler.
        invocation: InvocationId,
    },
    /// A handler waits for nothing but calls: it gives its slot back.
    Parked {
        /// The handler.
        invocation: InvocationId,
    },
    /// A handler waits for a party elsewhere, until the answer to one of its calls comes: a durable organism that ends
    /// leaves it to the next start, as a handler of a listener that [outlives](super::Contract::outlives) the process.
    WaitsElsewhere {
        /// The handler.
        invocation: InvocationId,
    },
    /// A listener that failed too often rests, or is back. While it rests no thread gets a slot of it: messages wait in their
    /// mailboxes, where deadlines count and a cancellation ends them.
    ListenerRests {
        /// The listener.
        listener: ListenerId,
        /// False if it is back.
        rests: bool,
    },
    /// No person can answer the questions of a listener here: its handlers wait.
    ListenerUnattended {
        /// The listener.
        listener: ListenerId,
    },
    /// The client of a conversation has left: the conversation closes when it has no open child.
    Left {
        /// The client.
        client: ClientId,
        /// The root of the conversation.
        root: ThreadId,
    },
    /// The client of a conversation cancels it, with everything in it.
    Cancel {
        /// The client.
        client: ClientId,
        /// The root of the conversation.
        root: ThreadId,
    },
    /// An operator has paused a listener, or resumed it. While it is paused, no handler of it starts or resumes: its messages
    /// wait in their mailboxes, where deadlines count, and handlers that run go on. All cores get this, since each may keep
    /// slots of the listener; none writes it, since it is the organism's.
    ListenerPaused {
        /// The listener.
        listener: ListenerId,
        /// True if it is paused.
        paused: bool,
    },
    /// An operator acts. Each of these gets one [`Output::Operated`].
    Operate {
        /// The number of this operation, given from outside.
        ticket: u64,
        /// The operation.
        operation: Operation,
        /// The record of the act, which is written in the same step if it has an effect.
        act: Option<Box<ActRecord>>,
    },
    /// A message of another core.
    Core(CoreMessage),
    /// A message of another core to one that is gone, which a core that stays handles.
    Stray(CoreMessage),
    /// The records of the conversations that live in this core. Comes before all other inputs.
    Recovered(Box<Recovered>),
    /// The steps up to that of an [`Output::Append`] are durable.
    Appended {
        /// The number of the step.
        number: u64,
    },
    /// The core gives its partitions up, with all conversations, for another core to take over: where the organism is
    /// durable. Nothing of that has an effect, since the next owner finds what is written. The core stays as the home of
    /// its listeners' slots, and hands on messages that come in.
    Release,
    /// Another owner has taken partitions of the core over, so nothing more of it is written. The core drops all
    /// conversations, and what waits to be durable has not happened. It stays as after [`Input::Release`].
    Fenced,
    /// The journal can't be written any more.
    Unwritable,
    /// A client has read a message that left the organism.
    Read {
        /// The number of the message: [`Egress::number`].
        number: Number,
        /// True to write it in a step of its own; else it rides on the next step that writes, for clients to whom the
        /// message may come again after a crash.
        at_once: bool,
    },
    /// A handler learned a value that it must learn again if it is run again.
    Noted {
        /// The handler.
        invocation: InvocationId,
        /// The place among its notes.
        index: u32,
        /// The name of the value.
        name: Arc<str>,
        /// The value as JSON.
        value: Arc<str>,
        /// The answer of a model, if it is one.
        answer: Option<Box<ModelAnswer>>,
    },
    /// A handler condenses the history of its thread: a summary stands in place of the oldest messages but the one that
    /// opened the thread, or nothing.
    Condensed {
        /// The handler.
        invocation: InvocationId,
        /// The place of the last of these messages.
        until: u32,
        /// The [summary](crate::protocol::write_summary), or the reason why there is none.
        summary: Result<Canonical, Arc<str>>,
    },
    /// A model goes on with an answer to a handler: an event, and no record.
    Grown {
        /// The handler.
        invocation: InvocationId,
        /// The end of the text so far.
        text: Arc<str>,
    },
    /// The bytes of a call that a handler awaits had to be repaired: an event, and no record.
    Repaired {
        /// The handler.
        invocation: InvocationId,
        /// The changes.
        repairs: Vec<Repair>,
        /// The bytes before the repair.
        text: Raw,
    },
    /// A handler tells how far it is: an event, and no record.
    Progressed {
        /// The handler.
        invocation: InvocationId,
        /// The sentence.
        text: Arc<str>,
    },
    /// A handler writes a draft: its end is told by [`Output::DraftOver`], once.
    Drafted {
        /// The handler.
        invocation: InvocationId,
    },
    /// A handler tells what a request to a model of its own used: it is charged, and an event.
    Used {
        /// The handler.
        invocation: InvocationId,
        /// The use.
        answer: Box<ModelAnswer>,
    },
    /// A handler can't work at its message yet, or can again: it waits for a process of its listener. Its time stands still
    /// meanwhile, and it keeps its slot.
    Stalled {
        /// The handler.
        invocation: InvocationId,
        /// False if it works from now on.
        stalled: bool,
    },
    /// The process in which a handler ran ended by itself, and the handler runs again.
    Attempted {
        /// The handler.
        invocation: InvocationId,
        /// Runs of its message that ended so, in all.
        attempts: u8,
    },
    /// A handler is about to fail: the end of what its program wrote on standard error, for operators.
    Said {
        /// The handler.
        invocation: InvocationId,
        /// The text.
        text: Arc<str>,
    },
    /// A handler is about to send a request to a model: each gets one [`Output::Reserved`], once the reserve is durable.
    /// The request may be billed from then on: the reserve is spent, unless an answer ([`Input::Noted`]),
    /// [`Input::Settled`] or [`Input::Charged`] says what was used.
    Reserve {
        /// The handler.
        invocation: InvocationId,
        /// The most that the request may use.
        amounts: Amounts,
        /// Set for a request that takes what is left: its thread ends with this fault unless it answers then.
        is_last: Option<Fault>,
    },
    /// A handler runs again after a crash, and its request is still in flight elsewhere, where the same request has one effect:
    /// the reserve, which counts as spent since, is one again.
    Reclaimed {
        /// The handler.
        invocation: InvocationId,
        /// The amounts, as they were reserved.
        amounts: Amounts,
    },
    /// A request of a handler elsewhere has ended: it is charged with what it used instead of its reserve, in the step that
    /// writes a note of the handler, as [`Input::Noted`] does. A run after a crash finds both or none.
    Settled {
        /// The handler.
        invocation: InvocationId,
        /// The place among its notes.
        index: u32,
        /// The name of the value.
        name: Arc<str>,
        /// The value as JSON.
        value: Arc<str>,
        /// The amounts that were used.
        used: Amounts,
    },
    /// A request of a handler to a model got no answer: it is charged with this usage instead of its reserve.
    Charged {
        /// The handler.
        invocation: InvocationId,
        /// Tokens and cost; none if no provider took the request.
        usage: Usage,
    },
    /// A request of a handler to a model got no answer: an event, and no record.
    Unanswered {
        /// The handler.
        invocation: InvocationId,
        /// The attempt.
        attempt: Box<ModelFailure>,
    },
    /// A later version of the organism is there. Its listeners are known from now on, so that other cores may ask for their
    /// slots; conversations begin with it once it [begins](Input::Begin).
    Version(Box<OrganismVersion>),
    /// New conversations keep this version from now on; those that are open keep theirs. Handlers of `<boot>` end: it comes again
    /// for this version, by [`Input::Boot`].
    Begin {
        /// The version; all cores know it.
        version: Version,
    },
    /// No conversation of any core keeps this version any more, nor does a new one begin with it.
    Forget {
        /// The version.
        version: Version,
    },
    /// Time has passed.
    Tick,
    /// The date was set, or the machine has slept: what was the first of these times is the second. Timeouts have as
    /// much time as before.
    ClockSet {
        /// A time by the clock as it was.
        before: Time,
        /// The same time by the clock as it is.
        after: Time,
    },
    /// The organism stops: pending continues and boot handlers are cancelled, the rest goes on.
    Drain,
    /// The deadline of the drain passed: a `cancelled` fault for each open conversation, the rest to
    /// the dead letters.
    Stop,
}

/// A later version of an organism that runs.
#[derive(Clone)]
pub struct OrganismVersion {
    /// The listeners and clients, laid out [after](Blueprint::after) those of the version before.
    pub blueprint: Arc<Blueprint>,
    /// The schemas of its payloads.
    pub catalog: Arc<Catalog>,
    /// The decoders of all listeners that the blueprint knows.
    pub decoders: Arc<Decoders>,
}

impl std::fmt::Debug for OrganismVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OrganismVersion").field("version", &self.blueprint.version()).finish_non_exhaustive()
    }
}

/// Reason why a thread is cancelled from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cancellation {
    /// An operator wants it.
    Operator,
    /// Its conversation has kept an earlier version of the organism for as long as it may.
    Version,
}

/// An act of an operator on a running organism.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Ends a thread with everything below it; its caller gets a `cancelled` fault. A root stands for its conversation: each
    /// of its open calls ends so.
    Cancel {
        /// The conversation.
        root: ThreadId,
        /// The thread.
        thread: ThreadId,
        /// The reason.
        why: Cancellation,
    },
    /// Redrives a dead letter: it is judged from the start, as if its sender emitted it now, but below a root of its own
    /// without an owner.
    Redrive {
        /// The dead letter.
        letter: DeadLetterId,
        /// The id of that root, given from outside.
        root: ThreadId,
    },
    /// Discards a dead letter.
    Discard {
        /// The dead letter.
        letter: DeadLetterId,
    },
    /// Opens a conversation again as it was at a time, as a new one.
    Retry {
        /// The conversation as it was.
        moment: Box<Moment>,
        /// The id of the new conversation, given from outside.
        root: ThreadId,
    },
}

/// The reason why an operation had no effect.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// The thread is not open.
    #[error("{0} is no open thread: it has ended, or there never was one")]
    NotOpen(ThreadId),
    /// The dead letter stays where it is.
    #[error(transparent)]
    Letter(#[from] DeadLetterError),
    /// The conversation can't be opened again.
    #[error("the conversation can't be opened again: {0}")]
    Torn(#[from] Torn),
    /// The organism has no such client, which would get the answers.
    #[error("the organism has no client '{0}', which would get the answers: name one that it has")]
    NoClient(Name),
    /// A limit of the organism is reached.
    #[error("{0}")]
    Full(Fault),
    /// The partitions have left the core before the act was written.
    #[error("these conversations have gone to another core or process: act again")]
    Fenced,
    /// The organism has ended.
    #[error("the organism has closed")]
    Closed,
}

crate::vocab::debug_is_display!(OperationError);

/// Outputs of the core: requests to its runtime.
#[derive(Debug)]
pub enum Output {
    /// Run a handler.
    Start(Start),
    /// Resume a parked handler with the result that it awaits.
    Resume {
        /// The handler.
        invocation: InvocationId,
        /// The group of calls that is decided.
        call: CallId,
        /// The answers in order of index, or the fault that decided against.
        result: Result<Vec<Settled>, Fault>,
    },
    /// Drop a handler at its next await, and report [`HandlerOutcome::Aborted`].
    Abort {
        /// The handler.
        invocation: InvocationId,
        /// True if its message runs again: the next owner of the partition, or the next start, takes it up.
        moves: bool,
    },
    /// A message leaves the organism.
    Egress {
        /// The message.
        egress: Egress,
        /// The place of the message in the client's exit, if its entrance reserved one.
        place: Option<ExitPlace>,
    },
    /// A conversation of a client has closed; nothing more will leave it.
    Closed {
        /// The client that owned it.
        client: ClientId,
        /// The root of the conversation.
        root: ThreadId,
    },
    /// The result of [`Input::Operate`].
    Operated {
        /// The number of the operation.
        ticket: u64,
        /// The reason if it had no effect.
        result: Result<(), OperationError>,
    },
    /// A dead letter that was marked in the journal to be redriven can't be.
    NotRedriven {
        /// The dead letter.
        letter: DeadLetterId,
        /// The reason.
        error: DeadLetterError,
    },
    /// A conversation that its client left or cancelled is not open in this core, nor will be: it may
    /// never have been.
    Gone {
        /// The root of the conversation.
        root: ThreadId,
    },
    /// A message for another core.
    Core {
        /// The receiving core.
        to: CoreId,
        /// The message.
        message: CoreMessage,
    },
    /// Append the changes of a step to the journal; [`Input::Appended`] says when they are durable.
    Append {
        /// The number of the step, from 1.
        number: u64,
        /// The changes.
        step: Step,
    },
    /// The step that an [`Attachment`] waited for is durable, or will not be made.
    Taken {
        /// Ticket of the attachment.
        ticket: u64,
        /// The end of it.
        end: AttachmentEnd,
    },
    /// A note of a handler is durable.
    Noted {
        /// The handler.
        invocation: InvocationId,
        /// The place among its notes.
        index: u32,
    },
    /// The result of [`Input::Reserve`].
    Reserved {
        /// The handler.
        invocation: InvocationId,
        /// The reason why the request must not be sent.
        result: Result<(), Box<Short>>,
    },
    /// The draft of a handler ([`Input::Drafted`]) is over: the response that it became was judged, or there is none. The
    /// messages of that response leave behind this output.
    DraftOver {
        /// The handler.
        invocation: InvocationId,
        /// The way it ended.
        end: DraftEnd,
    },
    /// An event for operators.
    Event(Event),
}

/// The end of a draft: of a text that a handler shows before its message is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DraftEnd {
    /// The message is there: the answer of the thread, or calls.
    Answered,
    /// The response broke a rule. The handler, or its thread, may begin another draft.
    Refused,
    /// The attempt broke off. The handler may begin another draft.
    Retried,
    /// The handler ended without a message: it failed, its time was over, it was cancelled, or it had nothing to say.
    Ended,
}

/// A message at an entrance.
#[derive(Debug)]
pub struct Injected {
    /// The principal that the entrance knows.
    pub client: ClientId,
    /// The envelope.
    pub message: Arrival,
    /// The id of the conversation that it opens, unless it continues one.
    pub root: ThreadId,
    /// States whether it came over a network.
    pub remote: bool,
    /// States whether the client sends nothing else: then the conversation closes once it has no open child.
    pub last: bool,
    /// Operations that are written in the step that takes the message, and answered by [`Output::Taken`].
    pub attachment: Option<Attachment>,
    /// The place of the message on the entrance queue.
    pub permit: Permit,
    /// The place of its answer in the client's exit, if the entrance reserved one.
    pub place: Option<ExitPlace>,
}

/// A message at an entrance, as far as the entrance has read it.
#[derive(Debug)]
pub enum Arrival {
    /// The bytes of an envelope.
    Raw(Raw),
    /// The message that the entrance or another core parsed, or its fault: the core does not parse it again.
    Read(Box<Result<ReadMessage, Unreadable>>),
}

impl Arrival {
    /// The label that the client gave the message, where it has been read.
    pub(super) fn label(&self) -> Option<Arc<str>> {
        let Self::Read(read) = self else { return None };
        let label = read.as_ref().as_ref().ok()?.claims.id.as_deref()?;
        (label.len() <= LABEL).then(|| label.into())
    }
}

impl From<Raw> for Arrival {
    fn from(raw: Raw) -> Self {
        Self::Raw(raw)
    }
}

/// Changes of a machine beside the core that become durable in the step in which an input takes effect, or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Attachment {
    /// The changes.
    pub ops: Vec<Op>,
    /// A note on the message of a handler that ends: it is written only if the handler's outcome is the answer of its thread.
    pub note: Option<AttachedNote>,
    /// Number under which [`Output::Taken`] reports the step.
    pub ticket: u64,
}

/// A note that is written with the answer of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedNote {
    /// Place among the notes of the handler.
    pub index: u32,
    /// Name.
    pub name: Arc<str>,
    /// Value, JSON.
    pub value: Arc<str>,
}

/// The end of an [`Attachment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentEnd {
    /// The input took effect, in a step that is durable.
    Effective,
    /// The changes are durable, but the input had no effect: the thread of the handler was over, by a deadline or a
    /// cancellation, or had no room for the answer; or the outcome of a handler with a [note](Attachment::note) was not the
    /// answer of its thread, so that the note was not written.
    Late,
    /// Neither: the organism ends or the conversation moves, and the handler's message runs again; or the input was refused.
    Dropped,
}

/// The number of a group of awaited calls, counted by the handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u32);

/// The end of a handler.
#[derive(Debug)]
#[non_exhaustive]
pub enum HandlerOutcome {
    /// The handler returned emissions, maybe none.
    Emitted(Vec<Emission>),
    /// The handler wrote bytes: none, one or several payloads, maybe dirty.
    Wrote(Raw),
    /// The handler wrote bytes that are parsed already, and proved as far as `precheck_answer` has judged them.
    Read(Box<ReadAnswer>),
    /// The handler wrote bytes that hold no valid answer, with the fault of them.
    Refused(Raw, Box<Fault>),
    /// The handler returned an error.
    Failed(Failure),
    /// The handler panicked.
    Panicked,
    /// The actor of the handler was rebuilt meanwhile.
    Discarded,
    /// The handler was dropped after [`Output::Abort`].
    Aborted,
}

/// The error of a handler.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The reason, for the caller.
    pub message: Arc<str>,
    /// A fault that passes on unchanged.
    pub fault: Option<Fault>,
}

impl Failure {
    /// Makes a failure from a sentence for the caller.
    pub fn new(message: impl Into<Arc<str>>) -> Self {
        Self { message: message.into(), fault: None }
    }

    /// Makes a failure that passes a fault on unchanged.
    pub fn passing(fault: Fault) -> Self {
        Self { message: fault.message.clone(), fault: Some(fault) }
    }
}

impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let fault = (&error as &(dyn std::error::Error + 'static)).downcast_ref::<Fault>().cloned();
        Self { message: error.to_string().into(), fault }
    }
}

/// An emission of a handler.
#[derive(Debug, Clone)]
pub struct Emission {
    /// The kind of the emission.
    pub kind: EmissionKind,
    /// The listener that it names; only for calls.
    pub to: Option<Name>,
    /// A spawned thread of its own that it addresses; only for calls.
    pub thread: Option<ThreadId>,
    /// The payload.
    pub payload: Draft,
}

/// The kind of an emission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmissionKind {
    /// The answer to the caller.
    Reply,
    /// A request to another listener.
    Call,
    /// A reply or a call, as the contract says of its QName.
    Inferred,
    /// A message to the tail of the thread's own mailbox.
    Continue {
        /// The delay.
        after: Duration,
    },
}

/// The rule by which the waiting for several answers ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// Ends with the last reply, or the first fault.
    All,
    /// Ends with the first reply; with a fault only if no callee replied.
    First,
    /// Ends with the n-th reply; with a fault once that is out of reach.
    Quorum(u32),
    /// Ends when every call has an outcome.
    Settled,
}

/// The outcome of one awaited call.
#[derive(Debug, Clone)]
pub struct Settled<T = Answer> {
    /// The index of the call in its group.
    pub index: u32,
    /// The reply, or the fault.
    pub outcome: Result<T, Fault>,
}

/// A reply to an awaited call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Answer {
    /// The callee.
    pub from: Name,
    /// The payload of the reply.
    pub payload: Validated<Element>,
}

impl Answer {
    /// Makes the answer of a callee.
    pub fn new(from: Name, payload: Validated<Element>) -> Self {
        Self { from, payload }
    }

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
    /// The id of the handler from now on.
    pub invocation: InvocationId,
    /// The listener of the handler.
    pub listener: ListenerId,
    /// The message that it handles.
    pub message: Message,
}

/// A processed message, as its receiver gets it.
#[derive(Debug)]
pub struct Message {
    /// The id of the message.
    pub id: MessageId,
    /// The thread that it is on: the receiver's own.
    pub thread: ThreadId,
    /// The sender, as stamped by the pump.
    pub from: Name,
    /// The message that it answers.
    pub in_reply_to: Option<MessageId>,
    /// Payload or fault.
    pub body: Body,
    /// The place of the message in the fan-out that it answers.
    pub join: Option<JoinPosition>,
    /// The time at which the thread ends at the latest.
    pub deadline: Option<Time>,
    /// States whether a budget bounds what its handler uses.
    pub is_budgeted: bool,
    /// Earlier runs of its handler that ended with their process.
    pub attempts: u8,
    /// The root of its conversation.
    pub root: ThreadId,
    /// The caller elsewhere that its thread works for, by its place in a trace: passed on down the tree.
    pub traceparent: Option<Traceparent>,
    /// The canonical payloads of the thread before this one, oldest first; for contracts with context.
    pub history: Vec<Remembered>,
    /// The place of the message in the context of its thread.
    pub place: Place,
    /// The number of the message in the journal; 0 if there is none.
    pub number: Number,
    /// The notes of its handler from before a crash, in order.
    pub notes: Vec<NoteRecord>,
}

/// A message that the context of a thread remembers.
#[derive(Debug, Clone)]
pub struct Remembered {
    /// The sender.
    pub from: Name,
    /// The payload.
    pub payload: Canonical,
    /// The place of the message.
    pub place: Place,
}

/// The place of a message in the context of its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The number of the message among all of its thread, from 1: a number that the history lacks is that of a message
    /// which was left out. 0 where the contract has no context.
    pub number: u32,
    /// The number of the call that it answers.
    pub answers: Option<u32>,
}

/// The content of a message.
#[derive(Debug)]
pub enum Body {
    /// A payload that keeps its contract, decoded for its receiver.
    Payload {
        /// The proof.
        payload: Validated<Element>,
        /// The value that the receiver's decoder made.
        value: Value,
    },
    /// A fault.
    Fault(Fault),
}

impl Body {
    /// The canonical XML: the payload, or that of the fault.
    pub fn written(&self) -> Canonical {
        match self {
            Self::Payload { payload, .. } => payload.payload().clone(),
            Self::Fault(fault) => write_fault(fault),
        }
    }
}

/// The place of an answer in its fan-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinPosition {
    /// The index of the call in the fan-out, from 0.
    pub index: u32,
    /// The number of calls.
    pub total: u32,
    /// The number of answers that are still to come.
    pub remaining: u32,
}

/// A message for a client.
#[derive(Debug)]
#[non_exhaustive]
pub struct Egress {
    /// The number of the message in the journal; 0 if there is none.
    pub number: Number,
    /// The client.
    pub client: ClientId,
    /// The root of the conversation.
    pub root: ThreadId,
    /// The sender of the answer.
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

/// The place of a message among those that want a slot at a start from a journal, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precedence {
    /// It stands in a mailbox, at that place: its listener has it, and so it has a slot.
    Delivered(Number),
    /// The handler of the message had begun before the start, as that number.
    Began(Number),
    /// It waited in the journal at that place.
    Waited(Number),
    /// It came after the start.
    Later,
}

/// Messages between cores. A conversation lives wholly in one core; only slots of
/// singletons and messages that continue a conversation cross. Between two of them messages keep their order.
#[derive(Debug)]
pub enum CoreMessage {
    /// A thread wants a slot of a listener whose home is the receiving core.
    SlotWanted {
        /// The core of the thread.
        from: CoreId,
        /// The listener.
        listener: ListenerId,
        /// The thread.
        thread: ThreadKey,
        /// The root of its conversation, which shares the slots with the others.
        root: ThreadKey,
        /// The client that owns the conversation, if one does: clients take turns.
        client: Option<ClientId>,
        /// States whether it resumes a parked handler.
        resume: bool,
        /// The place of its message among those that want a slot at a start from a journal.
        at: Precedence,
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
    /// The thread no longer wants the slot.
    SlotDeclined {
        /// The core of the thread.
        from: CoreId,
        /// The listener.
        listener: ListenerId,
        /// The thread.
        thread: ThreadKey,
    },
    /// The sending core has recovered from the journal: it wants no more slots for that.
    Recovered,
    /// Later dead letters, of any core, need the room of this one.
    LetterPushedOut {
        /// The letter.
        letter: DeadLetterId,
    },
    /// A message for a conversation that lives in the receiving core.
    Injected(Box<Injected>),
}

impl Emission {
    /// Returns whether it may be meant as one of these replies. A name may still lack its namespace.
    pub(super) fn may_be_one_of(&self, replies: &[QName]) -> bool {
        let root = match &self.payload {
            Draft::Canonical(payload) => payload.root(),
            Draft::Proved(payload) => payload.payload().root(),
            Draft::Unencodable(_) | Draft::NoEnvelope(_) => return false,
        };
        match self.kind {
            EmissionKind::Reply | EmissionKind::Inferred => may_be_one_of(root, replies),
            EmissionKind::Call | EmissionKind::Continue { .. } => false,
        }
    }
}

/// Returns whether a name may be meant as one of these. It may still lack its namespace.
pub(super) fn may_be_one_of(root: &QName, replies: &[QName]) -> bool {
    replies.iter().any(|reply| reply.local() == root.local())
}

impl CoreMessage {
    /// The listener whose slots the message is about.
    pub(super) fn listener(&self) -> Option<ListenerId> {
        match self {
            Self::SlotWanted { listener, .. }
            | Self::SlotGranted { listener, .. }
            | Self::SlotReturned { listener }
            | Self::SlotDeclined { listener, .. } => Some(*listener),
            Self::Recovered | Self::LetterPushedOut { .. } | Self::Injected(_) => None,
        }
    }
}
