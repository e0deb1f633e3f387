//! Replays: recorded conversations once more, with some listeners of another version of their organism.
//!
//! The listeners that are *live* run. All others give the answers that are recorded, so nothing that they do outside of the
//! organism happens again; their recorded requests are made again where a live listener is below. The clients' messages are those
//! of the [`Recording`]. What comes of them is a recording, too, in a journal of its own, and [`compare`] compares the two.
//!
//! A request finds its recorded answer by its listener, its canonical bytes, and the name of its caller. One that was not recorded
//! gets the fault `listener-failed`; one that has no recorded answer waits. A replay ends when nothing but such requests is left.
//! Programs that are live act outside of the organism as ever; `SYSTOLE_REPLAY=1` in their environment tells them that they should
//! not.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use systole_core::core::{Body, Emission, EmissionKind, Failure, HandlerOutcome, Join, Message, Routing};
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
    Conversation, Emit, IntoRequest, LocalBoxFuture, NoSuchClient, Organism, RawListener, RunContext, SendError, call,
    call_to,
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
                        let is_of_core = settled.outcome.as_ref().is_ok_and(|reply| reply.from == Name::core());
                        let outcome =
                            settled.outcome.map_or_else(Outcome::Fault, |reply| Outcome::Reply(reply.payload));
                        if !is_of_core {
                            answers.awaited.insert((fan, settled.index), outcome);
                        }
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
        if answers.has_replies() {
            return Err(ReplayError::Forgotten(conversation));
        }
        Ok(Self { conversation, client: client.clone(), is_open: root.closed.is_none(), exchanges })
    }

    /// A conversation of which nothing is recorded, since each message of the client was refused.
    pub fn refused(conversation: ThreadId, client: Name) -> Self {
        Self { conversation, client, is_open: false, exchanges: Vec::new() }
    }

    /// Lists the requests that the handler of another one made, or the client.
    fn calls(&self, caller: Option<usize>) -> impl Iterator<Item = usize> {
        (0..self.exchanges.len()).filter(move |&at| self.exchanges[at].caller == caller)
    }

    /// Tells of each exchange whether a live listener handles it, or one below it.
    fn reaching(&self, live: &BTreeSet<Name>) -> Vec<bool> {
        let mut reaching: Vec<bool> = self.exchanges.iter().map(|one| live.contains(&one.listener)).collect();
        // A call comes later than its caller.
        for at in (0..reaching.len()).rev() {
            if let (true, Some(caller)) = (reaching[at], self.exchanges[at].caller) {
                reaching[caller] = true;
            }
        }
        reaching
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
        let Some(to) = message.in_reply_to.filter(|_| message.from != Name::core()) else { return };
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

    /// Returns whether replies are left: the threads that gave them are not kept. A fault may be the answer to a request that
    /// opened no thread.
    fn has_replies(&self) -> bool {
        self.received.values().chain(self.awaited.values()).any(|outcome| matches!(outcome, Outcome::Reply(_)))
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
#[derive(Clone)]
pub struct Tape {
    live: Arc<BTreeSet<Name>>,
    playing: Arc<Mutex<HashMap<ThreadId, Playing>>>,
}

struct Playing {
    recording: Arc<Recording>,
    /// The exchanges that a live listener handles, or one below.
    reaching: Vec<bool>,
    /// The exchanges whose answers were given.
    given: Vec<bool>,
}

/// The recorded reaction to a request.
struct Reaction {
    /// Requests below which a live listener is.
    calls: Vec<(Name, Bytes)>,
    outcome: Outcome,
}

impl Tape {
    /// Makes a tape for replays in which these listeners run.
    pub fn new(live: BTreeSet<Name>) -> Self {
        Self { live: Arc::new(live), playing: Arc::default() }
    }

    /// Returns the listeners that run.
    pub fn live(&self) -> &BTreeSet<Name> {
        &self.live
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Playing>> {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the recorded answers that were given in a conversation.
    fn given(&self, conversation: ThreadId) -> usize {
        self.lock().get(&conversation).map_or(0, |playing| playing.given.iter().filter(|&&given| given).count())
    }

    /// Waits until nothing is left in the organism but requests without a recorded answer. A handler that waits for one may
    /// still do something else, so a second has to pass without another request.
    async fn is_through(&self, conversation: ThreadId, organism: &Organism) {
        let mut before = None;
        loop {
            organism.run_until_idle().await;
            let given = self.given(conversation);
            if before.replace(given) == Some(given) {
                return;
            }
            tokio::time::sleep(QUIET).await;
        }
    }

    /// Finds the recorded reaction to a request: that to one of the same caller, if there is one, and the first that was not
    /// given yet; else the last one, for the same request is answered alike however often it is made.
    fn reaction(&self, conversation: ThreadId, from: &Name, listener: &Name, request: &Bytes) -> Option<Reaction> {
        let mut playing = self.lock();
        let Playing { recording, reaching, given } = playing.get_mut(&conversation)?;
        let exchanges = &recording.exchanges;
        let is_alike = |one: &Exchange| one.listener == *listener && one.request == *request;
        let mut alike: Vec<usize> = (0..exchanges.len()).filter(|&at| is_alike(&exchanges[at])).collect();
        let is_of_caller = |at: usize| match exchanges[at].caller {
            Some(caller) => exchanges[caller].listener == *from,
            None => recording.client == *from,
        };
        if alike.iter().any(|&at| is_of_caller(at)) {
            alike.retain(|&at| is_of_caller(at));
        }
        let at = alike.iter().find(|&&at| !given[at]).or(alike.last()).copied()?;
        given[at] = true;
        let calls = recording.calls(Some(at)).filter(|&call| reaching[call]);
        let calls = calls.map(|call| (exchanges[call].listener.clone(), exchanges[call].request.clone())).collect();
        Some(Reaction { calls, outcome: exchanges[at].outcome.clone() })
    }
}

/// Two handles are equal if they are of the same tape.
impl PartialEq for Tape {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.playing, &other.playing)
    }
}

impl Eq for Tape {}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape").field("live", &self.live).finish_non_exhaustive()
    }
}

/// A listener that gives its recorded answers.
pub(crate) struct RecordedListener {
    name: Name,
    tape: Tape,
}

/// Requests that a recorded listener makes at once.
const AT_ONCE: usize = 64;
/// The time without a request behind which a replay is through.
const QUIET: Duration = Duration::from_secs(1);

impl RecordedListener {
    pub(crate) fn new(name: Name, tape: Tape) -> Self {
        Self { name, tape }
    }

    async fn answer(&self, message: &Message, context: &RunContext) -> HandlerOutcome {
        let Body::Payload { payload, .. } = &message.body else { return HandlerOutcome::Emitted(Vec::new()) };
        let request = payload.payload();
        if *request.root() == boot_qname() {
            return HandlerOutcome::Emitted(Vec::new());
        }
        let failed = |why: &str| HandlerOutcome::Failed(Failure::new(why));
        let reaction = self.tape.reaction(message.root, &message.from, &self.name, request.bytes());
        let Some(Reaction { calls, outcome }) = reaction else {
            return failed("no answer is recorded: this request was not made");
        };
        for calls in calls.chunks(AT_ONCE) {
            let calls = calls.iter().filter_map(|(listener, request)| {
                Some(call_to(listener.as_str(), parse(&Raw::new(request.clone()), &XmlLimits::UNLIMITED).ok()?))
            });
            // Their answers change nothing here: they are compared.
            let _ = context.thread().call_all_any(calls.collect::<Vec<_>>(), Join::Settled).await;
        }
        match outcome {
            Outcome::Reply(reply) => match parse(&Raw::new(reply), &XmlLimits::UNLIMITED) {
                Ok(reply) => {
                    let (to, thread, payload) = (None, None, Draft::Canonical(reply));
                    HandlerOutcome::Emitted(vec![Emission { kind: EmissionKind::Reply, to, thread, payload }])
                }
                Err(error) => failed(&format!("the recorded reply can't be read: {error}")),
            },
            Outcome::Fault(fault) => HandlerOutcome::Failed(Failure::passing(fault)),
            Outcome::None => {
                context.unattended();
                std::future::pending().await
            }
        }
    }
}

impl RawListener for RecordedListener {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(async move { self.answer(&message, &context).await })
    }
}

/// Sends the messages of a recorded conversation to an organism whose listeners answer from the tape, each behind the answer
/// to the one before. Returns the id of the new conversation when that has ended, or nothing is left in the organism but requests
/// without a recorded answer.
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
    let (reaching, given) = (recording.reaching(tape.live()), vec![false; recording.exchanges.len()]);
    tape.lock().insert(id, Playing { recording: recording.clone(), reaching, given });
    let played = tokio::time::timeout(within, send_all((organism, tape), &mut conversation, &recording)).await;
    // Cancels what is left of it.
    conversation.cancel();
    tape.lock().remove(&id);
    played.map_err(|_| ReplayError::Late(within))??;
    Ok(id)
}

async fn send_all(
    (organism, tape): (&Organism, &Tape),
    conversation: &mut Conversation,
    recording: &Recording,
) -> Result<(), ReplayError> {
    let id = conversation.id();
    let messages = messages(organism, recording)?;
    let Some((last, before)) = messages.split_last() else { return Ok(()) };
    for message in before {
        conversation.send(message.request())?;
        for _ in 0..message.answers {
            tokio::select! {
                biased;
                _ = conversation.receive() => {}
                // It does not come this time.
                () = tape.is_through(id, organism) => break,
            }
        }
    }
    conversation.send_only(last.request().into_request())?;
    let answered = async { while conversation.receive().await.is_some() {} };
    tokio::select! {
        biased;
        () = answered => {}
        () = tape.is_through(id, organism) => {}
    }
    Ok(())
}

/// A message of the client.
struct ClientMessage {
    /// The listener, where the payload alone does not lead to it.
    to: Option<Name>,
    payload: Canonical,
    /// The number of answers that it had.
    answers: usize,
}

impl ClientMessage {
    fn request(&self) -> Emit {
        let payload = self.payload.clone();
        match &self.to {
            Some(to) => call_to(to.as_str(), payload),
            None => call(payload),
        }
    }
}

/// Lists the messages of the client. One that several listeners got is one message, which goes to all that take it now.
fn messages(organism: &Organism, recording: &Recording) -> Result<Vec<ClientMessage>, ReplayError> {
    let blueprint = organism.blueprint();
    let (mut messages, mut reached): (Vec<ClientMessage>, BTreeSet<&Name>) = (Vec::new(), BTreeSet::new());
    for at in recording.calls(None) {
        let Exchange { listener, request, outcome, .. } = &recording.exchanges[at];
        let payload = parse(&Raw::new(request.clone()), &XmlLimits::UNLIMITED)
            .map_err(|error| ReplayError::Unreadable { conversation: recording.conversation, error })?;
        let answers = usize::from(*outcome != Outcome::None);
        let mut takers = blueprint.accepting(payload.root()).iter().map(|&id| &blueprint[id]);
        let is_routed = takers.any(|one| one.name == *listener && one.routing != Routing::Addressed);
        match messages.last_mut() {
            Some(message)
                if is_routed
                    && message.to.is_none()
                    && message.payload.bytes() == payload.bytes()
                    && reached.insert(listener) =>
            {
                message.answers += answers;
            }
            _ => {
                reached = BTreeSet::from([listener]);
                messages.push(ClientMessage { to: (!is_routed).then(|| listener.clone()), payload, answers });
            }
        }
    }
    Ok(messages)
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

/// A conversation beside its replay.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Comparison {
    /// The recorded requests to live listeners.
    pub live: usize,
    /// The differences.
    pub differences: Vec<Difference>,
}

/// Compares a recorded conversation with its replay, request by request, from the client's down. Requests of one handler are
/// matched by their listeners and payloads, whatever their order; what is left is matched by the listener. Faults are compared
/// by their codes.
///
/// Of a listener that was not live only the requests are compared below which a live one is. Of an open conversation only the
/// requests that are recorded are compared: their answers, and what follows, are still to come.
pub fn compare(recorded: &Recording, replayed: &Recording, live: &BTreeSet<Name>) -> Comparison {
    let reaching = recorded.reaching(live);
    let mut comparer = Comparer { recorded, replayed, live, reaching: &reaching, found: Vec::new() };
    let mut callers = vec![(None, None)];
    // A call comes later than its caller, so this ends.
    while let Some((before, after)) = callers.pop() {
        let same = comparer.calls(before, after);
        let below = same.into_iter().filter(|&(at, _)| reaching[at]);
        callers.extend(below.map(|(before, after)| (Some(before), Some(after))));
    }
    let of_live = recorded.exchanges.iter().filter(|one| live.contains(&one.listener));
    Comparison { live: of_live.count(), differences: comparer.found }
}

struct Comparer<'a> {
    recorded: &'a Recording,
    replayed: &'a Recording,
    live: &'a BTreeSet<Name>,
    reaching: &'a [bool],
    found: Vec<Difference>,
}

impl Comparer<'_> {
    /// Compares the requests of one handler. Returns the pairs that it made alike.
    fn calls(&mut self, before: Option<usize>, after: Option<usize>) -> Vec<(usize, usize)> {
        let (one, other) = (&self.recorded.exchanges, &self.replayed.exchanges);
        // A listener that was not live makes no other requests than these.
        let is_live = before.is_none_or(|before| self.live.contains(&one[before].listener));
        let mut made: Vec<_> = self.replayed.calls(after).collect();
        let mut take = |is_wanted: &dyn Fn(&Exchange) -> bool| {
            let at = made.iter().position(|&at| is_wanted(&other[at]))?;
            Some(made.remove(at))
        };
        let (mut same, mut unmatched) = (Vec::new(), Vec::new());
        for at in self.recorded.calls(before).filter(|&at| is_live || self.reaching[at]) {
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

/// Returns what a replay shows of an open conversation: the recorded requests that its handlers would not make again, for such a
/// handler fails when it runs again.
pub fn conflicts(recorded: &Recording, replayed: &Recording, live: &BTreeSet<Name>) -> Vec<Conflict> {
    let of_request = |difference| match difference {
        Difference::Request { caller, listener, recorded: Some(request), .. } => {
            let payload = parse(&Raw::new(request), &XmlLimits::UNLIMITED).ok()?.root().clone();
            let (conversation, cause) = (recorded.conversation, Cause::NotRepeated { listener, payload });
            Some(Conflict { conversation, path: caller, message: None, cause })
        }
        Difference::Request { .. } | Difference::Outcome { .. } => None,
    };
    compare(recorded, replayed, live).differences.into_iter().filter_map(of_request).collect()
}

/// Returns the conflict of an open conversation that could not be replayed.
pub fn not_replayed(conversation: ThreadId, error: &ReplayError) -> Conflict {
    let cause = Cause::NotReplayed { why: error.to_string() };
    Conflict { conversation, path: ThreadPath::new(Vec::new()), message: None, cause }
}
