//! The tree of threads: their mailboxes and fan-outs, the holdings of conversations, and the dead letters.
//!
//! Each change is recorded where it is made: a method that changes what the journal holds takes the outputs, and writes
//! its operation there. Other parts read threads by [`Tree::get`] or by index, and never change one.

mod bounds;
mod children;
mod close;
mod context;
mod conversation;
mod fan_out;
mod loops;
mod open;
mod recording;
mod recover;
mod thread;

use std::collections::VecDeque;
use std::ops::Index;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use slotmap::SlotMap;
use uuid::Uuid;

pub(super) use context::About;
use context::{Bounds, Change};
pub use conversation::Holding;
pub(super) use fan_out::{CountedOff, Decided, FanOut, FanOutKind};
pub(super) use open::Child;
pub(super) use recover::Turned;
pub(super) use thread::{Owner, Thread, Turn};

use super::clock::TimerId;
use super::dead_letters::{DeadLetter, DeadLetterId, DeadLetters};
use super::directory::Directory;
use super::event::{Event, EventKind};
use super::gauge::{Gauge, Overloaded, Permit};
use super::io::{Place, Remembered};
use super::key::{FanOutKey, InvocationId, ThreadKey};
use super::queued::Queued;
use super::setup::{Setup, StepContext};
use crate::journal::{LetterPlace, Number, Op};
use crate::vocab::{Fault, Name, Partition, ThreadId, ThreadPath};
use systole_xml::ladder::Canonical;

/// The threads of a core, and all that hangs on them.
pub(super) struct Tree {
    setup: Rc<Setup>,
    directory: Directory,
    /// The messages that wait in all cores.
    gauge: Gauge,
    /// The bytes that the contexts of this core remember.
    context: Gauge,
    threads: SlotMap<ThreadKey, Thread>,
    fan_outs: SlotMap<FanOutKey, FanOut>,
    /// The roots of clients.
    roots: HashMap<ThreadId, ThreadKey>,
    spawned: HashMap<ThreadId, ThreadKey>,
    dead: DeadLetters,
    /// Messages in mailboxes and backlogs.
    queued: usize,
    /// Messages that wait for their delay.
    delayed: usize,
    /// Threads whose work the present step may have ended.
    touched: VecDeque<ThreadKey>,
}

/// The open threads of a core at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// The threads, in order of opening.
    pub threads: Vec<OpenThread>,
}

/// An open thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenThread {
    /// The root of its conversation.
    pub root: ThreadId,
    /// The id of the thread.
    pub id: ThreadId,
    /// The listeners from the root to it.
    pub path: ThreadPath,
    /// Messages in its mailbox.
    pub queued: usize,
}

impl Index<ThreadKey> for Tree {
    type Output = Thread;

    fn index(&self, key: ThreadKey) -> &Thread {
        &self.threads[key]
    }
}

impl Tree {
    pub(super) fn new(setup: Rc<Setup>, directory: Directory, gauge: Gauge) -> Self {
        let limits = &setup.blueprint.limits;
        Self {
            directory,
            gauge,
            context: Gauge::new(usize::MAX, limits.context_total_bytes / usize::from(setup.cores)),
            threads: SlotMap::with_key(),
            fan_outs: SlotMap::with_key(),
            roots: HashMap::new(),
            spawned: HashMap::new(),
            dead: DeadLetters::new(setup.core, limits),
            queued: 0,
            delayed: 0,
            touched: VecDeque::new(),
            setup,
        }
    }

    pub(super) fn get(&self, key: ThreadKey) -> Option<&Thread> {
        self.threads.get(key)
    }

    pub(super) fn contains(&self, key: ThreadKey) -> bool {
        self.threads.contains_key(key)
    }

    /// Returns whether no thread is open.
    pub(super) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// The root of a client's conversation, if it is open in this core.
    pub(super) fn root(&self, id: ThreadId) -> Option<ThreadKey> {
        self.roots.get(&id).copied()
    }

    /// A spawned thread, if it is a child of that owner.
    pub(super) fn spawned_by(&self, owner: ThreadKey, id: ThreadId) -> Option<ThreadKey> {
        let child = *self.spawned.get(&id)?;
        self.threads.get(child).filter(|thread| thread.parent == Some(owner)).map(|_| child)
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Messages in mailboxes and backlogs.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Messages that wait: in mailboxes and backlogs, and for their delay.
    pub(super) fn waiting(&self) -> usize {
        self.queued + self.delayed
    }

    /// The threads that are asked for, in order of opening.
    pub(super) fn in_order(&self, wanted: impl Fn(&Thread) -> bool) -> Vec<ThreadKey> {
        let threads = self.threads.iter().filter(|(_, thread)| wanted(thread));
        let mut threads: Vec<_> = threads.map(|(key, thread)| (thread.sequence, key)).collect();
        threads.sort_unstable();
        threads.into_iter().map(|(_, key)| key).collect()
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let describe = |key| {
            let thread = &self.threads[key];
            let root = self.threads[thread.root].id;
            OpenThread { root, id: thread.id, path: self.path(key), queued: thread.mailbox.len() }
        };
        Snapshot { threads: self.in_order(|_| true).into_iter().map(describe).collect() }
    }

    /// A thread and those above it, up to its root.
    pub(super) fn upward(&self, key: ThreadKey) -> impl Iterator<Item = ThreadKey> {
        std::iter::successors(Some(key), |&key| self.threads.get(key)?.parent)
    }

    /// The listeners from the root to a thread.
    pub(super) fn path(&self, mut key: ThreadKey) -> ThreadPath {
        let mut segments = Vec::new();
        while let Some(thread) = self.threads.get(key) {
            if let Owner::Listener(listener) = thread.owner {
                segments.push((self.setup.blueprint.contract(listener).name.clone(), thread.ordinal));
            }
            let Some(parent) = thread.parent else { break };
            key = parent;
        }
        segments.reverse();
        ThreadPath::new(segments)
    }

    /// Makes an event on an open thread.
    pub(super) fn event(&self, key: ThreadKey, step: &mut StepContext, kind: impl FnOnce() -> EventKind) {
        if let Some(thread) = self.threads.get(key) {
            step.out.event(|at| {
                let root = self.threads.get(thread.root).unwrap_or(thread).id;
                Event { root, thread: thread.id, path: self.path(key), at, kind: kind() }
            });
        }
    }

    /// Returns whether a thread stands right below a root without an owner, as those of boot do.
    pub(super) fn is_below_boot(&self, key: ThreadKey) -> bool {
        self.threads[key].parent.is_some_and(|parent| self.threads[parent].owner == Owner::None)
    }

    /// The partition of the conversation of a thread.
    pub(super) fn partition(&self, key: ThreadKey) -> Partition {
        let root = self.threads.get(key).and_then(|thread| self.threads.get(thread.root));
        match root {
            Some(root) if root.is_boot() => Partition::BOOT,
            Some(root) => Partition::of(root.id),
            None => self.setup.first_partition(),
        }
    }

    /// Lets a thread be settled at the end of the step: it may have nothing left to do.
    pub(super) fn touch(&mut self, key: ThreadKey) {
        if self.touched.back() != Some(&key) {
            self.touched.push_back(key);
        }
    }

    /// Takes the thread that was touched first.
    pub(super) fn next_touched(&mut self) -> Option<ThreadKey> {
        self.touched.pop_front()
    }

    /// Sets the place of a thread in the queues for its turn; the place that it had.
    pub(super) fn set_turn(&mut self, key: ThreadKey, turn: Turn) -> Turn {
        std::mem::replace(&mut self.threads[key].turn, turn)
    }

    /// Sets the handler of the message in flight; the one that it had.
    pub(super) fn set_invocation(&mut self, key: ThreadKey, invocation: Option<InvocationId>) -> Option<InvocationId> {
        let thread = self.threads.get_mut(key)?;
        std::mem::replace(&mut thread.invocation, invocation)
    }

    /// Counts a response or group of calls of a thread on Queue 1.
    pub(super) fn begin_judging(&mut self, key: ThreadKey) {
        self.threads[key].judging += 1;
    }

    /// Counts off a response or group of calls that was on Queue 1. The thread, if it is open.
    pub(super) fn end_judging(&mut self, key: ThreadKey) -> Option<&Thread> {
        let thread = self.threads.get_mut(key)?;
        thread.judging -= 1;
        Some(thread)
    }

    /// Counts one more response of a thread without a valid emission, up to a limit; whether that is reached.
    pub(super) fn count_mistake(&mut self, key: ThreadKey, limit: u32) -> bool {
        let Some(thread) = self.threads.get_mut(key) else { return false };
        thread.invalid = thread.invalid.saturating_add(1);
        u32::from(thread.invalid) >= limit
    }

    /// Forgets the responses of a thread without a valid emission.
    pub(super) fn forget_mistakes(&mut self, key: ThreadKey) {
        if let Some(thread) = self.threads.get_mut(key) {
            thread.invalid = 0;
        }
    }

    /// Puts a message at the end of a thread's mailbox.
    pub(super) fn put(&mut self, key: ThreadKey, mut message: Queued, step: &mut StepContext) {
        self.write_put(key, &mut message, recording::Waits::Turn, step);
        self.threads[key].mailbox.push(message);
        self.queued += 1;
    }

    /// Takes the next message of a thread.
    pub(super) fn take(&mut self, key: ThreadKey) -> Option<Queued> {
        let message = self.threads[key].mailbox.pop()?;
        self.queued -= 1;
        Some(message)
    }

    /// Puts a message into the mailbox of its own thread after a delay.
    pub(super) fn delay(
        &mut self,
        key: ThreadKey,
        mut message: Queued,
        after: std::time::Duration,
        step: &mut StepContext,
    ) {
        let due = step.clock.now().after(after);
        self.write_put(key, &mut message, recording::Waits::Moment(due), step);
        self.set_delay(key, message, due, step);
    }

    /// The delay of a message is over.
    pub(super) fn end_delay(&mut self, key: ThreadKey, id: TimerId) {
        self.threads[key].extra().continues.retain(|&other| other != id);
        self.delayed -= 1;
    }

    /// Notes that a drain cancelled a delayed message of a thread.
    pub(super) fn mark_drained(&mut self, key: ThreadKey) {
        self.threads[key].extra().drained = true;
    }

    /// Adds to the context of a thread; the number and the place that it has there.
    pub(super) fn remember(
        &mut self,
        key: ThreadKey,
        (from, payload): (Name, Canonical),
        about: About,
        step: &mut StepContext,
    ) -> (Number, Place) {
        let number = if step.out.writes() { step.out.next_number() } else { 0 };
        let Self { threads, setup, context, .. } = self;
        let bounds = bounds_of(&threads[key], setup);
        let history = threads[key].extra().history.get_or_insert_default();
        let (calls, answers) = match about {
            About::Nothing => (Vec::new(), None),
            About::Calls(calls) => (calls, None),
            About::Answers(call) => (Vec::new(), Some(call)),
        };
        let place = history.next_place(answers);
        let message = Remembered { from, payload, place };
        let kept = step.out.writes().then(|| (message.clone(), calls.clone()));
        let Change { is_kept, forgotten } = history.remember((number, message, calls), bounds, context);
        let gaps = history.gaps();
        if let Some((message, calls)) = kept {
            let thread = threads[key].sequence;
            if is_kept {
                step.out.write(|| recording::remembered(number, thread, &message, &calls));
            }
            if forgotten > 0 {
                write_forgotten(thread, gaps, step);
            }
        }
        let messages = forgotten + u32::from(!is_kept);
        if messages > 0 {
            self.event(key, step, || EventKind::LeftOut { messages, why: None });
        }
        (number, place)
    }

    /// The messages that the context of a thread remembers from before a number.
    pub(super) fn history(&mut self, key: ThreadKey, before: Number) -> Vec<Remembered> {
        self.threads[key].extra().history.get_or_insert_default().messages(before)
    }

    /// Clears the context of a thread, but for the message that opened it.
    pub(super) fn clear_history(&mut self, key: ThreadKey, step: &mut StepContext) {
        let history = self.threads[key].extra().history.get_or_insert_default();
        history.clear();
        let gaps = history.gaps();
        write_forgotten(self.threads[key].sequence, gaps, step);
    }

    /// Puts a summary in place of the messages of a context up to a place, or nothing.
    pub(super) fn condense(
        &mut self,
        key: ThreadKey,
        until: u32,
        summary: Result<Canonical, Arc<str>>,
        step: &mut StepContext,
    ) {
        let Self { threads, context, .. } = self;
        let thread = threads[key].sequence;
        let history = threads[key].extra().history.get_or_insert_default();
        let (messages, former) = history.forget_until(until);
        if messages == 0 && former.is_none() {
            return;
        }
        let summary = summary.and_then(|payload| {
            let number = if step.out.writes() { step.out.next_number() } else { 0 };
            let place = Place { number: until, answers: None };
            let entry = Remembered { from: Name::core(), payload, place };
            let is_kept = history.summarize(number, entry.clone(), context);
            is_kept.then_some((number, entry)).ok_or_else(|| "there is no room for the summary".into())
        });
        let gaps = history.gaps();
        if let Some(former) = former.filter(|_| step.out.writes()) {
            write_forgotten(thread, [Some((former.saturating_sub(1), former.saturating_add(1))), None], step);
        }
        write_forgotten(thread, gaps, step);
        match summary {
            Ok((number, entry)) => {
                step.out.write(|| recording::remembered(number, thread, &entry, &[]));
                let bytes = entry.payload.bytes().len();
                self.event(key, step, || EventKind::Summarized { messages, bytes });
            }
            Err(why) => self.event(key, step, || EventKind::LeftOut { messages, why: Some(why) }),
        }
    }

    /// Takes a place for a message of so many bytes among those that wait in all cores.
    pub(super) fn admit(&self, bytes: usize) -> Result<Permit, Overloaded> {
        self.gauge.admit(bytes)
    }

    pub(super) fn dead_letters(&self) -> &DeadLetters {
        &self.dead
    }

    /// Keeps an undeliverable message as a dead letter.
    pub(super) fn keep_dead(
        &mut self,
        (from, to): (Name, Option<Name>),
        (partition, place): (Partition, LetterPlace),
        payload: Option<Canonical>,
        reason: Fault,
        step: &mut StepContext,
    ) {
        let id = match step.out.writes() {
            true => self.dead.id_of(step.out.next_number()),
            false => self.dead.next_id(),
        };
        let LetterPlace { conversation, path } = place;
        let letter = DeadLetter { id, partition, at: step.clock.now(), from, to, conversation, path, payload, reason };
        step.out.write(|| recording::letter(&letter));
        self.keep_letter(letter, step);
    }

    /// Takes a dead letter step, without a record of it.
    pub(super) fn take_letter(&mut self, letter: DeadLetterId) -> Option<DeadLetter> {
        self.dead.take(letter)
    }

    /// Forgets all dead letters, without a record of it.
    pub(super) fn leave_letters(&mut self) {
        self.dead.clear();
    }

    fn keep_letter(&mut self, letter: DeadLetter, step: &mut StepContext) {
        for letter in self.dead.push(letter) {
            let number = letter.id.number();
            step.out.write(|| Op::LetterGone { letter: number });
            let root = letter.conversation.unwrap_or_else(|| ThreadId::from_uuid(Uuid::nil()));
            let (payload, reason) = (letter.payload.map(|payload| payload.root().clone()), letter.reason.code);
            step.out.root_event(root, || EventKind::LetterDropped { number, payload, reason });
        }
    }
}

/// The bounds of the history of a thread.
fn bounds_of(thread: &Thread, setup: &Setup) -> Bounds {
    let condenses = thread.listener().is_some_and(|listener| setup.blueprint.contract(listener).condenses);
    Bounds::of(&setup.blueprint.limits, condenses)
}

/// Writes that the context of a thread has forgotten the entries between pairs of numbers.
fn write_forgotten(thread: Number, gaps: [Option<(Number, Number)>; 2], step: &mut StepContext) {
    for (after, before) in gaps.into_iter().flatten() {
        step.out.write(|| match after {
            0 => Op::Forget { thread, before },
            _ => Op::ForgetBetween { thread, after, before },
        });
    }
}
