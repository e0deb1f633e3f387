//! The state machine itself: what it holds, how inputs enter, how outputs leave.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use slotmap::SlotMap;
use systole_xml::schema::{Catalog, DecodeFn, Validator};

use super::blueprint::{Blueprint, ListenerId};
use super::dead::DeadLetters;
use super::directory::Directory;
use super::faults;
use super::gather::Gathering;
use super::gauge::Gauge;
use super::io::{Injected, Input, Outcome, Output, ShardId, ShardMessage};
use super::join::Fan;
use super::key::{FanKey, TaskId, ThreadKey};
use super::lane::Lane;
use super::log::Log;
use super::replay::Replay;
use super::requeue::Requeued;
use super::respond::{Calls, Response};
use super::ring::Ring;
use super::slots::{Slots, Waiter};
use super::task::Task;
use super::thread::{Owner, Thread};
use super::timer::Timers;
use crate::journal::{Number, Op, numbers_after};
use crate::vocab::{IdKey, QName, ThreadId, ThreadPath, Time};

/// What a core is made from.
pub struct CoreConfig {
    /// Its own shard.
    pub shard: ShardId,
    /// How many shards there are, at least 1. The home of listener n is shard n modulo this.
    pub shards: u16,
    /// Who is there.
    pub blueprint: Arc<Blueprint>,
    /// The schemas of all payloads.
    pub catalog: Arc<Catalog>,
    /// How payloads become what listeners take.
    pub decoders: Arc<Decoders>,
    /// The secret of derived ids.
    pub key: IdKey,
    /// What waits in all shards.
    pub gauge: Gauge,
    /// Where conversations live, and how many threads there are in all shards.
    pub directory: Directory,
    /// Whether to make events for operators.
    pub events: bool,
    /// When the organism started, for `<boot>`.
    pub started: Time,
    /// Which start of the organism this is, where it is durable: then [`Output::Append`] says what is to be
    /// written, and what follows from a step waits until it is.
    pub epoch: Option<u16>,
}

/// The decoder of each payload that a listener takes; by listener, so that a look-up makes no key.
#[derive(Clone, Default)]
pub struct Decoders(Vec<HashMap<QName, DecodeFn>>);

impl Decoders {
    /// Sets the decoder of a payload for a listener.
    pub fn insert(&mut self, listener: ListenerId, payload: QName, decode: DecodeFn) {
        let listener = listener.0 as usize;
        if self.0.len() <= listener {
            self.0.resize_with(listener + 1, HashMap::new);
        }
        self.0[listener].insert(payload, decode);
    }

    pub(super) fn get(&self, listener: ListenerId, payload: &QName) -> Option<&DecodeFn> {
        self.0.get(listener.0 as usize)?.get(payload)
    }
}

/// What became of all messages so far. At any moment injected + emitted + made + requeued + recovered is
/// delivered + faulted + dead + cancelled + [`Core::waiting`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages of clients.
    pub injected: u64,
    /// Payloads that handlers emitted.
    pub emitted: u64,
    /// Messages of the pump itself: boot, faults, answers of the core, copies of a broadcast, dead letters of what was
    /// refused with a fault.
    pub made: u64,
    /// Dead letters that were queued again.
    pub requeued: u64,
    /// Messages that the journal held at the start.
    pub recovered: u64,
    /// Given to a handler, to the core or to a client.
    pub delivered: u64,
    /// Refused with a fault, or faults that passed on.
    pub faulted: u64,
    /// Given to nobody: the dead letters.
    pub dead: u64,
    /// Discarded because their thread was over.
    pub cancelled: u64,
}

/// The open threads of a shard at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// The threads, in order of opening.
    pub threads: Vec<OpenThread>,
}

/// An open thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenThread {
    /// Its conversation.
    pub root: ThreadId,
    /// Its id.
    pub id: ThreadId,
    /// The listeners from the root to it.
    pub path: ThreadPath,
    /// Messages in its mailbox.
    pub queued: usize,
}

/// A deterministic message pump: threads, mailboxes, turns, joins, faults.
///
/// It belongs to one OS thread, because compiled schemas do.
pub struct Core {
    pub(super) shard: ShardId,
    pub(super) shards: u16,
    pub(super) blueprint: Arc<Blueprint>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) decoders: Arc<Decoders>,
    pub(super) validator: Validator,
    pub(super) key: IdKey,
    pub(super) gauge: Gauge,
    pub(super) context: Gauge,
    pub(super) directory: Directory,
    pub(super) events: bool,
    pub(super) started: Time,
    pub(super) now: Time,

    pub(super) threads: SlotMap<ThreadKey, Thread>,
    pub(super) tasks: SlotMap<TaskId, Task>,
    pub(super) fans: SlotMap<FanKey, Fan>,
    pub(super) roots: HashMap<ThreadId, ThreadKey>,
    pub(super) spawned: HashMap<ThreadId, ThreadKey>,
    /// Lower bound of the numbers of this start, where the organism is durable.
    pub(super) first: Option<Number>,
    /// The last number that was given to a thread, where it is not.
    pub(super) sequence: u64,
    /// Messages that entered from outside so far.
    pub(super) entries: u64,
    /// What is written down, if anything is.
    pub(super) log: Option<Box<Log>>,
    /// What handlers of recovered messages did before, until they run again.
    pub(super) replays: HashMap<Number, Replay>,

    pub(super) queue: VecDeque<Item>,
    pub(super) ring: Ring,
    pub(super) slots: Vec<Slots>,
    /// Recovered threads that want a slot, until all shards have recovered.
    pub(super) gathering: Option<Gathering>,
    pub(super) down: Vec<bool>,
    pub(super) lane: Lane,
    pub(super) timers: Timers,
    pub(super) outputs: VecDeque<Output>,
    pub(super) draining: bool,
    pub(super) stopped: bool,
    pub(super) turn_of_ring: bool,

    /// Messages in mailboxes and backlogs.
    pub(super) queued: usize,
    /// Messages that wait for their delay.
    pub(super) delayed: usize,
    /// Handlers that keep the core from being idle.
    pub(super) running: usize,
    /// Results that wait until it is the turn of the handlers which await them.
    pub(super) resumes: usize,
    pub(super) counts: Counts,
    pub(super) dead: DeadLetters,
}

/// One item of Queue 1.
pub(super) enum Item {
    Injected(Injected),
    Response(Response),
    Calls(Calls),
    /// What a handler called before it said so comes first.
    Reattached(TaskId),
    Requeued(Requeued),
    /// What a client sent before it left comes first.
    Left(ThreadId),
    Cancel(ThreadId),
}

impl Item {
    /// Whether it is a message of its own in the books.
    pub(super) fn is_message(&self) -> bool {
        match self {
            Self::Injected(_) | Self::Requeued(_) => true,
            Self::Response(_) | Self::Calls(_) | Self::Reattached(_) | Self::Left(_) | Self::Cancel(_) => false,
        }
    }
}

impl Core {
    /// An empty core; compiles the schemas.
    pub fn new(config: CoreConfig) -> Self {
        let CoreConfig { shard, shards, blueprint, catalog, decoders, key, gauge, directory, events, started, epoch } =
            config;
        // The ids of an earlier start must not come again.
        let entries = epoch.map_or(0, |epoch| numbers_after(epoch, shard.0));
        let shards = shards.max(1);
        let limits = &blueprint.limits;
        Self {
            shard,
            shards,
            validator: Validator::new(catalog.clone()),
            context: Gauge::new(usize::MAX, limits.context_total_bytes / usize::from(shards)),
            ring: Ring::default(),
            slots: blueprint.listeners().map(|(_, contract)| Slots::new(contract.concurrency)).collect(),
            gathering: (epoch.is_some() && shards > 1).then(|| Gathering::new(shards)),
            down: blueprint.listeners().map(|_| false).collect(),
            dead: DeadLetters::new(shard, limits),
            blueprint,
            catalog,
            decoders,
            key,
            gauge,
            directory,
            events,
            started,
            now: started,
            threads: SlotMap::with_key(),
            tasks: SlotMap::with_key(),
            fans: SlotMap::with_key(),
            roots: HashMap::new(),
            spawned: HashMap::new(),
            first: epoch.map(|epoch| numbers_after(epoch, 0)),
            sequence: 0,
            entries,
            log: epoch.map(|_| Box::default()),
            replays: HashMap::new(),
            queue: VecDeque::new(),
            lane: Lane::default(),
            timers: Timers::default(),
            outputs: VecDeque::new(),
            draining: false,
            stopped: false,
            turn_of_ring: false,
            queued: 0,
            delayed: 0,
            running: 0,
            resumes: 0,
            counts: Counts::default(),
        }
    }

    /// Takes one input. What follows from it comes out of [`Core::poll`].
    pub fn handle(&mut self, input: Input, now: Time) {
        self.now = self.now.max(now);
        match input {
            Input::Boot { root } => self.boot(root),
            Input::Injected(message) => self.inject(message),
            Input::Finished { task, outcome } => self.finished(task, outcome),
            Input::Called { task, call, requests, join } => self.called(task, call, requests, join),
            Input::CallDropped { task, call } => self.call_dropped(task, call),
            Input::CallForgotten { task, call } => self.forget_call(task, call),
            Input::Attached { task, attachment } => self.attach(task, attachment),
            Input::Reattached { task } => self.reattached_later(task),
            Input::Parked { task } => self.parked(task),
            Input::ListenerDown { listener } => self.set_down(listener, true),
            Input::ListenerUp { listener } => self.set_down(listener, false),
            Input::Left { root } => self.queue.push_back(Item::Left(root)),
            Input::Cancel { root } => {
                self.cancel_conversation(root);
                // The message that opens it may still be on Queue 1.
                self.queue.push_back(Item::Cancel(root));
            }
            Input::Shard(message) => self.hear(message),
            Input::Recovered(recovered) => self.recover(*recovered),
            Input::Appended { number } => self.appended(number),
            Input::Unwritable => self.unwritable(),
            Input::Read { number } => self.log(|_| Op::Read { egress: number }),
            Input::Noted { task, index, name, value, answer } => {
                self.noted(task, index, name, value);
                answer.into_iter().for_each(|answer| self.model_answered(task, *answer));
            }
            Input::Requeue { letter, root } => self.requeue(letter, root),
            Input::Discard { letter } => self.discard_letter(letter),
            Input::Tick => {}
            Input::Drain => self.drain(),
            Input::Stop => self.stop(),
        }
        self.end_step();
    }

    /// Does the next steps of work until one of them asks for something; `None` when there is
    /// nothing to do before the next input or [`Core::next_wake`].
    ///
    /// Queue 1 and the ring take turns, so that neither starves the other.
    pub fn poll(&mut self, now: Time) -> Option<Output> {
        self.now = self.now.max(now);
        loop {
            if let Some(output) = self.next_output() {
                return Some(output);
            }
            if let Some((id, timer)) = self.timers.due(self.now) {
                self.expire(id, timer);
                self.end_step();
                continue;
            }
            self.turn_of_ring = !self.turn_of_ring;
            let worked = match self.turn_of_ring {
                true => self.dispatch() || self.process(),
                false => self.process() || self.dispatch(),
            };
            if !worked {
                return None;
            }
            self.end_step();
        }
    }

    /// When [`Core::poll`] has something to do even if nothing comes in.
    pub fn next_wake(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Whether nothing is queued, running or parked. Delayed continues don't count, nor do handlers
    /// of `<boot>`, unless they [speak at their end](super::Contract::speaks_at_end).
    pub fn is_idle(&self) -> bool {
        let moving = self.queue.len() + self.resumes + self.unsaid();
        moving == 0 && (self.queued == 0 && self.running == 0 || self.rests())
    }

    /// Whether a durable core that drains has nothing left but what its next start takes up: handlers of listeners that
    /// [outlive](super::Contract::outlives) the process, and what waits for those.
    fn rests(&self) -> bool {
        let outlives = |task: &Task| self.blueprint.contract(task.listener).outlives;
        self.draining
            && self.logs()
            && self.tasks.values().all(|task| !task.is_running() || task.boot || outlives(task))
    }

    /// What became of all messages so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Messages that still have something before them.
    pub fn waiting(&self) -> u64 {
        let injected = self.queue.iter().filter(|item| item.is_message()).count();
        (injected + self.queued + self.delayed) as u64
    }

    /// The dead letters, oldest first.
    pub fn dead_letters(&self) -> &DeadLetters {
        &self.dead
    }

    /// The open threads, in order of opening.
    pub fn snapshot(&self) -> Snapshot {
        let mut keys: Vec<_> = self.threads.iter().map(|(key, thread)| (thread.sequence, key)).collect();
        keys.sort_unstable();
        let describe = |(_, key): (u64, ThreadKey)| {
            let thread = &self.threads[key];
            OpenThread {
                root: self.threads[thread.root].id,
                id: thread.id,
                path: self.path(key),
                queued: thread.mailbox.len(),
            }
        };
        Snapshot { threads: keys.into_iter().map(describe).collect() }
    }

    pub(super) fn path(&self, mut key: ThreadKey) -> ThreadPath {
        let mut segments = Vec::new();
        while let Some(thread) = self.threads.get(key) {
            if let Owner::Listener(listener) = thread.owner {
                segments.push((self.blueprint.contract(listener).name.clone(), thread.ordinal));
            }
            let Some(parent) = thread.parent else { break };
            key = parent;
        }
        segments.reverse();
        ThreadPath::new(segments)
    }

    /// One item of Queue 1.
    fn process(&mut self) -> bool {
        let Some(item) = self.queue.pop_front() else { return false };
        match item {
            Item::Injected(message) => self.admit(message),
            Item::Response(response) => self.respond(response),
            Item::Calls(calls) => self.place_calls(calls),
            Item::Reattached(task) => self.reattached(task),
            Item::Requeued(letter) => self.reissue(letter),
            Item::Left(root) => self.leave(root),
            Item::Cancel(root) => {
                self.cancel_conversation(root);
                self.outputs.push_back(Output::Gone { root });
            }
        }
        true
    }

    fn inject(&mut self, message: Injected) {
        self.counts.injected += 1;
        if self.blueprint.client(message.client).is_none() {
            self.taken(message.attachment, false);
            return self.bury_stranger();
        }
        if self.stopped {
            return self.abandon(Item::Injected(message), &faults::cancelled());
        }
        self.queue.push_back(Item::Injected(message));
    }

    fn hear(&mut self, message: ShardMessage) {
        // One of another organism has no slots here.
        if message.listener().is_some_and(|listener| self.blueprint.listener(listener).is_none()) {
            return;
        }
        match message {
            ShardMessage::SlotWanted { from, listener, thread, root, resume, at } => {
                self.slot_wanted(listener, Waiter { shard: from, thread, root }, resume, at);
            }
            ShardMessage::SlotGranted { listener, thread } => self.slot_granted(listener, thread),
            ShardMessage::SlotReturned { listener } => self.slot_returned(listener),
            ShardMessage::SlotDeclined { from, listener, thread } => {
                self.slot_declined(listener, from, thread);
            }
            ShardMessage::Recovered => self.shard_recovered(),
            ShardMessage::Injected(message) => self.inject(*message),
        }
    }

    fn finished(&mut self, id: TaskId, outcome: Outcome) {
        let Some(task) = self.end_task(id) else { return };
        let emissions = match &outcome {
            Outcome::Emitted(emissions) => emissions.len(),
            Outcome::Wrote(_) => 1,
            _ => 0,
        };
        match task.thread.filter(|&thread| self.threads.contains_key(thread)) {
            Some(thread) => self.thread_finished(thread, task, outcome),
            None => {
                self.log_attached(task.log);
                self.counts.emitted += emissions as u64;
                self.counts.cancelled += emissions as u64;
            }
        }
    }
}
