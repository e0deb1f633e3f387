//! The steps of the core: the flows of messages over its data, each in one file, in the order of a message's life. A message
//! comes in at [`enter`], has its turn in [`turn`], is responded to in [`respond`], and answered in [`answer`]; [`calls`] has
//! the groups of calls that handlers await, [`life`] the start and the end, [`operate`] the acts of operators.
//!
//! A step is one input, one timer, one item of the entrance queue or one turn. It ends by [`Core::end_step`]: the threads that it
//! touched are settled, the books are checked, and the operations of the step go out to be written.

mod answer;
mod calls;
mod enter;
mod life;
mod operate;
mod respond;
mod turn;

use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;

use self::turn::{Turns, Want};
use super::blueprint::{ListenerId, Version};
use super::books::{Books, Counts};
use super::budgets::{Budgets, OpenBudget};
use super::clock::Clock;
use super::contract::Contract;
use super::dead_letters::DeadLetters;
use super::entrance::{Entrance, Item, Phase};
use super::event::{EventKind, shown};
use super::invocations::{Invocation, Invocations};
use super::io::{CoreMessage, Input, OrganismVersion, Output};
use super::judge::Payloads;
use super::key::ThreadKey;
use super::latency::Latency;
use super::outputs::Outputs;
use super::setup::{CoreConfig, Setup, StepContext};
use super::slots::{ListenerSlots, Slots, Waiter};
use super::tree::{
    Holding, OpenConversation, OpenFilter, OpenThread, Owner, Snapshot, Thread, ThreadState, Tree, Turn,
};
use crate::journal::{Op, numbers_after};
use crate::vocab::{ThreadId, Time};

/// A deterministic message pump: threads, mailboxes, turns, fan-outs, faults.
///
/// A core belongs to one OS thread, because compiled schemas do.
pub struct Core {
    setup: Rc<Setup>,
    step: StepContext,
    entrance: Entrance,
    payloads: Payloads,
    /// The version of the organism with which conversations begin: by it names are found.
    present: OrganismVersion,
    tree: Tree,
    budgets: Budgets,
    turns: Turns,
    invocations: Invocations,
}

impl Core {
    /// An empty core; compiles the schemas.
    pub fn new(config: CoreConfig) -> Self {
        let CoreConfig { core, cores, partitions, blueprint, catalog, decoders, .. } = config;
        let CoreConfig { key, gauge, directory, events, started, epoch, .. } = config;
        let present = OrganismVersion { blueprint: blueprint.clone(), catalog, decoders };
        let setup = Rc::new(Setup { core, cores: cores.max(1), partitions, blueprint, key, started });
        epoch.into_iter().for_each(|epoch| directory.begin(epoch));
        directory.serve(&setup.partitions, core);
        // The ids of an earlier epoch must not come again. Each entry of a durable organism takes a number, too, so
        // entries don't outlast the numbers of their epoch.
        let entries = epoch.map_or(0, numbers_after);
        Self {
            step: StepContext {
                clock: Clock::new(started),
                books: Books::default(),
                out: Outputs::new(epoch.is_some(), events, directory.clone()),
            },
            entrance: Entrance::new(setup.clone(), entries),
            payloads: Payloads::new(&present),
            present,
            tree: Tree::new(setup.clone(), directory, gauge),
            budgets: Budgets::default(),
            turns: Turns::new(&setup, epoch.is_some()),
            invocations: Invocations::new(setup.clone()),
            setup,
        }
    }

    /// Replaces the values that the parts of the core are made from.
    fn set_up(&mut self, setup: Setup) {
        self.setup = Rc::new(setup);
        self.entrance.setup = self.setup.clone();
        self.tree.setup = self.setup.clone();
        self.invocations.setup = self.setup.clone();
    }

    /// The version of the organism that the conversation of a thread keeps.
    fn version(&self, thread: ThreadKey) -> Version {
        let root = self.tree.threads.get(self.tree.threads[thread].root);
        let state = root.and_then(|root| root.extra.as_ref()?.root.as_ref());
        state.map_or(self.tree.version, |state| state.version)
    }

    fn advance(&mut self, now: Time) {
        self.step.clock.advance(now);
    }

    /// Takes one input. Its effects come out of [`Core::poll`].
    pub fn handle(&mut self, input: Input, now: Time) {
        if let Input::ClockSet { before, after } = input {
            self.step.clock.jump(before, after);
        }
        self.advance(now);
        match input {
            Input::Boot { root } => self.send_boot(root),
            Input::Injected(message) => self.inject(message),
            Input::Finished { invocation, outcome } => self.finished(invocation, outcome),
            Input::Called { invocation, call, requests, join, within } => {
                self.called(invocation, call, requests, (join, within))
            }
            Input::CallDropped { invocation, call } => self.call_dropped(invocation, call),
            Input::CallForgotten { invocation, call } => self.forget_call(invocation, call),
            Input::Attached { invocation, attachment } => self.attached(invocation, attachment),
            // Handlers ask on the entrance queue, so what they say of that stands behind it there.
            Input::Reattached { invocation } => {
                if let Some(thread) = self.invocations.thread(invocation) {
                    self.entrance.push(self.tree[self.tree[thread].root].owner.into(), Item::Reattached(invocation));
                }
            }
            Input::Version(version) => self.learn_version(*version),
            Input::Begin { version } => self.begin_version(version),
            Input::Forget { version } => self.payloads.forget(version),
            Input::Tick | Input::ClockSet { .. } => {}
            Input::Parked { invocation } => self.parked(invocation),
            Input::ListenerRests { listener, rests } => self.listener_rests(listener, rests),
            Input::ListenerPaused { listener, paused } => self.listener_paused(listener, paused),
            Input::WaitsElsewhere { invocation } => {
                if let Some(invocation) = self.invocations.all.get_mut(invocation) {
                    invocation.waits_elsewhere = true;
                }
            }
            Input::ListenerUnattended { listener } => self.unattended(listener),
            Input::Left { client, root } => self.entrance.push(Some(client).into(), Item::Left(root)),
            Input::Cancel { client, root } => {
                self.cancel_conversation(root);
                // The message that opens it may still be on the entrance queue.
                self.entrance.push(Some(client).into(), Item::Cancel(root));
            }
            Input::Core(message) => self.take_core_message(message),
            Input::Stray(message) => self.take_stray(message),
            Input::Recovered(recovered) => self.recover(*recovered),
            Input::Appended { number } => self.step.out.appended(number, self.step.clock.now),
            Input::Unwritable => self.unwritable(),
            Input::Fenced => self.fenced(),
            Input::Release => self.release(),
            Input::Read { number, at_once: true } => self.step.out.write(|| Op::Read { egress: number }),
            Input::Read { number, at_once: false } => self.step.out.write_later(Op::Read { egress: number }),
            Input::Noted { invocation, index, name, value, answer } => {
                self.noted(invocation, index, (name, value));
                answer.into_iter().for_each(|answer| self.charge_answer(invocation, *answer, Some(index)));
            }
            Input::Condensed { invocation, until, summary } => {
                if let Some(thread) = self.invocations.thread(invocation) {
                    self.tree.condense(thread, until, summary, &mut self.step);
                }
            }
            Input::Repaired { invocation, repairs, text } => {
                let Some(message) = self.invocations.all.get(invocation).map(|one| one.message) else { return };
                let (text, bytes) = (shown(text.bytes()), text.bytes().len());
                self.report(invocation, |by| EventKind::Repaired { by, repairs, message, text, bytes });
            }
            Input::Progressed { invocation, text } => {
                self.report(invocation, |by| EventKind::Progress { by, text: shown(text.as_bytes()) })
            }
            Input::Drafted { invocation } => {
                if let Some(invocation) = self.invocations.all.get_mut(invocation) {
                    invocation.drafts = true;
                }
            }
            Input::Used { invocation, answer } => self.charge_answer(invocation, *answer, None),
            Input::Grown { invocation, text } => self.report(invocation, |by| EventKind::ModelWrites { by, text }),
            Input::Charged { invocation, usage } => self.charge(invocation, usage.into()),
            Input::Settled { invocation, index, name, value, used } => {
                self.noted(invocation, index, (name, value));
                self.charge(invocation, used);
            }
            Input::Reclaimed { invocation, amounts } => self.reclaim(invocation, amounts),
            Input::Unanswered { invocation, attempt } => self.model_failed(invocation, *attempt),
            Input::Stalled { invocation, stalled } => self.stalled(invocation, stalled),
            Input::Attempted { invocation, attempts } => self.attempted(invocation, attempts),
            Input::Said { invocation, text } => self.said(invocation, text),
            Input::Reserve { invocation, amounts, is_last } => self.reserve(invocation, amounts, is_last),
            Input::Operate { ticket, operation, act } => self.operate(ticket, operation, act),
            Input::Drain => self.drain(),
            Input::Stop => self.stop(),
        }
        self.end_step();
    }

    /// Takes steps until there is an output; `None` if there is nothing to do before the next input or
    /// [`Core::next_wake`].
    ///
    /// The entrance queue and the run queue take turns, so that neither starves the other. On the entrance queue a principal
    /// waits while the journal has much of it to write.
    pub fn poll(&mut self, now: Time) -> Option<Output> {
        self.advance(now);
        loop {
            if let Some(output) = self.step.out.next() {
                return Some(output);
            }
            let worked = match self.step.clock.due() {
                Some((id, timer)) => {
                    self.timer_due(id, timer);
                    true
                }
                None => {
                    self.turns.is_of_run_queue = !self.turns.is_of_run_queue;
                    match self.turns.is_of_run_queue {
                        true => self.dispatch() || self.process(),
                        false => self.process() || self.dispatch(),
                    }
                }
            };
            if !worked {
                return None;
            }
            self.end_step();
        }
    }

    /// The time at which [`Core::poll`] has something to do even if no input comes.
    pub fn next_wake(&self) -> Option<Time> {
        self.step.clock.next()
    }

    /// Returns whether nothing is queued, running or parked. Delayed continues don't count, nor do handlers
    /// of `<boot>`, unless they [emit at their end](super::Contract::speaks_at_end), nor questions that nobody can answer
    /// here, with all that waits for them.
    pub fn is_idle(&self) -> bool {
        let ((queued, _), (working, resumes)) = (self.tree.waiting(), self.invocations.busy());
        self.entrance.is_empty()
            && resumes == 0
            && self.step.out.is_empty()
            && (queued == 0 && working == 0 || self.rests() || self.waits_for_people())
    }

    /// Returns whether a durable core that drains has only work left that its next start takes up: handlers of
    /// listeners that [outlive](super::Contract::outlives) the process, handlers that wait for parties elsewhere, and
    /// messages that wait for those.
    fn rests(&self) -> bool {
        let outlives = |one: &Invocation| one.waits_elsewhere || self.setup.blueprint[one.listener].outlives;
        let is_left = |one: &Invocation| !one.is_running() || one.boot || outlives(one);
        self.entrance.phase >= Phase::Draining && self.step.out.writes() && self.invocations.all.values().all(is_left)
    }

    /// Returns whether all that runs are questions that nobody can answer here. What is queued waits for them, or for
    /// a slot of a listener that runs in another core.
    fn waits_for_people(&self) -> bool {
        let unattended = &self.invocations.unattended;
        let waits = |one: &Invocation| {
            !one.is_running() || !self.invocations.is_work(one) || unattended.contains(&one.listener)
        };
        // Threads that wait for a listener which rests or is paused go on without people.
        let holds_back = |slots: &Slots| (slots.rests || slots.paused) && slots.figures().1 > 0;
        let held = self.turns.slots.iter().any(holds_back);
        !unattended.is_empty() && !held && self.invocations.all.values().all(waits)
    }

    /// The fate of all messages so far.
    pub fn counts(&self) -> Counts {
        self.step.books.counts()
    }

    /// The times from the end of a step until the journal had it; none without a journal.
    pub fn append_latency(&self) -> Latency {
        self.step.out.append_latency()
    }

    /// Messages that have not ended.
    pub fn waiting(&self) -> u64 {
        let (queued, delayed) = self.tree.waiting();
        (self.entrance.messages + queued + delayed) as u64
    }

    /// The dead letters, oldest first.
    pub fn dead_letters(&self) -> &DeadLetters {
        &self.tree.dead
    }

    /// The open threads, in order of opening.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { threads: self.tree.in_order(|_| true).into_iter().map(|key| self.open_thread(key)).collect() }
    }

    fn open_thread(&self, key: ThreadKey) -> OpenThread {
        let thread = &self.tree[key];
        let (root, path) = (self.tree[thread.root].id, self.tree.path(key));
        let parent = thread.parent.map(|parent| self.tree[parent].id);
        let (traceparent, queued) = (thread.traceparent(), queued(thread));
        OpenThread { root, id: thread.id, path, parent, traceparent, queued, state: self.state_of(thread) }
    }

    fn state_of(&self, thread: &Thread) -> ThreadState {
        match thread.invocation.and_then(|id| self.invocations.all.get(id)) {
            Some(invocation) if invocation.is_running() => ThreadState::Running,
            Some(_) => ThreadState::Awaiting,
            None if thread.turn == Turn::None => ThreadState::Waiting,
            None => ThreadState::Queued,
        }
    }

    /// The open conversations of this core that are wanted, newest first.
    pub fn open_conversations(&self, wanted: &OpenFilter) -> Vec<OpenConversation> {
        let mut roots: Vec<(ThreadId, ThreadKey)> = Vec::new();
        for (key, root) in self.tree.threads.iter().filter(|(_, thread)| thread.parent.is_none()) {
            let is_before = wanted.before.is_none_or(|before| root.id < before);
            if is_before && wanted.among.as_ref().is_none_or(|among| among.contains(&root.id)) {
                roots.push((root.id, key));
            }
        }
        roots.sort_unstable_by_key(|&(id, _)| std::cmp::Reverse(id));
        let mut found = Vec::new();
        for (root, key) in roots {
            if found.len() == wanted.limit {
                break;
            }
            let owner = match self.tree[key].owner {
                Owner::Client(client) => self.setup.blueprint.client(client).map(|client| client.name.clone()),
                Owner::Listener(_) | Owner::None => None,
            };
            let (version, listeners) = (self.version(key), Vec::new());
            let mut open = OpenConversation { root, owner, threads: 0, running: 0, queued: 0, listeners, version };
            for key in self.tree.with_below(key) {
                let thread = &self.tree[key];
                open.threads += 1;
                open.running += usize::from(self.state_of(thread) == ThreadState::Running);
                open.queued += queued(thread);
                if let Some(listener) = thread.listener()
                    && !open.listeners.contains(&listener)
                {
                    open.listeners.push(listener);
                }
            }
            let has = |listener: &ListenerId| open.listeners.contains(listener);
            let is_with = wanted.with.as_ref().is_none_or(|with| with.iter().any(has));
            if is_with && !wanted.without.iter().any(has) {
                found.push(open);
            }
        }
        found
    }

    /// The states of these threads of a conversation, without those that are not open.
    pub fn states_of(&self, root: ThreadId, threads: &HashSet<ThreadId>) -> Vec<(ThreadId, ThreadState)> {
        let all = self.root_key(root).into_iter().flat_map(|root| self.tree.with_below(root));
        let wanted = all.map(|key| &self.tree[key]).filter(|thread| threads.contains(&thread.id));
        wanted.map(|thread| (thread.id, self.state_of(thread))).collect()
    }

    /// Finds a root. Those of the organism itself are in no index.
    fn root_key(&self, root: ThreadId) -> Option<ThreadKey> {
        let mut roots = self.tree.threads.iter().filter(|(_, thread)| thread.parent.is_none());
        roots.find(|(_, thread)| thread.id == root).map(|(key, _)| key)
    }

    /// Some of the open threads of a conversation, each behind its parent: `limit` behind the first `skip`.
    pub fn open_threads(&self, root: ThreadId, skip: usize, limit: usize) -> Vec<OpenThread> {
        let all = self.root_key(root).into_iter().flat_map(|root| self.tree.with_below(root));
        all.skip(skip).take(limit).map(|key| self.open_thread(key)).collect()
    }

    /// The roots of open conversations that keep an earlier version of the organism than this one.
    pub fn roots_before(&self, version: Version) -> Vec<ThreadId> {
        let roots = self.tree.threads.iter().filter(|(_, thread)| thread.parent.is_none());
        roots.filter(|&(key, _)| self.version(key) < version).map(|(_, root)| root.id).collect()
    }

    /// The roots of open conversations that keep this version of the organism.
    pub fn roots_of(&self, version: Version) -> Vec<ThreadId> {
        let roots = self.tree.threads.iter().filter(|(_, thread)| thread.parent.is_none());
        roots.filter(|&(key, _)| self.version(key) == version).map(|(_, root)| root.id).collect()
    }

    /// Returns whether a handler of one of these listeners runs or is parked, maybe of a thread that has closed.
    pub fn runs_any(&self, listeners: &Range<ListenerId>) -> bool {
        self.invocations.all.values().any(|one| listeners.contains(&one.listener))
    }

    /// The slots of each listener that this core keeps, in order of listener. Those of earlier versions count while they are used.
    pub fn listener_slots(&self) -> Vec<ListenerSlots> {
        let own = self.setup.blueprint.all_listeners().filter(|(id, _)| self.home(*id) == self.setup.core);
        let figures = |(listener, contract): (ListenerId, &Contract)| {
            let slots = &self.turns.slots[listener.0 as usize];
            let (free, waiting) = slots.figures();
            let running = contract.concurrency.saturating_sub(free);
            ListenerSlots { listener, running, waiting }
        };
        let is_present = |listener| listener >= self.setup.blueprint.first();
        own.map(figures).filter(|slots| is_present(slots.listener) || slots.running > 0 || slots.waiting > 0).collect()
    }

    /// The amounts that each open conversation holds, in no order.
    pub fn holdings(&self) -> Vec<Holding> {
        let roots = self.tree.threads.values().filter(|thread| thread.parent.is_none());
        let holding = |root: &Thread| {
            let state = root.extra.as_ref()?.root.as_ref()?;
            let held = state.conversation.as_ref().map_or((0, 0), |held| (held.messages(), held.bytes()));
            let (messages, bytes) = held;
            Some(Holding { root: root.id, threads: state.live_threads as usize, messages, bytes })
        };
        roots.filter_map(holding).collect()
    }

    /// The budgets of the open threads, in order of opening.
    pub fn budgets(&self) -> Vec<OpenBudget> {
        if self.budgets.is_empty() {
            return Vec::new();
        }
        let open = |key| {
            let account = self.budgets.get(key)?;
            let (budget, spent, reserved) = (account.budget, account.spent, account.reserved);
            Some(OpenBudget { thread: self.tree[key].id, budget, spent, reserved })
        };
        self.tree.in_order(|_| true).into_iter().filter_map(open).collect()
    }

    /// Returns whether nothing is left of the conversations that the core gave up: no handler runs, and all outputs have
    /// gone, so that another core may take them over.
    pub fn has_left(&self) -> bool {
        let is_over = self.tree.threads.is_empty() && self.invocations.all.is_empty();
        is_over && self.entrance.is_empty() && self.step.out.is_empty()
    }

    fn end_step(&mut self) {
        self.settle_touched();
        debug_assert_eq!(self.step.books.open(), self.waiting(), "a message is lost or doubled: {:?}", self.step.books);
        self.step.out.end_step(self.step.clock.now);
    }

    /// Processes one item of the entrance queue; `false` if there is none.
    fn process(&mut self) -> bool {
        let next = self.entrance.pop(|principal| !self.step.out.awaits_journal(principal));
        let Some((principal, item)) = next else { return false };
        self.step.out.charge(principal);
        match item {
            Item::Injected(message, entry) => self.admit(message, entry),
            Item::Response(response) => self.respond(response),
            Item::Calls(calls) => self.place_calls(calls),
            Item::Reattached(invocation) => self.reattached(invocation),
            Item::Redriven(letter, entry) => self.reissue(letter, entry),
            Item::Left(root) => self.leave(root),
            Item::Cancel(root) => {
                self.cancel_conversation(root);
                self.step.out.emit(Output::Gone { root });
            }
        }
        true
    }

    /// Handles a message to a core that is gone: the slot that its thread was given goes back.
    fn take_stray(&mut self, message: CoreMessage) {
        match message {
            CoreMessage::SlotGranted { listener, .. } => self.release_slot(listener),
            CoreMessage::Injected(_) => self.take_core_message(message),
            // Cores that stay alone get these.
            CoreMessage::SlotWanted { .. }
            | CoreMessage::SlotReturned { .. }
            | CoreMessage::SlotDeclined { .. }
            | CoreMessage::Recovered => {}
            // Its letters were left to the next owner of their partitions.
            CoreMessage::LetterPushedOut { .. } => {}
        }
    }

    fn take_core_message(&mut self, message: CoreMessage) {
        // A listener of another organism has no slots here.
        if message.listener().is_some_and(|listener| self.setup.blueprint.listener(listener).is_none()) {
            return;
        }
        match message {
            CoreMessage::SlotWanted { from, listener, thread, root, client, resume, at } => {
                let waiter = Waiter { core: from, thread, root, principal: client.into() };
                self.slot_wanted(Want { at, listener, waiter, resume });
            }
            CoreMessage::SlotGranted { listener, thread } => self.slot_granted(listener, thread),
            CoreMessage::SlotReturned { listener } => self.slot_returned(listener),
            CoreMessage::SlotDeclined { from, listener, thread } => {
                self.turns.slots[listener.0 as usize].decline(from, thread)
            }
            CoreMessage::Recovered => self.core_recovered(),
            CoreMessage::LetterPushedOut { letter } => self.drop_letter(letter),
            CoreMessage::Injected(message) => self.inject(*message),
        }
    }
}

/// Messages in the mailbox of a thread.
fn queued(thread: &Thread) -> usize {
    thread.mailbox.as_ref().map_or(0, |mailbox| mailbox.len())
}

/// Indices of the pump's own messages among those derived from one message; emissions count from 0.
mod own_index {
    pub(super) const FAULT: u64 = 1 << 62;
    pub(super) const FAN_OUT_ENDED: u64 = 2 << 62;
    pub(super) const ANSWER: u64 = 3 << 62;
}
