//! Replays: recorded conversations once more, with some listeners of another version of their organism.
//!
//! The listeners that are *live* run. All others give the answers that are recorded, so nothing that they do outside of the
//! organism happens again. The clients' messages are those of the [`Recording`]. What comes of them is a recording, too, in a
//! journal of its own, and [`differences`] compares the two.
//!
//! A request finds its recorded answer by its listener and its canonical bytes. One that was not recorded gets the fault
//! `listener-failed`. Programs that are live act outside of the organism as ever; `SYSTOLE_REPLAY=1` in their environment tells
//! them that they should not.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use systole_core::core::{Body, Emission, EmissionKind, Failure, HandlerOutcome, Message};
use systole_core::journal::{
    BodyRecord, EgressRecord, FanId, JournalError, MessageRecord, Number, Owner, ReplyTo, ThreadRecord,
};
use systole_core::protocol::boot_qname;
use systole_core::vocab::{Fault, MessageId, Name, ThreadId, ThreadPath};
use systole_xml::ladder::{Canonical, LadderError, Raw, parse};
use systole_xml::schema::Draft;
use systole_xml::vocab::XmlLimits;

use crate::journal::{HistoryRecord, Reader, ThreadEntry};
use crate::runtime::{
    Conversation, IntoRequest, LocalBoxFuture, NoSuchClient, Organism, RawListener, RunContext, SendError, call_to,
};
use crate::upgrade::{Cause, Conflict};

/// A conversation of a client as a journal has it: the requests in it, and their outcomes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Recording {
    /// The conversation.
    pub conversation: ThreadId,
    /// The client that owns it.
    pub client: Name,
    /// True if it had not ended when it was read.
    pub is_open: bool,
    /// The requests in the order in which they were made.
    pub exchanges: Vec<Exchange>,
}

/// A request to a listener, and its outcome.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Exchange {
    /// The request whose handler made this one, by its place among the exchanges; none for a message of the client.
    pub caller: Option<usize>,
    /// The thread that the request opened.
    pub path: ThreadPath,
    /// The listener.
    pub listener: Name,
    /// The canonical payload.
    pub request: Bytes,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The canonical payload of the reply.
    Reply(Bytes),
    /// The fault.
    Fault(Fault),
    /// None: the request was cancelled, or waited still.
    None,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply(payload) => f.write_str(&String::from_utf8_lossy(payload)),
            Self::Fault(fault) => fault.fmt(f),
            Self::None => f.write_str("no answer"),
        }
    }
}

/// The reason why a conversation can't be replayed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The journal can't be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No such conversation is kept.
    #[error("there is no thread {0}: `systole thread list` shows the threads that are kept")]
    NoThread(ThreadId),
    /// No client began the conversation.
    #[error("no client began {0}: only conversations of clients can be replayed")]
    NoClient(ThreadId),
    /// Retention has deleted messages of the conversation.
    #[error("retention has deleted messages of {0}: only whole conversations can be replayed")]
    Forgotten(ThreadId),
    /// A message of the journal is no XML.
    #[error("a message of {conversation} can't be read: {error}")]
    Unreadable {
        /// The conversation.
        conversation: ThreadId,
        /// The error of the parser.
        error: LadderError,
    },
    /// The organism has no such client.
    #[error(transparent)]
    UnknownClient(#[from] NoSuchClient),
    /// A message of the client was not taken.
    #[error("a message of the client was not taken: {0}")]
    Send(#[from] SendError),
    /// The replay took too long, and was cancelled.
    #[error("the replay did not end within {0:?}, and was cancelled")]
    Late(Duration),
}

systole_core::vocab::debug_is_display!(ReplayError);

impl Recording {
    /// Reads the conversation of a thread, all of it at once.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn read(reader: &dyn Reader, of: ThreadId) -> Result<Self, ReplayError> {
        let threads = reader.conversation(of)?;
        let root = threads.iter().find(|thread| thread.record.parent.is_none()).ok_or(ReplayError::NoThread(of))?;
        let conversation = root.record.id;
        let Owner::Client(client) = &root.record.owner else { return Err(ReplayError::NoClient(conversation)) };
        let by_number: HashMap<Number, &ThreadEntry> =
            threads.iter().map(|thread| (thread.record.number, thread)).collect();
        let (mut requests, mut answers) = (Vec::new(), Answers::default());
        for thread in &threads {
            let mut has_opened = thread.record.parent.is_none();
            for entry in reader.said(&thread.record)? {
                match entry.said {
                    HistoryRecord::Message(message, _) => {
                        has_opened |= message.id == thread.record.opened_by;
                        match is_request(&message, thread, &by_number) {
                            true => requests.push((message, thread)),
                            false => answers.add(message),
                        }
                    }
                    HistoryRecord::Awaited(_, fan, settled) => {
                        let outcome =
                            settled.outcome.map_or_else(Outcome::Fault, |reply| Outcome::Reply(reply.payload));
                        answers.awaited.insert((fan, settled.index), outcome);
                    }
                    HistoryRecord::Left(egress, _) => answers.left.push(egress),
                    HistoryRecord::Refused(_) | HistoryRecord::Said(_) | HistoryRecord::Recorded(_) => {}
                }
            }
            if !has_opened {
                return Err(ReplayError::Forgotten(conversation));
            }
        }
        requests.sort_by_key(|(message, _)| message.number);
        let mut exchanges: Vec<Exchange> = Vec::with_capacity(requests.len());
        // The first request of each thread: the calls of the thread are its handler's.
        let mut callers: HashMap<Number, usize> = HashMap::new();
        for (message, ThreadEntry { record, .. }) in requests {
            let (Owner::Listener(listener), BodyRecord::Payload(request)) = (&record.owner, message.body) else {
                continue;
            };
            let outcome = answers.take(message.id, record, root.record.number);
            let caller = record.parent.and_then(|parent| callers.get(&parent).copied());
            callers.entry(record.number).or_insert(exchanges.len());
            let path = by_number[&record.number].path(&by_number);
            exchanges.push(Exchange { caller, path, listener: listener.clone(), request, outcome });
        }
        Ok(Self { conversation, client: client.clone(), is_open: root.closed.is_none(), exchanges })
    }

    /// Lists the requests that the handler of another one made, or the client.
    fn calls(&self, caller: Option<usize>) -> impl Iterator<Item = usize> {
        (0..self.exchanges.len()).filter(move |&at| self.exchanges[at].caller == caller)
    }
}

/// Returns whether a message is a request to the listener of a thread: the one that opened it, or one that a caller sent into
/// a thread that it spawned.
fn is_request(message: &MessageRecord, thread: &ThreadEntry, threads: &HashMap<Number, &ThreadEntry>) -> bool {
    let ThreadRecord { opened_by, spawned, parent, .. } = &thread.record;
    let caller = parent.and_then(|parent| threads.get(&parent));
    let is_of_caller = || match caller.map(|caller| &caller.record.owner) {
        Some(Owner::Listener(name) | Owner::Client(name)) => message.from == *name,
        Some(Owner::Boot | Owner::None) | None => false,
    };
    let is_no_answer = message.answers == ReplyTo::None && message.in_reply_to.is_none();
    message.id == *opened_by || *spawned && is_no_answer && is_of_caller()
}

/// The answers in a conversation, by what they answer.
#[derive(Default)]
struct Answers {
    /// By the thread that got the answer, and the message that it answers.
    received: HashMap<(Number, MessageId), Outcome>,
    /// By the place of the call in its group.
    awaited: HashMap<(FanId, u32), Outcome>,
    /// Those for the client, in order.
    left: Vec<EgressRecord>,
}

impl Answers {
    fn add(&mut self, message: MessageRecord) {
        let Some(to) = message.in_reply_to else { return };
        let outcome = match message.body {
            BodyRecord::Payload(payload) => Outcome::Reply(payload),
            BodyRecord::Fault(fault) | BodyRecord::Fatal(fault) => Outcome::Fault(fault),
        };
        self.received.insert((message.thread, to), outcome);
    }

    /// Takes the answer to a request on a thread.
    fn take(&mut self, request: MessageId, thread: &ThreadRecord, root: Number) -> Outcome {
        let Some(parent) = thread.parent else { return Outcome::None };
        if parent == root {
            return self.take_left(thread);
        }
        if let Some(outcome) = self.received.remove(&(parent, request)) {
            return outcome;
        }
        match thread.reply_to {
            ReplyTo::Fan(fan, index) if thread.opened_by == request => {
                self.awaited.remove(&(fan, index)).unwrap_or(Outcome::None)
            }
            ReplyTo::Fan(..) | ReplyTo::Single | ReplyTo::None => Outcome::None,
        }
    }

    /// Takes the answer to a message of the client: it has the label of that, and comes from its listener, or is a fault.
    fn take_left(&mut self, thread: &ThreadRecord) -> Outcome {
        let is_of_label = |egress: &EgressRecord| egress.in_reply_to == thread.label;
        let is_reply = |egress: &EgressRecord| thread.owner == Owner::Listener(egress.from.clone());
        let at = self.left.iter().position(|egress| is_of_label(egress) && is_reply(egress));
        let at = at.or_else(|| self.left.iter().position(|egress| is_of_label(egress) && egress.fault.is_some()));
        let Some(egress) = at.map(|at| self.left.remove(at)) else { return Outcome::None };
        egress.fault.map_or(Outcome::Reply(egress.payload), Outcome::Fault)
    }
}

/// The recordings of the conversations that are being replayed, from which the listeners that are not live answer.
#[derive(Clone, Default)]
pub struct Tape(Arc<Mutex<HashMap<ThreadId, Playing>>>);

struct Playing {
    recording: Arc<Recording>,
    /// The exchanges whose answers were given.
    given: Vec<bool>,
}

impl Tape {
    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Playing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the recorded outcome of a request: the first that was not given yet; else the last one, for the same request is
    /// answered alike however often it is made.
    fn outcome(&self, conversation: ThreadId, listener: &Name, request: &Bytes) -> Option<Outcome> {
        let mut playing = self.lock();
        let Playing { recording, given } = playing.get_mut(&conversation)?;
        let is_alike = |one: &Exchange| one.listener == *listener && one.request == *request;
        let alike: Vec<usize> = (0..given.len()).filter(|&at| is_alike(&recording.exchanges[at])).collect();
        let at = alike.iter().find(|&&at| !given[at]).or(alike.last()).copied()?;
        given[at] = true;
        Some(recording.exchanges[at].outcome.clone())
    }
}

/// Two handles are equal if they are of the same tape.
impl PartialEq for Tape {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Tape {}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape").finish_non_exhaustive()
    }
}

/// A listener that gives its recorded answers.
pub(crate) struct RecordedListener {
    name: Name,
    tape: Tape,
}

impl RecordedListener {
    pub(crate) fn new(name: Name, tape: Tape) -> Self {
        Self { name, tape }
    }

    fn answer(&self, message: &Message) -> HandlerOutcome {
        let Body::Payload { payload, .. } = &message.body else { return HandlerOutcome::Emitted(Vec::new()) };
        let request = payload.payload();
        if *request.root() == boot_qname() {
            return HandlerOutcome::Emitted(Vec::new());
        }
        let failed = |why: &str| HandlerOutcome::Failed(Failure::new(why));
        match self.tape.outcome(message.root, &self.name, request.bytes()) {
            Some(Outcome::Reply(reply)) => match parse(&Raw::new(reply), &XmlLimits::UNLIMITED) {
                Ok(reply) => {
                    let (to, thread, payload) = (None, None, Draft::Canonical(reply));
                    HandlerOutcome::Emitted(vec![Emission { kind: EmissionKind::Reply, to, thread, payload }])
                }
                Err(error) => failed(&format!("the recorded reply can't be read: {error}")),
            },
            Some(Outcome::Fault(fault)) => HandlerOutcome::Failed(Failure::passing(fault)),
            Some(Outcome::None) => failed("the recorded request had no answer"),
            None => failed("no answer is recorded: this request was not made"),
        }
    }
}

impl RawListener for RecordedListener {
    fn run(self: Rc<Self>, message: Message, _: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(std::future::ready(self.answer(&message)))
    }
}

/// Sends the messages of a recorded conversation to an organism whose listeners answer from the tape, each behind the answer
/// to the one before. Returns the id of the new conversation when that has ended.
///
/// # Errors
/// [`ReplayError`]: the client is not there, a message is not taken, or the conversation does not end within that time.
///
/// # Cancel safety
/// Dropping the future cancels the new conversation.
pub async fn play(
    organism: &Organism,
    tape: &Tape,
    recording: Arc<Recording>,
    within: Duration,
) -> Result<ThreadId, ReplayError> {
    let mut conversation = organism.client(recording.client.as_str())?.converse();
    let id = conversation.id();
    let given = vec![false; recording.exchanges.len()];
    tape.lock().insert(id, Playing { recording: recording.clone(), given });
    let played = tokio::time::timeout(within, send_all(&mut conversation, &recording)).await;
    // Cancels it, unless it has ended.
    drop(conversation);
    tape.lock().remove(&id);
    played.map_err(|_| ReplayError::Late(within))??;
    Ok(id)
}

async fn send_all(conversation: &mut Conversation, recording: &Recording) -> Result<(), ReplayError> {
    let requests: Vec<_> = recording.calls(None).map(|at| &recording.exchanges[at]).collect();
    let Some((last, before)) = requests.split_last() else { return Ok(()) };
    let payload = |exchange: &Exchange| -> Result<Canonical, ReplayError> {
        let read = parse(&Raw::new(exchange.request.clone()), &XmlLimits::UNLIMITED);
        read.map_err(|error| ReplayError::Unreadable { conversation: recording.conversation, error })
    };
    for exchange in before {
        conversation.send(call_to(exchange.listener.as_str(), payload(exchange)?))?;
        if exchange.outcome != Outcome::None {
            conversation.receive().await;
        }
    }
    conversation.send_only(call_to(last.listener.as_str(), payload(last)?).into_request())?;
    while conversation.receive().await.is_some() {}
    Ok(())
}

/// A difference between a conversation and its replay.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Difference {
    /// A handler made another request, or one more, or one less.
    Request {
        /// The thread of the handler; the root for a message of the client.
        caller: ThreadPath,
        /// The listener.
        listener: Name,
        /// The recorded request, if there is one.
        recorded: Option<Bytes>,
        /// The request of the replay, if there is one.
        replayed: Option<Bytes>,
    },
    /// A request had another outcome.
    Outcome {
        /// The thread of the request.
        path: ThreadPath,
        /// The recorded outcome.
        recorded: Outcome,
        /// The outcome of the replay.
        replayed: Outcome,
    },
}

/// Compares a recorded conversation with its replay, request by request, from the client's down. Requests of one handler are
/// matched by their listeners and payloads, whatever their order; what is left is matched by the listener. Faults are compared
/// by their codes.
///
/// Below a listener that was not live, there is nothing to compare. Of an open conversation only the requests that are recorded
/// are compared: their answers, and what follows, are still to come.
pub fn differences(recorded: &Recording, replayed: &Recording, live: &BTreeSet<Name>) -> Vec<Difference> {
    let mut comparison = Comparison { recorded, replayed, found: Vec::new() };
    let mut callers = vec![(None, None)];
    // A call comes later than its caller, so this ends.
    while let Some((before, after)) = callers.pop() {
        let same = comparison.calls(before, after);
        let below = same.into_iter().filter(|&(at, _)| live.contains(&recorded.exchanges[at].listener));
        callers.extend(below.map(|(before, after)| (Some(before), Some(after))));
    }
    comparison.found
}

struct Comparison<'a> {
    recorded: &'a Recording,
    replayed: &'a Recording,
    found: Vec<Difference>,
}

impl Comparison<'_> {
    /// Compares the requests of one handler. Returns the pairs that it made alike.
    fn calls(&mut self, before: Option<usize>, after: Option<usize>) -> Vec<(usize, usize)> {
        let (one, other) = (&self.recorded.exchanges, &self.replayed.exchanges);
        let mut made: Vec<_> = self.replayed.calls(after).collect();
        let mut take = |is_wanted: &dyn Fn(&Exchange) -> bool| {
            let at = made.iter().position(|&at| is_wanted(&other[at]))?;
            Some(made.remove(at))
        };
        let (mut same, mut unmatched) = (Vec::new(), Vec::new());
        for at in self.recorded.calls(before) {
            let Exchange { listener, request, .. } = &one[at];
            match take(&|made| made.listener == *listener && made.request == *request) {
                Some(made) => same.push((at, made)),
                None => unmatched.push(at),
            }
        }
        let caller = || before.map_or_else(|| ThreadPath::new(Vec::new()), |before| one[before].path.clone());
        for at in unmatched {
            let Exchange { listener, request, .. } = &one[at];
            let instead = take(&|made| made.listener == *listener);
            self.found.push(Difference::Request {
                caller: caller(),
                listener: listener.clone(),
                recorded: Some(request.clone()),
                replayed: instead.map(|made| other[made].request.clone()),
            });
        }
        if !self.recorded.is_open {
            for at in made {
                let Exchange { listener, request, .. } = &other[at];
                let (listener, replayed) = (listener.clone(), Some(request.clone()));
                self.found.push(Difference::Request { caller: caller(), listener, recorded: None, replayed });
            }
        }
        for &(at, made) in &same {
            let (recorded, replayed) = (&one[at].outcome, &other[made].outcome);
            if !self.recorded.is_open && !recorded.is_like(replayed) {
                let (recorded, replayed) = (recorded.clone(), replayed.clone());
                self.found.push(Difference::Outcome { path: one[at].path.clone(), recorded, replayed });
            }
        }
        same
    }
}

impl Outcome {
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fault(one), Self::Fault(other)) => one.code == other.code,
            (one, other) => one == other,
        }
    }
}

/// Returns the recorded requests of an open conversation that its handlers would not make again: such a handler fails when it
/// runs again.
pub fn conflicts(recorded: &Recording, replayed: &Recording, live: &BTreeSet<Name>) -> Vec<Conflict> {
    let of_request = |difference| match difference {
        Difference::Request { caller, listener, recorded: Some(request), .. } => {
            let payload = parse(&Raw::new(request), &XmlLimits::UNLIMITED).ok()?.root().clone();
            let (conversation, cause) = (recorded.conversation, Cause::NotRepeated { listener, payload });
            Some(Conflict { conversation, path: caller, message: None, cause })
        }
        Difference::Request { .. } | Difference::Outcome { .. } => None,
    };
    differences(recorded, replayed, live).into_iter().filter_map(of_request).collect()
}
