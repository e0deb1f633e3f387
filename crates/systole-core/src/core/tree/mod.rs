//! The tree of threads: their mailboxes and fan-outs, and the holdings of conversations.
//!
//! It is data: the steps of the core read and change a thread by its key. Operations guard what spans several threads or
//! must be counted: a thread opens and closes, a message is put and taken, a fan-out opens, and has its answers. Each
//! of them records its change where it is made: it writes what the journal holds.
//!
//! The open children of a thread are a list in order of opening, whose links stand in the threads themselves: the
//! `previous` of the first child leads to the last one, as in the tail queues of many kernels; the `next` of the last
//! leads nowhere. Most of an organism's memory is idle threads, so a thread is small.

mod fan_out;
mod history;
mod loops;

use std::collections::{HashSet, VecDeque};
use std::ops::{Index, IndexMut};
use std::rc::Rc;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slotmap::SlotMap;

use crate::core::blueprint::{ClientId, ListenerId, Principal, Version};
use crate::core::clock::{Timer, TimerId};
use crate::core::conversation::{Conversation, Share, Ticket};
use crate::core::dead_letters::DeadLetters;
use crate::core::directory::Directory;
use crate::core::event::{Event, EventKind};
use crate::core::exit::ExitPlace;
use crate::core::gauge::Gauge;
use crate::core::io::{Body, Output};
use crate::core::key::{FanOutKey, InvocationId, ThreadKey};
use crate::core::queued::{Content, Queued, ReplyTo, Sender};
use crate::core::setup::{Setup, StepContext};
use crate::journal;
use crate::journal::{BodyRecord, CallRecord, FanRecord, MessageRecord, MessageState, Number, Op, ThreadRecord};
use crate::vocab::{MessageId, Name, ThreadId, ThreadPath, Time, Traceparent};

pub(super) use fan_out::{CountedOff, Decided, FanOut, FanOutKind};
pub(super) use history::About;

/// The threads of a core, and all that hangs on them.
pub(in crate::core) struct Tree {
    pub setup: Rc<Setup>,
    /// The version of the organism with which conversations begin.
    pub version: Version,
    pub directory: Directory,
    /// The messages that wait in all cores.
    pub gauge: Gauge,
    /// The bytes that the contexts of this core remember.
    pub context: Gauge,
    pub threads: SlotMap<ThreadKey, Thread>,
    pub fan_outs: SlotMap<FanOutKey, FanOut>,
    /// The roots of clients.
    pub roots: HashMap<ThreadId, ThreadKey>,
    pub spawned: HashMap<ThreadId, ThreadKey>,
    pub dead: DeadLetters,
    /// Messages in mailboxes and backlogs.
    queued: usize,
    /// Messages that wait for their delay.
    delayed: usize,
    /// Threads whose work the present step may have ended.
    pub touched: VecDeque<ThreadKey>,
}

/// A thread: one step of a conversation.
#[derive(Debug)]
pub(in crate::core) struct Thread {
    pub id: ThreadId,
    pub owner: Owner,
    pub parent: Option<ThreadKey>,
    pub root: ThreadKey,
    /// The message whose answer it owes; for a root, nothing.
    pub opened_by: MessageId,
    /// The destination of the answer that it owes.
    pub reply_to: ReplyTo,
    /// The end of the thread; `Time::MAX` for none.
    pub deadline: Time,
    /// The number of the thread, in the order of opening: depth-first runs the newest first.
    pub sequence: u64,
    /// The messages, which [`Tree`] puts and takes; `None` where there are none.
    #[expect(clippy::box_collection, reason = "an idle thread pays for a pointer, not for a queue")]
    pub mailbox: Option<Box<VecDeque<Queued>>>,
    /// The handler of the message in flight, running or parked.
    pub invocation: Option<InvocationId>,
    pub children: Children,
    /// The children of the listener that it called first, which for most threads is the only one; the others
    /// stand in `extra`.
    pub first_children: ChildCount,
    /// The place among the children of the same listener and parent.
    pub ordinal: u32,
    pub depth: u16,
    pub turn: Turn,
    /// Responses in a row without one valid emission.
    pub invalid: u8,
    /// States whether it has called since the request that it owes an answer to, or since it last went on by itself.
    pub has_called: bool,
    /// Responses and awaited calls of this thread on the entrance queue.
    pub unjudged: u32,
    pub extra: Option<Box<Extra>>,
}

const _: () = assert!(size_of::<Thread>() <= 168, "the bar is 200 bytes, with a place in the tables that lead to it");

/// The owner of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::core) enum Owner {
    Listener(ListenerId),
    Client(ClientId),
    /// No owner: the root of boot, or of a redriven dead letter. Answers to it are dead letters.
    None,
}

/// The place of a thread in the queues for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::core) enum Turn {
    /// The thread stands in none.
    None,
    /// The thread waits for a slot of its listener.
    Waiting,
    /// The thread is in the run queue; `slot` is true if it holds a slot of its listener.
    Queued { slot: bool, ticket: Ticket },
}

/// The open children of a thread, and its own place among those of its parent: `children` keeps it.
#[derive(Debug, Default)]
pub(in crate::core) struct Children {
    pub first: Option<ThreadKey>,
    /// The child before it; of the first child, the last one: no thread needs a pointer to its last child.
    pub previous: Option<ThreadKey>,
    pub next: Option<ThreadKey>,
    /// Children that owe an answer.
    pub open: u32,
}

/// The number of children of a listener that a thread has opened so far: their ordinals.
#[derive(Debug, Clone, Copy)]
pub(in crate::core) struct ChildCount {
    pub listener: ListenerId,
    pub count: u32,
}

/// State that few threads need.
#[derive(Debug, Default)]
pub(in crate::core) struct Extra {
    /// The label that the client gave the message which opened this child of a root.
    pub label: Option<Arc<str>>,
    pub traceparent: Option<Traceparent>,
    /// The timer of a deadline of its own, or of an idle root.
    pub timer: Option<TimerId>,
    pub continues: Vec<TimerId>,
    /// States whether a drain cancelled one: it is not the listener's fault if the thread gives no answer.
    pub drained: bool,
    pub history: Option<history::History>,
    /// The rounds after the first one, which most threads don't have.
    pub(super) rounds: Option<Box<loops::Rounds>>,
    /// The children of each listener, by listener.
    pub other_children: Vec<ChildCount>,
    /// The fan-outs of this thread that are not over.
    pub fans: Vec<FanOutKey>,
    pub root: Option<RootState>,
    /// Calls that a spawned thread has not started; `None` for other threads.
    pub spawned: Option<VecDeque<Backlog>>,
}

/// State of roots.
#[derive(Debug, Default)]
pub(in crate::core) struct RootState {
    pub live_threads: u32,
    /// The version of the organism that the conversation keeps: the one that it began with.
    pub version: Version,
    /// The conversation, while anything happens in it.
    pub conversation: Option<Rc<Conversation>>,
    pub left: bool,
    /// States whether it is the root of `<boot>`.
    pub boot: bool,
    /// Places in the exit of the client for the answers of the children that owe one: never more than these.
    pub places: Option<ExitPlace>,
}

/// A call on a spawned thread that waits for the one before it.
#[derive(Debug)]
pub(in crate::core) struct Backlog {
    pub message: Queued,
    pub reply_to: ReplyTo,
}

/// The event that a message on a thread waits for.
#[derive(Debug, Clone, Copy)]
pub(in crate::core) enum WaitsFor {
    /// The messages before it in the mailbox.
    Turn,
    /// A moment.
    Time(Time),
    /// The answer to the call before it on a spawned thread; its own answer goes there.
    Call(ReplyTo),
}

/// A root that is about to open.
pub(in crate::core) struct Root {
    pub id: ThreadId,
    pub owner: Owner,
    /// The caller of its first message.
    pub traceparent: Option<Traceparent>,
    /// True for that of `<boot>`.
    pub boot: bool,
    /// A deadline for each of its children.
    pub deadline: Time,
}

/// A child that is about to open.
pub(in crate::core) struct Child {
    pub listener: ListenerId,
    /// The id of the call that opens it, and that of the thread.
    pub ids: (MessageId, ThreadId),
    /// The destination of its answer.
    pub reply_to: ReplyTo,
    pub label: Option<Arc<str>>,
    pub traceparent: Option<Traceparent>,
    /// A deadline of its own; `Time::MAX` for none.
    pub deadline: Time,
    pub spawned: bool,
}

/// The debt of a thread at the moment of its answer.
#[derive(Debug, Clone, Copy)]
pub(in crate::core) struct Owed {
    pub parent: Option<ThreadKey>,
    pub reply_to: ReplyTo,
    /// The message whose answer it was.
    pub opened_by: MessageId,
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
    /// The thread above it; none for a root.
    pub parent: Option<ThreadId>,
    /// The caller elsewhere that it works for, by its place in a trace.
    pub traceparent: Option<Traceparent>,
    /// Messages in its mailbox.
    pub queued: usize,
    /// State of its work.
    pub state: ThreadState,
}

/// State of an open thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadState {
    /// The handler runs.
    Running,
    /// The handler has been called, and waits for answers to its calls.
    Awaiting,
    /// A message is in its mailbox, and waits for a slot of its listener or for its turn.
    Queued,
    /// It waits for answers, for messages, or for a time.
    Waiting,
}

/// The open conversations that are wanted.
#[derive(Debug, Clone, Default)]
pub struct OpenFilter {
    /// Only those whose id is smaller: they are older.
    pub before: Option<ThreadId>,
    /// Only these.
    pub among: Option<Arc<HashSet<ThreadId>>>,
    /// Only those with an open thread of one of these listeners, if there are any.
    pub with: Option<Vec<ListenerId>>,
    /// None with an open thread of one of these listeners.
    pub without: Vec<ListenerId>,
    /// The most.
    pub limit: usize,
}

/// An open conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenConversation {
    /// The root.
    pub root: ThreadId,
    /// The client, where one owns it.
    pub owner: Option<Name>,
    /// Open threads, the root included.
    pub threads: usize,
    /// Threads whose handlers run.
    pub running: usize,
    /// Messages in mailboxes.
    pub queued: usize,
    /// The listeners of its open threads, in no order.
    pub listeners: Vec<ListenerId>,
    /// The version of the organism that it keeps.
    pub version: Version,
}

/// The amounts that a conversation holds at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    /// The root of the conversation.
    pub root: ThreadId,
    /// Open threads, its root among them.
    pub threads: usize,
    /// Messages in mailboxes and backlogs, delayed, and answers that handlers await.
    pub messages: usize,
    /// Bytes of those messages.
    pub bytes: usize,
}

impl Index<ThreadKey> for Tree {
    type Output = Thread;

    fn index(&self, key: ThreadKey) -> &Thread {
        &self.threads[key]
    }
}

impl IndexMut<ThreadKey> for Tree {
    fn index_mut(&mut self, key: ThreadKey) -> &mut Thread {
        &mut self.threads[key]
    }
}

impl Tree {
    pub(in crate::core) fn new(setup: Rc<Setup>, directory: Directory, gauge: Gauge) -> Self {
        let limits = &setup.blueprint.limits;
        Self {
            dead: DeadLetters::new(setup.core, limits, directory.dead.clone()),
            directory,
            gauge,
            context: Gauge::new(usize::MAX, limits.context_total_bytes / usize::from(setup.cores)),
            threads: SlotMap::with_key(),
            fan_outs: SlotMap::with_key(),
            roots: HashMap::new(),
            spawned: HashMap::new(),
            queued: 0,
            delayed: 0,
            touched: VecDeque::new(),
            version: setup.blueprint.version(),
            setup,
        }
    }

    /// Messages that wait in mailboxes and backlogs, and for their delay.
    pub(in crate::core) fn waiting(&self) -> (usize, usize) {
        (self.queued, self.delayed)
    }

    /// The threads that are asked for, in order of opening.
    pub(in crate::core) fn in_order(&self, wanted: impl Fn(&Thread) -> bool) -> Vec<ThreadKey> {
        let threads = self.threads.iter().filter(|(_, thread)| wanted(thread));
        let mut threads: Vec<_> = threads.map(|(key, thread)| (thread.sequence, key)).collect();
        threads.sort_unstable();
        threads.into_iter().map(|(_, key)| key).collect()
    }

    /// The listeners from the root to a thread.
    pub(in crate::core) fn path(&self, mut key: ThreadKey) -> ThreadPath {
        let mut segments = Vec::new();
        while let Some(thread) = self.threads.get(key) {
            if let Owner::Listener(listener) = thread.owner {
                segments.push((self.setup.blueprint[listener].name.clone(), thread.ordinal));
            }
            let Some(parent) = thread.parent else { break };
            key = parent;
        }
        segments.reverse();
        ThreadPath::new(segments)
    }

    /// Makes an event on an open thread.
    pub(in crate::core) fn event(&self, key: ThreadKey, step: &mut StepContext, kind: impl FnOnce() -> EventKind) {
        if let Some(thread) = self.threads.get(key) {
            let at = step.clock.now;
            step.out.event(|| {
                let root = self.threads.get(thread.root).unwrap_or(thread).id;
                Event::new((root, thread.id), self.path(key), at, kind()).traceparent(thread.traceparent())
            });
        }
    }

    /// Returns whether a thread stands right below a root without an owner: that of `<boot>`, or of a redriven letter.
    pub(in crate::core) fn has_no_caller(&self, key: ThreadKey) -> bool {
        self.threads[key].parent.is_some_and(|parent| self.threads[parent].owner == Owner::None)
    }

    /// Lets a thread be settled at the end of the step: it may have nothing left to do.
    pub(in crate::core) fn touch(&mut self, key: ThreadKey) {
        if self.touched.back() != Some(&key) {
            self.touched.push_back(key);
        }
    }
}

/// Threads open.
impl Tree {
    /// Opens a root, that of `<boot>` or another one.
    pub(in crate::core) fn open_root(&mut self, root: Root, step: &mut StepContext) -> ThreadKey {
        let Root { id, owner, traceparent, boot, deadline } = root;
        let (opened_by, _) = self.setup.key.derive_entry(id, 0);
        let key = self.link_thread(None, owner, None, (opened_by, id), 1, step);
        let thread = &mut self.threads[key];
        thread.deadline = deadline;
        let extra = thread.extra.get_or_insert_default();
        extra.root.get_or_insert_default().boot = boot;
        extra.traceparent = traceparent;
        self.event(key, step, || EventKind::Opened { parent: None });
        self.write_open(key, step);
        key
    }

    /// Opens a child of a thread.
    pub(in crate::core) fn open_child(&mut self, parent: ThreadKey, child: Child, step: &mut StepContext) -> ThreadKey {
        let Child { listener, ids, reply_to, label, traceparent, deadline, spawned } = child;
        let above = &mut self.threads[parent];
        let ordinal = above.next_ordinal(listener);
        above.children.open += u32::from(reply_to != ReplyTo::None);
        // A root has no timer, since nothing is owed there.
        let deadline = deadline.min(above.deadline);
        let has_deadline = deadline < above.deadline || above.parent.is_none() && deadline < Time::MAX;
        let key = self.link_thread(Some(parent), Owner::Listener(listener), None, ids, ordinal, step);
        let thread = &mut self.threads[key];
        thread.reply_to = reply_to;
        if spawned || label.is_some() || traceparent.is_some() {
            let extra = thread.extra.get_or_insert_default();
            (extra.label, extra.traceparent) = (label, traceparent);
            extra.spawned = spawned.then(Default::default);
        }
        if has_deadline {
            thread.deadline = deadline;
            thread.extra.get_or_insert_default().timer = Some(step.clock.set(deadline, Timer::Deadline(key)));
        }
        if spawned {
            self.spawned.insert(ids.1, key);
        }
        self.event(key, step, || EventKind::Opened { parent: self.threads.get(parent).map(|parent| parent.id) });
        self.write_open(key, step);
        key
    }

    /// Puts a thread where it belongs, whether it is new, without a number, or comes out of the journal. A root has no parent; that of a client
    /// is known as its conversation.
    pub(in crate::core) fn link_thread(
        &mut self,
        parent: Option<ThreadKey>,
        owner: Owner,
        number: Option<Number>,
        (opened_by, id): (MessageId, ThreadId),
        ordinal: u32,
        step: &mut StepContext,
    ) -> ThreadKey {
        self.directory.opened(match (parent, owner) {
            (None, Owner::Client(client)) => Some((id, client)),
            _ => None,
        });
        let number = number.unwrap_or_else(|| step.out.next_number());
        let Some(parent) = parent else {
            let root = Some(RootState { live_threads: 1, version: self.version, ..RootState::default() });
            let key = self.threads.insert_with_key(|key| Thread {
                extra: Some(Box::new(Extra { root, ..Extra::default() })),
                ..Thread::new(id, owner, (None, key), number, opened_by)
            });
            if let Owner::Client(_) = owner {
                self.roots.insert(id, key);
            }
            return key;
        };
        let above = &self.threads[parent];
        let root = above.root;
        let thread = Thread {
            deadline: above.deadline,
            ordinal,
            depth: above.depth + 1,
            ..Thread::new(id, owner, (Some(parent), root), number, opened_by)
        };
        let key = self.threads.insert(thread);
        self.link(parent, key);
        if let Some(state) = &mut self.threads[root].extra.get_or_insert_default().root {
            state.live_threads += 1;
        }
        key
    }

    /// Puts a thread behind the other children of its parent.
    fn link(&mut self, parent: ThreadKey, child: ThreadKey) {
        let last = match self.threads[parent].children.first {
            Some(first) => self.threads[first].children.previous.replace(child),
            None => self.threads[parent].children.first.replace(child),
        };
        if let Some(last) = last {
            self.threads[last].children.next = Some(child);
        }
        self.threads[child].children.previous = Some(last.unwrap_or(child));
    }

    /// Takes a thread out of its parent's list.
    fn unlink(&mut self, child: ThreadKey) {
        let thread = &mut self.threads[child];
        let (parent, previous, next) = (thread.parent, thread.children.previous.take(), thread.children.next.take());
        let (Some(parent), Some(previous)) = (parent, previous) else { return };
        let first = &mut self.threads[parent].children.first;
        if *first == Some(child) {
            *first = next;
        } else {
            self.threads[previous].children.next = next;
        }
        // The next one, or the first if the child was the last.
        if let Some(behind) = next.or(self.threads[parent].children.first) {
            self.threads[behind].children.previous = Some(previous);
        }
    }

    /// Appends the open children of a thread.
    pub(in crate::core) fn children_of(&self, key: ThreadKey, into: &mut Vec<ThreadKey>) {
        let mut next = self.threads[key].children.first;
        while let Some(child) = next {
            into.push(child);
            next = self.threads[child].children.next;
        }
    }

    /// A thread and all below it, each behind its parent and in the order of opening.
    pub(in crate::core) fn with_below(&self, top: ThreadKey) -> impl Iterator<Item = ThreadKey> {
        let mut next = vec![top];
        std::iter::from_fn(move || {
            let key = next.pop()?;
            let at = next.len();
            self.children_of(key, &mut next);
            next[at..].reverse();
            Some(key)
        })
    }
}

/// Messages are put on threads and taken.
impl Tree {
    /// Puts a message on a thread.
    pub(in crate::core) fn put(
        &mut self,
        key: ThreadKey,
        mut message: Queued,
        waits: WaitsFor,
        step: &mut StepContext,
    ) {
        self.write_put(key, &mut message, waits, step);
        self.put_back(key, message, waits, step);
    }

    /// Puts a message on a thread that the journal has there.
    pub(in crate::core) fn put_back(
        &mut self,
        key: ThreadKey,
        message: Queued,
        waits: WaitsFor,
        step: &mut StepContext,
    ) {
        match waits {
            WaitsFor::Turn => {
                self.queued += 1;
                // Most hold one message: room for more comes with the second.
                let one = || Box::new(VecDeque::with_capacity(1));
                self.threads[key].mailbox.get_or_insert_with(one).push_back(message);
            }
            WaitsFor::Time(due) => {
                self.delayed += 1;
                let timer = step.clock.set(due, Timer::Continue(key, Box::new(message)));
                self.threads[key].extra.get_or_insert_default().continues.push(timer);
            }
            WaitsFor::Call(reply_to) => {
                self.queued += 1;
                if let Some(parent) = self.threads[key].parent.filter(|_| reply_to != ReplyTo::None) {
                    self.threads[parent].children.open += 1;
                }
                let backlog = self.threads[key].extra.get_or_insert_default().spawned.get_or_insert_default();
                backlog.push_back(Backlog { message, reply_to });
            }
        }
    }

    /// Takes the next message of a thread.
    pub(in crate::core) fn take(&mut self, key: ThreadKey) -> Option<Queued> {
        let mailbox = &mut self.threads[key].mailbox;
        let message = mailbox.as_mut()?.pop_front()?;
        mailbox.take_if(|mailbox| mailbox.is_empty());
        self.queued -= 1;
        Some(message)
    }

    /// Puts the next call of a spawned thread that owes nothing into its mailbox; whether there is one.
    pub(in crate::core) fn next_call(&mut self, key: ThreadKey, step: &mut StepContext) -> bool {
        let free = self.threads.get_mut(key).filter(|thread| thread.reply_to == ReplyTo::None);
        let Some(thread) = free else { return false };
        let backlog = thread.extra.as_mut().and_then(|extra| extra.spawned.as_mut());
        let Some(Backlog { message, reply_to }) = backlog.and_then(|backlog| backlog.pop_front()) else { return false };
        thread.reply_to = reply_to;
        thread.opened_by = message.id;
        self.write_owes(key, step);
        self.queued -= 1;
        self.put(key, message, WaitsFor::Turn, step);
        true
    }

    /// The delay of a message is over.
    pub(in crate::core) fn end_delay(&mut self, key: ThreadKey, id: TimerId) {
        self.threads[key].extra.get_or_insert_default().continues.retain(|&other| other != id);
        self.delayed -= 1;
    }

    /// Cancels the messages of a thread that wait for their delay; their number.
    pub(in crate::core) fn cancel_delayed(&mut self, key: ThreadKey, step: &mut StepContext) -> usize {
        let Some(extra) = &mut self.threads[key].extra else { return 0 };
        let timers = std::mem::take(&mut extra.continues);
        for &timer in &timers {
            self.delayed -= 1;
            if let Some(Timer::Continue(_, message)) = step.clock.cancel(timer) {
                step.books.cancelled(message.entry);
            }
        }
        timers.len()
    }

    /// Cancels the calls of a fan-out that wait on a spawned thread.
    pub(in crate::core) fn cancel_backlog(&mut self, key: ThreadKey, fan: FanOutKey, step: &mut StepContext) {
        let owner = self.threads[key].parent;
        let backlog = self.threads[key].extra.as_mut().and_then(|extra| extra.spawned.as_mut());
        let Some(backlog) = backlog else { return };
        let of_fan = |call: &Backlog| matches!(call.reply_to, ReplyTo::Fan { fan: other, .. } if other == fan);
        let (dropped, kept): (VecDeque<_>, VecDeque<_>) = std::mem::take(backlog).into_iter().partition(of_fan);
        *backlog = kept;
        self.queued -= dropped.len();
        for call in dropped {
            write_cancelled(call.message.number, step);
            step.books.cancelled(call.message.entry);
            owner.iter().for_each(|&owner| self.count_off_answer(owner, call.reply_to));
        }
    }

    /// Takes everything that is queued on a thread, and the calls that wait on it.
    pub(in crate::core) fn take_queued(&mut self, key: ThreadKey) -> Vec<Queued> {
        let mut taken: Vec<_> = std::iter::from_fn(|| self.take(key)).collect();
        let spawned = self.threads[key].extra.as_mut().and_then(|extra| extra.spawned.as_mut());
        let backlog = spawned.map(std::mem::take).unwrap_or_default();
        self.queued -= backlog.len();
        taken.extend(backlog.into_iter().map(|call| call.message));
        taken
    }

    /// The conversation of a thread, which becomes active.
    pub(in crate::core) fn conversation(&mut self, key: ThreadKey) -> Rc<Conversation> {
        let root = self.threads[key].root;
        let (principal, scheduling) = (self.threads[root].owner.into(), self.setup.blueprint.scheduling);
        let state = self.threads[root].extra.get_or_insert_default().root.get_or_insert_default();
        state.conversation.get_or_insert_with(|| Rc::new(Conversation::new(principal, scheduling))).clone()
    }

    /// Counts a message of so many bytes, regardless of the bounds.
    pub(in crate::core) fn count(&mut self, key: ThreadKey, bytes: usize) -> Share {
        Share::new(self.conversation(key), self.gauge.count(bytes))
    }
}

/// Threads answer and close.
impl Tree {
    /// A thread gives its only answer: from now on it owes none.
    pub(in crate::core) fn take_owed(&mut self, key: ThreadKey, step: &mut StepContext) -> Owed {
        let thread = &mut self.threads[key];
        let reply_to = std::mem::replace(&mut thread.reply_to, ReplyTo::None);
        let owed = Owed { parent: thread.parent, reply_to, opened_by: thread.opened_by };
        self.write_owes(key, step);
        self.threads[key].end_rounds();
        owed
    }

    /// Counts off an answer that a thread waits for, if the call awaits one: it came, or never will.
    pub(in crate::core) fn count_off_answer(&mut self, key: ThreadKey, reply_to: ReplyTo) {
        if reply_to != ReplyTo::None
            && let Some(thread) = self.threads.get_mut(key)
        {
            thread.children.open = thread.children.open.saturating_sub(1);
            self.release_place(key);
        }
        self.touch(key);
    }

    /// Takes the place of an answer that leaves for the client of a root, if one is kept.
    pub(in crate::core) fn take_place(&mut self, root: ThreadKey) -> Option<ExitPlace> {
        let places = &mut self.threads[root].extra.as_mut()?.root.as_mut()?.places;
        match places {
            Some(several) => several.split().or_else(|| places.take()),
            None => None,
        }
    }

    /// Gives the place of an answer back that will never come: no thread keeps more places than it is owed answers.
    fn release_place(&mut self, key: ThreadKey) {
        let thread = &self.threads[key];
        let state = thread.root_state();
        let kept = state.and_then(|state| state.places.as_ref()).map_or(0, ExitPlace::answers);
        if kept > thread.children.open {
            drop(self.take_place(key));
        }
    }

    /// Cancels the messages and the fan-outs of a thread, but not the calls that wait on it; the number of messages.
    pub(in crate::core) fn discard(&mut self, key: ThreadKey, step: &mut StepContext) -> usize {
        let mut cancelled = 0;
        while let Some(message) = self.take(key) {
            step.books.cancelled(message.entry);
            cancelled += 1;
        }
        cancelled += self.cancel_delayed(key, step);
        if let Some(extra) = &mut self.threads[key].extra {
            extra.drained = false;
            for fan in std::mem::take(&mut extra.fans) {
                self.remove_fan_out(fan, step);
            }
        }
        cancelled
    }

    /// Removes a thread with its messages and the calls that wait on it.
    pub(in crate::core) fn remove(&mut self, key: ThreadKey, step: &mut StepContext) {
        self.unlink(key);
        let mut cancelled = self.discard(key, step);
        let (id, root) = (self.threads[key].id, self.threads[key].root);
        if let Some(backlog) = self.threads[key].extra.as_mut().and_then(|extra| extra.spawned.take()) {
            self.spawned.remove(&id);
            self.queued -= backlog.len();
            cancelled += backlog.len();
            backlog.into_iter().for_each(|call| step.books.cancelled(call.message.entry));
        }
        self.event(key, step, || EventKind::Closed { cancelled });
        let Some(thread) = self.threads.remove(key) else { return };
        step.out.write(|| Op::Close { thread: thread.sequence });
        self.directory.closed(matches!(thread.owner, Owner::Client(_)).then_some(id));
        if let Some(state) =
            self.threads.get_mut(root).and_then(|root| root.extra.get_or_insert_default().root.as_mut())
        {
            state.live_threads -= 1;
        }
        if let Some(timer) = thread.extra.and_then(|extra| extra.timer) {
            step.clock.cancel(timer);
        }
        if let Owner::Client(client) = thread.owner {
            self.roots.remove(&id);
            step.out.emit(Output::Closed { client, root: id });
        }
    }
}

/// Changes of threads are written.
impl Tree {
    /// Writes that a thread opened.
    fn write_open(&self, key: ThreadKey, step: &mut StepContext) {
        step.out.write(|| Op::Open(self.thread_record(key)));
    }

    /// Writes that a spawned thread owes something else than before. One that is not spawned closes at once.
    fn write_owes(&self, key: ThreadKey, step: &mut StepContext) {
        let Some(thread) = self.threads.get(key).filter(|thread| thread.is_spawned()) else { return };
        let (number, opened_by, reply_to) = (thread.sequence, thread.opened_by, thread.reply_to);
        step.out.write(|| Op::Owes { thread: number, opened_by, reply_to: self.reply_record(reply_to) });
    }

    /// Writes that a message waits. It takes the last place of its mailbox.
    fn write_put(&self, key: ThreadKey, message: &mut Queued, waits: WaitsFor, step: &mut StepContext) {
        if !step.out.writes() {
            return;
        }
        let place = step.out.next_number();
        if message.number == 0 {
            message.number = place;
        }
        let message = &*message;
        step.out.write(|| {
            Op::Put(MessageRecord {
                number: message.number,
                place,
                thread: self.threads[key].sequence,
                id: message.id,
                from: self.setup.name_of(message.from),
                in_reply_to: message.in_reply_to,
                answers: self.reply_record(message.answers),
                state: match waits {
                    WaitsFor::Turn => MessageState::Queued,
                    WaitsFor::Time(at) => MessageState::Delayed(at),
                    WaitsFor::Call(reply_to) => MessageState::Backlog(self.reply_record(reply_to)),
                },
                body: match &message.content {
                    Content::Body(Body::Payload { payload, .. }) => {
                        BodyRecord::Payload(payload.payload().bytes().clone())
                    }
                    Content::Stored(payload) => BodyRecord::Payload(payload.clone()),
                    Content::Body(Body::Fault(fault)) => BodyRecord::Fault(fault.clone()),
                    Content::Fatal(fault) => BodyRecord::Fatal(fault.clone()),
                },
                attempts: u32::from(message.attempts.lost),
            })
        });
    }

    /// Writes that calls were made together.
    fn write_fan_out(&self, key: FanOutKey, call: impl FnOnce() -> Option<CallRecord>, step: &mut StepContext) {
        let FanOut { id, owner, source, total, .. } = self.fan_outs[key];
        step.out.write(|| {
            let thread = self.threads[owner].sequence;
            Op::Fan(FanRecord { id, thread, source, total, delivered: 0, counted_off: 0, call: call() })
        });
    }

    fn thread_record(&self, key: ThreadKey) -> ThreadRecord {
        let thread = &self.threads[key];
        let parent = thread.parent.map(|parent| self.threads[parent].sequence);
        let root = thread.root_state();
        let blueprint = &self.setup.blueprint;
        ThreadRecord {
            number: thread.sequence,
            id: thread.id,
            parent,
            root: self.threads[thread.root].sequence,
            owner: match thread.owner {
                Owner::Listener(listener) => journal::Owner::Listener(blueprint[listener].name.clone()),
                Owner::Client(client) => journal::Owner::Client(blueprint[client].name.clone()),
                Owner::None if root.is_some_and(|root| root.boot) => journal::Owner::Boot,
                Owner::None => journal::Owner::None,
            },
            ordinal: thread.ordinal,
            depth: thread.depth,
            opened_by: thread.opened_by,
            reply_to: self.reply_record(thread.reply_to),
            deadline: thread.deadline,
            own_deadline: thread.parent.is_some() && thread.extra.as_ref().is_some_and(|extra| extra.timer.is_some()),
            spawned: thread.is_spawned(),
            left: root.is_some_and(|root| root.left),
            label: thread.extra.as_ref().and_then(|extra| extra.label.clone()),
            traceparent: thread.traceparent().map(|traceparent| traceparent.to_string().into()),
        }
    }

    /// The record of a destination, by a name that lasts. The group of a call that has ended has no name.
    fn reply_record(&self, reply_to: ReplyTo) -> journal::ReplyTo {
        match reply_to {
            ReplyTo::None => journal::ReplyTo::None,
            ReplyTo::Single => journal::ReplyTo::Single,
            ReplyTo::Fan { fan, index } => match self.fan_outs.get(fan) {
                Some(fan) => journal::ReplyTo::Fan(fan.id, index),
                None => journal::ReplyTo::None,
            },
        }
    }
}

impl Thread {
    /// The state of a root beyond that of other threads.
    pub(in crate::core) fn root_state(&self) -> Option<&RootState> {
        self.extra.as_ref()?.root.as_ref()
    }

    /// The caller elsewhere that it works for.
    pub(in crate::core) fn traceparent(&self) -> Option<Traceparent> {
        self.extra.as_ref()?.traceparent
    }

    /// Forgets its rounds: its request is answered, or it goes on by itself.
    fn end_rounds(&mut self) {
        self.has_called = false;
        if let Some(extra) = &mut self.extra {
            extra.rounds = None;
        }
    }

    /// The number of children of a listener that it has opened, or whose ordinals are reserved.
    fn children_of(&mut self, listener: ListenerId) -> &mut u32 {
        if self.first_children.count == 0 {
            self.first_children.listener = listener;
        }
        if self.first_children.listener == listener {
            &mut self.first_children.count
        } else {
            self.extra.get_or_insert_default().children_of(listener)
        }
    }

    /// The ordinal of the child that it opens next, of a listener.
    fn next_ordinal(&mut self, listener: ListenerId) -> u32 {
        let count = self.children_of(listener);
        *count = count.saturating_add(1);
        *count
    }

    /// Reserves the ordinals of the children of a listener up to one: no child that opens later gets them.
    pub(in crate::core) fn reserve_ordinals(&mut self, listener: ListenerId, last: u32) {
        let count = self.children_of(listener);
        *count = last.max(*count);
    }

    /// The listener whose thread it is.
    pub(in crate::core) fn listener(&self) -> Option<ListenerId> {
        match self.owner {
            Owner::Listener(listener) => Some(listener),
            Owner::Client(_) | Owner::None => None,
        }
    }

    pub(in crate::core) fn is_spawned(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.spawned.is_some())
    }

    fn new(
        id: ThreadId,
        owner: Owner,
        (parent, root): (Option<ThreadKey>, ThreadKey),
        sequence: Number,
        opened_by: MessageId,
    ) -> Self {
        Self {
            id,
            owner,
            parent,
            root,
            opened_by,
            reply_to: ReplyTo::None,
            deadline: Time::MAX,
            sequence,
            mailbox: None,
            invocation: None,
            children: Children::default(),
            first_children: ChildCount::NONE,
            ordinal: 1,
            depth: 0,
            turn: Turn::None,
            invalid: 0,
            has_called: false,
            unjudged: 0,
            extra: None,
        }
    }
}

impl From<Owner> for Sender {
    /// The owner as the sender of the messages of its thread.
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::Listener(listener) => Self::Listener(listener),
            Owner::Client(client) => Self::Client(client),
            Owner::None => Self::System,
        }
    }
}

impl From<Owner> for Principal {
    /// The owner of a root as the principal of its conversation.
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::Client(client) => Some(client).into(),
            Owner::Listener(_) | Owner::None => Self::ORGANISM,
        }
    }
}

impl Child {
    /// A child that owes no answer.
    pub(in crate::core) fn new(listener: ListenerId, ids: (MessageId, ThreadId)) -> Self {
        let (reply_to, deadline) = (ReplyTo::None, Time::MAX);
        Self { listener, ids, reply_to, label: None, traceparent: None, deadline, spawned: false }
    }
}

impl Extra {
    fn children_of(&mut self, listener: ListenerId) -> &mut u32 {
        let at =
            self.other_children.binary_search_by_key(&listener, |children| children.listener).unwrap_or_else(|at| {
                self.other_children.insert(at, ChildCount { listener, count: 0 });
                at
            });
        &mut self.other_children[at].count
    }
}

impl ChildCount {
    /// No threads of any listener.
    pub(in crate::core) const NONE: Self = Self { listener: ListenerId(0), count: 0 };
}

/// Writes that a message was discarded, though its thread stays.
fn write_cancelled(message: u64, step: &mut StepContext) {
    if message != 0 {
        step.out.write(|| Op::Cancelled { message });
    }
}
