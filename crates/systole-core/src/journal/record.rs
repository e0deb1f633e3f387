//! Steps of the journal: operations and their records.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;

use super::mail::{AddresseeRecord, AgentRecord, MailRecord, MailStatus, OpenMail, SubmissionRecord};
use crate::vocab::{Amounts, Budget, Fault, MessageId, Name, Partition, QName, TaskId, ThreadId, ThreadPath, Time};

/// The name of a record: given in order, never twice in the life of a journal.
///
/// The numbers of an epoch are `epoch << 39 | count`, and all cores count together: so numbers of all cores are in the
/// order in which they were given, and those of a later epoch are greater. A message that comes later has the greater
/// number among those of its thread. Each start is an epoch. One that gives more numbers than an epoch has goes on with
/// those of the next, which the journal counts as begun with the first record that has one ([`Op::number`]).
pub type Number = u64;

/// Bits of a [`Number`] that count within an epoch.
const COUNT_BITS: u32 = 39;

/// The last epoch in which an organism can start. Numbers stay below 2^63, and the epochs behind it are room for a
/// start that outlasts its own: 74 years at 60,000 numbers a second.
pub const LAST_EPOCH: u32 = (1 << (63 - COUNT_BITS)) - 257;

/// Lower bound of the numbers of an epoch.
pub fn numbers_after(epoch: u32) -> Number {
    u64::from(epoch) << COUNT_BITS
}

/// The epoch of a number.
pub fn epoch_of(number: Number) -> u32 {
    u32::try_from(number >> COUNT_BITS).expect("a number of 64 bits has 25 before its count")
}

/// The changes of one step of a core. It is written whole or not at all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    /// The changes, in order.
    pub ops: Vec<Op>,
    /// The time of the step.
    pub at: Time,
}

impl Step {
    /// About the bytes that the step has: those of payloads, envelopes and other long values, and a constant for the rest
    /// of each operation.
    pub fn bytes(&self) -> usize {
        self.ops.iter().map(|op| SHORT + op.long_bytes()).sum()
    }
}

/// About the bytes of an operation without long values.
const SHORT: usize = 128;

/// An operation: one change.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// A thread opened.
    Open(ThreadRecord),
    /// A spawned thread owes another answer than before, or none.
    Owes {
        /// The thread.
        thread: Number,
        /// The message whose answer it owes.
        opened_by: MessageId,
        /// The destination of that answer.
        reply_to: ReplyTo,
    },
    /// The client of a root sends nothing else.
    Left {
        /// The root.
        thread: Number,
    },
    /// A thread closed. Its messages, its fan-outs and its history are cancelled.
    Close {
        /// The thread.
        thread: Number,
    },
    /// The budget of a thread is used so far; it replaces the record before.
    Budget(BudgetRecord),
    /// A message waits. A second one of the same number replaces the first: it has moved on from a delay or a backlog.
    Put(MessageRecord),
    /// A message was consumed: its handler has ended, or it ended its thread.
    Done {
        /// The message.
        message: Number,
    },
    /// A message was discarded.
    Cancelled {
        /// The message.
        message: Number,
    },
    /// The n-th run of a message's handler has ended with its process, or began behind a crash of the organism; 0: the handler
    /// parked, or an answer to it was recorded.
    Attempt {
        /// The message.
        message: Number,
        /// The number of such runs.
        attempts: u32,
    },
    /// Calls were made together.
    Fan(FanRecord),
    /// Answers of a fan-out were consumed.
    Delivered {
        /// The fan-out.
        fan: FanId,
        /// The number of them, in all.
        count: u32,
    },
    /// Calls of a fan-out ended without an answer.
    CountedOff {
        /// The fan-out.
        fan: FanId,
        /// The number of them, in all.
        count: u32,
    },
    /// An answer that a handler awaits came.
    Settled {
        /// The group of calls.
        fan: FanId,
        /// The outcome of the call.
        settled: SettledRecord,
    },
    /// A group of awaited calls was decided.
    Decided {
        /// The group of calls.
        fan: FanId,
        /// The place of the group in the order of decisions.
        order: Number,
        /// The result that the handler gets.
        result: Result<Vec<SettledRecord>, Fault>,
    },
    /// A handler gave a group of awaited calls up.
    Dropped {
        /// The group of calls.
        fan: FanId,
    },
    /// The result of a group of awaited calls is no longer needed: a re-run does not ask for it.
    Forgotten {
        /// The group of calls.
        fan: FanId,
    },
    /// A handler recorded a value that a re-run must get again; ignored if its message has ended.
    Note(NoteRecord),
    /// The context of a thread remembers a message.
    Remember(RememberedRecord),
    /// The context of a thread forgot the entries before a number.
    Forget {
        /// The thread.
        thread: Number,
        /// The oldest that stays; `Number::MAX` for none.
        before: Number,
    },
    /// The context of a thread forgot the entries between that of the message which opened it and a number.
    ForgetBetween {
        /// The thread.
        thread: Number,
        /// The entry that stays.
        after: Number,
        /// The oldest other one that stays; `Number::MAX` for none.
        before: Number,
    },
    /// A message leaves for a client, and waits until it is read.
    Leave(EgressRecord),
    /// The client has it.
    Read {
        /// The message that left.
        egress: Number,
    },
    /// A dead letter is kept.
    Letter(LetterRecord),
    /// A dead letter was redriven, discarded or evicted.
    LetterGone {
        /// The letter.
        letter: Number,
    },
    /// A dead letter that was to be redriven can't be: it stays.
    Unmark {
        /// The letter.
        letter: Number,
    },
    /// The state of a task. A second one of the same inbox and id replaces the first.
    Task(TaskRecord),
    /// An inbox forgot a task.
    TaskGone {
        /// The listener whose inbox it was in.
        inbox: Name,
        /// The task.
        id: TaskId,
    },
    /// The state of a listener, which replaces the one before.
    State(StateRecord),
    /// A message came into the mailbox of a remote listener. A second one of the same id changes nothing.
    Mail(MailRecord, MailStatus),
    /// The delivery status of a message in a mailbox.
    MailStatus {
        /// Place of the message.
        seq: Number,
        /// Status of the message.
        status: MailStatus,
    },
    /// A dead letter of a mailbox moves behind its last message, with that status.
    MailMoved {
        /// Place that it leaves.
        from: Number,
        /// Place that it takes.
        to: Number,
        /// Status of the message in that mailbox.
        status: MailStatus,
    },
    /// A message of a mailbox is deleted.
    MailGone {
        /// Place of the message.
        seq: Number,
    },
    /// The presence of a remote listener, which replaces the one before.
    Agent(AgentRecord),
    /// The addressee of a listener's answers is fixed.
    Addressee(AddresseeRecord),
    /// A client submitted a message.
    Submitted(SubmissionRecord),
    /// An operator paused a listener, or resumed it.
    Paused {
        /// The listener.
        listener: Name,
        /// Time since which it is paused; none if it is resumed.
        since: Option<Time>,
    },
    /// An operator acted. It is over at once, and kept as ended work is.
    Acted(ActRecord),
}

impl Op {
    /// The number that the operation gives to a record, if it gives one.
    pub fn number(&self) -> Option<Number> {
        match self {
            Self::Open(thread) => Some(thread.number),
            Self::Put(message) => Some(message.number.max(message.place)),
            Self::Decided { order, .. } => Some(*order),
            Self::Remember(entry) => Some(entry.number),
            Self::Leave(egress) => Some(egress.number),
            Self::Letter(letter) => Some(letter.number),
            _ => None,
        }
    }

    /// Bytes of the values that may be long.
    fn long_bytes(&self) -> usize {
        match self {
            Self::Put(message) => match &message.body {
                BodyRecord::Payload(payload) => payload.len(),
                BodyRecord::Fault(_) | BodyRecord::Fatal(_) => 0,
            },
            Self::Fan(fan) => {
                let requests = |call: &CallRecord| call.requests.iter().map(|request| request.text.len()).sum();
                fan.call.as_ref().map_or(0, requests)
            }
            Self::Settled { settled, .. } => settled.long_bytes(),
            Self::Decided { result: Ok(settled), .. } => settled.iter().map(SettledRecord::long_bytes).sum(),
            Self::Note(note) => note.value.len(),
            Self::Remember(entry) => entry.payload.len(),
            Self::Leave(egress) => egress.envelope.len() + egress.payload.len(),
            Self::Letter(letter) => letter.payload.as_ref().map_or(0, |(_, payload)| payload.len()),
            Self::Task(task) => task.body.len(),
            Self::State(state) => state.blob.len(),
            Self::Mail(mail, status) => mail.envelope.len() + status.answer.as_ref().map_or(0, Bytes::len),
            Self::MailStatus { status, .. } | Self::MailMoved { status, .. } => {
                status.answer.as_ref().map_or(0, Bytes::len)
            }
            _ => 0,
        }
    }
}

/// An open thread.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadRecord {
    /// The number of the thread.
    pub number: Number,
    /// The opaque id of the thread.
    pub id: ThreadId,
    /// The thread that opened it; none for a root.
    pub parent: Option<Number>,
    /// The root of its conversation; its own number for a root.
    pub root: Number,
    /// The owner of the thread.
    pub owner: Owner,
    /// The place among the children of the same listener and parent.
    pub ordinal: u32,
    /// Threads above it.
    pub depth: u16,
    /// The message whose answer it owes.
    pub opened_by: MessageId,
    /// The destination of that answer.
    pub reply_to: ReplyTo,
    /// The time at which the thread ends at the latest.
    pub deadline: Time,
    /// States whether that is a deadline of its own, rather than one from above.
    pub own_deadline: bool,
    /// States whether its owner addresses it by id.
    pub spawned: bool,
    /// States whether its client sends nothing else: for roots.
    pub left: bool,
    /// The label that the client gave the message which opened it.
    pub label: Option<Arc<str>>,
    /// W3C trace context.
    pub traceparent: Option<Arc<str>>,
}

/// The greatest ordinal of the children of a listener below an open thread, ended children included: the next child gets
/// a greater one, so that no two threads of a conversation have the same path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrdinalRecord {
    /// The open thread.
    pub parent: Number,
    /// The listener.
    pub listener: Name,
    /// The greatest ordinal.
    pub last: u32,
}

/// The budget of an open thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetRecord {
    /// The thread.
    pub thread: Number,
    /// The most that it and the threads below it may use, without a time: that is the deadline of the thread.
    pub budget: Budget,
    /// The amounts that they have used, and those that are reserved for requests in flight.
    pub spent: Amounts,
}

/// The owner of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A listener.
    Listener(Name),
    /// A client, of a root.
    Client(Name),
    /// A root of `<boot>`: the next start boots anew, so that nothing below it is taken up.
    Boot,
    /// No owner: the root of a redriven dead letter.
    None,
}

/// The name of a fan-out: the message whose handler made the calls, and for awaited calls their number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FanId {
    /// The message.
    pub message: Number,
    /// The number of the group that its handler awaits; none for the calls of its response.
    pub call: Option<u32>,
}

/// The destination of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyTo {
    /// Nowhere.
    None,
    /// The parent, as the answer to its only call.
    Single,
    /// The parent, as one of several, or to an awaited call.
    Fan(FanId, u32),
}

/// A message that waits in a mailbox, or is in the hands of its handler.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageRecord {
    /// The number of the message. The messages of a mailbox are in order of `place`.
    pub number: Number,
    /// The place of the message in the mailbox.
    pub place: Number,
    /// The thread.
    pub thread: Number,
    /// The id of the message.
    pub id: MessageId,
    /// The sender: a listener, a client, `core` or `system`.
    pub from: Name,
    /// The message that it answers.
    pub in_reply_to: Option<MessageId>,
    /// The fan-out and the index that it answers.
    pub answers: ReplyTo,
    /// The event that the message waits for.
    pub state: MessageState,
    /// The content of the message.
    pub body: BodyRecord,
    /// The number of runs of its handler that ended with their process.
    pub attempts: u32,
}

/// The event that a message waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// The turn of its thread.
    Queued,
    /// A moment.
    Delayed(Time),
    /// The call before it on a spawned thread; its answer goes there.
    Backlog(ReplyTo),
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum BodyRecord {
    /// A canonical payload.
    Payload(Bytes),
    /// A fault for the listener's handler.
    Fault(Fault),
    /// A fault which ends the thread when its turn comes.
    Fatal(Fault),
}

/// Calls that were made together.
#[derive(Debug, Clone, PartialEq)]
pub struct FanRecord {
    /// The name of the fan-out.
    pub id: FanId,
    /// The thread that made them.
    pub thread: Number,
    /// The message whose handler made them.
    pub source: MessageId,
    /// The number of calls.
    pub total: u32,
    /// Answers that were consumed.
    pub delivered: u32,
    /// Calls that ended without one.
    pub counted_off: u32,
    /// The state of awaited calls.
    pub call: Option<CallRecord>,
}

/// A group of awaited calls.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    /// The requests, to be compared with those of a re-run.
    pub requests: Vec<RequestRecord>,
    /// The rule by which the waiting ends: `all`, `first`, `settled`, or a number of replies.
    pub join: String,
    /// The time at which the waiting ends at the latest.
    pub until: Option<Time>,
    /// Answers so far.
    pub settled: Vec<SettledRecord>,
    /// The result of the group.
    pub outcome: FanOutcome,
}

/// The result of a group of awaited calls.
#[derive(Debug, Clone, PartialEq)]
pub enum FanOutcome {
    /// The group is open.
    Open,
    /// The group is decided.
    Decided {
        /// The place of the group in the order of decisions.
        order: Number,
        /// The result for the handler.
        result: Result<Vec<SettledRecord>, Fault>,
    },
    /// The handler gave it up.
    Dropped,
}

/// A request, as far as a re-run must repeat it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// The listener that it names.
    pub to: Option<Name>,
    /// The spawned thread that it addresses.
    pub thread: Option<ThreadId>,
    /// The payload, or the reason why there is none; cut to 1 KiB.
    pub text: String,
    /// BLAKE3 of the whole payload.
    pub digest: [u8; 32],
}

/// The outcome of one awaited call.
#[derive(Debug, Clone, PartialEq)]
pub struct SettledRecord {
    /// The index of the call in its group.
    pub index: u32,
    /// The reply, or the fault.
    pub outcome: Result<AnswerRecord, Fault>,
}

impl SettledRecord {
    fn long_bytes(&self) -> usize {
        self.outcome.as_ref().map_or(0, |answer| answer.payload.len())
    }
}

/// A reply to an awaited call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerRecord {
    /// The callee.
    pub from: Name,
    /// The canonical payload.
    pub payload: Bytes,
}

/// A value that a handler learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteRecord {
    /// The message that the handler worked on.
    pub message: Number,
    /// The place among the notes of that message.
    pub index: u32,
    /// The name of the value: `now`, or the name that the handler gave.
    pub name: Arc<str>,
    /// The value as JSON.
    pub value: Arc<str>,
}

impl NoteRecord {
    /// The place of the pump's own note where a thread has a context: its value is a [`Seen`].
    pub const CONTEXT: u32 = u32::MAX;
    /// The place of the pump's own note at a listener with one slot: the handler of the message began. Its value is the
    /// number of that, so a start after a crash lets handlers begin again in the same order.
    pub const BEGAN: u32 = u32::MAX - 1;
    /// The place of the note that keeps a refused output of a handler. It comes with the end of its message, so no
    /// re-run gets it. Its value is the payload of `protocol::write_refused`.
    pub const REFUSED: u32 = u32::MAX - 2;
    /// The name of such a note.
    pub const REFUSED_NAME: &str = "refused";
    /// The place of the note that keeps the end of what a program wrote on standard error before its message failed. It
    /// comes with the end of that message, too. Its value is the text. The notes of handlers stand before it.
    pub const SAID: u32 = u32::MAX - 3;
    /// The name of such a note.
    pub const SAID_NAME: &str = "stderr";
}

/// The message of a handler in the context of its thread, as it was when the handler first got it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The number of the entry: the handler had not seen later ones when it began.
    pub number: Number,
    /// The place of the message among all of its thread; 0 where it is not known.
    pub place: u32,
    /// The place of the call that it answers.
    pub answers: Option<u32>,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number, self.place)?;
        self.answers.map_or(Ok(()), |call| write!(f, " {call}"))
    }
}

impl FromStr for Seen {
    type Err = ParseIntError;

    /// A number alone is that of an entry without a known place.
    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let mut parts = text.split(' ');
        let number = parts.next().unwrap_or_default().parse()?;
        let place = parts.next().map_or(Ok(0), str::parse)?;
        Ok(Self { number, place, answers: parts.next().map(str::parse).transpose()? })
    }
}

/// A message that the context of a thread remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RememberedRecord {
    /// The number of the entry.
    pub number: Number,
    /// The thread.
    pub thread: Number,
    /// The place of the message among all of its thread, from 1; 0 where it is not known.
    pub place: u32,
    /// The calls that it makes, or the one that it answers.
    pub link: Link,
    /// The sender.
    pub from: Name,
    /// The canonical payload.
    pub payload: Bytes,
}

/// The calls of a thread that a message in its context is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Link {
    /// None.
    #[default]
    None,
    /// The calls that the payload makes, by the messages that they are: a broadcast makes several.
    Calls(Vec<MessageId>),
    /// The call that it answers, by the place of that in the thread.
    Answers(u32),
}

/// A message for a client.
#[derive(Debug, Clone, PartialEq)]
pub struct EgressRecord {
    /// The number of the message.
    pub number: Number,
    /// The client.
    pub client: Name,
    /// The conversation.
    pub root: ThreadId,
    /// The sender of the answer.
    pub from: Name,
    /// The label of the message that is answered.
    pub in_reply_to: Option<Arc<str>>,
    /// The canonical envelope.
    pub envelope: Bytes,
    /// The fault inside, if it is one.
    pub fault: Option<Fault>,
    /// The canonical payload.
    pub payload: Bytes,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq)]
pub struct LetterRecord {
    /// The number of the letter.
    pub number: Number,
    /// The partition that keeps it: that of the conversation which it came from, where there was one.
    pub partition: Partition,
    /// The time at which it became a dead letter.
    pub at: Time,
    /// The sender.
    pub from: Name,
    /// The listener that it was for.
    pub to: Option<Name>,
    /// The thread that it came from or was meant for.
    pub place: LetterPlace,
    /// The payload.
    pub payload: Option<(QName, Bytes)>,
    /// The reason.
    pub reason: Fault,
}

/// The place of a dead letter, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterPlace {
    /// The conversation; none for a message that was in none.
    pub conversation: Option<ThreadId>,
    /// The path of the thread in it.
    pub path: ThreadPath,
}

/// A task in the inbox of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRecord {
    /// The listener whose inbox it is in.
    pub inbox: Name,
    /// The id of the task.
    pub id: TaskId,
    /// The place in the order of arrival; no two tasks of one inbox have the same.
    pub place: u64,
    /// The state of the task, for people who look into the store: `pending`, `accepted` and so on.
    pub state: Arc<str>,
    /// The whole task, as JSON.
    pub body: Arc<str>,
}

/// A listener that an operator has paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedRecord {
    /// The listener.
    pub listener: Name,
    /// Time since which it is paused.
    pub since: Time,
}

/// An act of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActRecord {
    /// The operator.
    pub by: Name,
    /// The name of the act.
    pub act: Arc<str>,
    /// The conversation, thread, dead letter, listener or organism that it was about.
    pub of: Arc<str>,
    /// The reason why it had no effect.
    pub error: Option<Arc<str>>,
    /// The conversation that a retry opened.
    pub opened: Option<ThreadId>,
}

/// The state of a party beside the cores: of a listener, kept with its inbox, or of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRecord {
    /// The listener.
    pub listener: Name,
    /// Bytes that only the listener understands.
    pub blob: Bytes,
}

/// The records of a journal that are not over.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recovered {
    /// The secret of derived ids: made at the first start, the same ever after.
    pub key: [u8; 32],
    /// The epoch that begins with it, from 1.
    pub epoch: u32,
    /// States whether the last one ended without [`close`](super::Journal::close): messages may have been running.
    pub crashed: bool,
    /// Open threads, in order of number.
    pub threads: Vec<ThreadRecord>,
    /// The greatest ordinals of the children of open threads, as far as the journal still has those, in order of parent,
    /// then of listener.
    pub ordinals: Vec<OrdinalRecord>,
    /// The budgets of open threads, in order of number.
    pub budgets: Vec<BudgetRecord>,
    /// Fan-outs of open threads, in order.
    pub fans: Vec<FanRecord>,
    /// Messages that are not done, in order of place.
    pub messages: Vec<MessageRecord>,
    /// The notes of those messages, in order.
    pub notes: Vec<NoteRecord>,
    /// The history of open threads, in order of number.
    pub remembered: Vec<RememberedRecord>,
    /// Messages that clients have not read, in order of number.
    pub egress: Vec<EgressRecord>,
    /// The dead letters, in order of number.
    pub letters: Vec<LetterRecord>,
    /// The dead letters that an operator wants redriven, in order of number; [`Op::LetterGone`] and [`Op::Unmark`]
    /// strike them out.
    pub redrive: Vec<Number>,
    /// The tasks of all inboxes, in order of inbox, then of place.
    pub tasks: Vec<TaskRecord>,
    /// The states of listeners, in order of name.
    pub states: Vec<StateRecord>,
    /// The messages of mailboxes that have not ended, dead letters among them, in order of place.
    pub mail: Vec<OpenMail>,
    /// The last place that was given in any mailbox.
    pub last_mail: Number,
    /// Remote listeners, in order of name.
    pub agents: Vec<AgentRecord>,
    /// Addressees of remote listeners, in order of mailbox.
    pub addressees: Vec<AddresseeRecord>,
    /// Listeners that an operator has paused, in order of name.
    pub paused: Vec<PausedRecord>,
}
