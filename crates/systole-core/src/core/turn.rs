//! Turns: which thread is ready, who has a slot, who is dispatched next.

use super::blueprint::ListenerId;
use super::concurrency::Waiter;
use super::faults;
use super::invocation::Invocation;
use super::io::{Body, JoinPosition, Message, Output, Remembered, ShardId, ShardMessage, Start};
use super::key::{InvocationId, ThreadKey};
use super::machine::Core;
use super::recover::stored;
use super::thread::{Content, Origin, Owner, Queued, Sender, Thread, Turn};
use crate::core::event::EventKind;
use crate::journal::{FanId, Number};
use crate::protocol;
use crate::vocab::{Fault, MessageId, Name, Time};

/// What a message says about itself.
struct Head {
    id: MessageId,
    from: Name,
    in_reply_to: Option<MessageId>,
    join: Option<JoinPosition>,
}

impl Core {
    /// Lets a thread that has something to do stand in line for its turn.
    pub(super) fn make_ready(&mut self, key: ThreadKey) {
        let thread = &self.threads[key];
        let Some(listener) = thread.listener() else { return };
        if thread.turn != Turn::None {
            return;
        }
        let resume = match thread.task.and_then(|task| self.tasks.get(task)) {
            Some(task) if task.ready.is_empty() => return,
            Some(task) if task.is_running() || task.boot => return self.enter_ring(key, false),
            Some(_) => true,
            None if thread.judging > 0 || thread.mailbox.len() == 0 => return,
            None if !self.needs_handler(key) || self.is_booting(key) => return self.enter_ring(key, false),
            None => false,
        };
        if self.take_slot(listener, key, resume) {
            self.enter_ring(key, true);
        } else {
            self.threads[key].turn = Turn::Waiting;
        }
    }

    /// Dispatches the next thread of the ring; `false` if it is empty.
    pub(super) fn dispatch(&mut self) -> bool {
        let Self { run_queue: ring, threads, .. } = self;
        let stands = |key, place| {
            let turn = threads.get(key).map(|thread: &Thread| thread.turn);
            matches!(turn, Some(Turn::RunQueue { ticket, .. }) if ticket == place)
        };
        let Some(key) = ring.pop(stands) else { return false };
        let thread = &mut threads[key];
        let slot = matches!(std::mem::replace(&mut thread.turn, Turn::None), Turn::RunQueue { slot: true, .. });
        let task = thread.task;
        match task {
            Some(task) => self.resume(key, task, slot),
            None if !self.needs_handler(key) => self.end_by_message(key, slot),
            None if slot || self.is_booting(key) => self.start(key, slot),
            None => self.make_ready(key),
        }
        true
    }

    /// The messages of a listener that is down fault at once, also those that wait for a slot.
    pub(super) fn set_down(&mut self, listener: ListenerId, down: bool) {
        if let Some(flag) = self.down.get_mut(listener.0 as usize) {
            *flag = down;
        }
        if !down {
            return;
        }
        let waits = |thread: &Thread| {
            thread.listener() == Some(listener) && thread.turn == Turn::Waiting && thread.task.is_none()
        };
        let waiting = self.threads.iter().filter(|(_, thread)| waits(thread));
        let mut waiting: Vec<_> = waiting.map(|(key, thread)| (thread.sequence, key)).collect();
        waiting.sort_unstable();
        for (_, key) in waiting {
            self.leave_turn(key);
            self.make_ready(key);
        }
    }

    /// Takes a thread out of the queues that it stands in.
    pub(super) fn leave_turn(&mut self, key: ThreadKey) {
        let turn = std::mem::replace(&mut self.threads[key].turn, Turn::None);
        let Some(listener) = self.threads[key].listener() else { return };
        match turn {
            Turn::None | Turn::RunQueue { slot: false, .. } => {}
            Turn::RunQueue { slot: true, .. } => self.release_slot(listener),
            Turn::Waiting => match self.home(listener) {
                home if home == self.shard => self.slot_declined(listener, self.shard, key),
                home => self.send(home, ShardMessage::SlotDeclined { from: self.shard, listener, thread: key }),
            },
        }
    }

    /// Gives a slot back. Once the organism ends no thread gets it: what waits in shards that have not ended yet is
    /// for the next start.
    pub(super) fn release_slot(&mut self, listener: ListenerId) {
        if self.stopped {
            return;
        }
        match self.home(listener) {
            home if home == self.shard => self.slot_returned(listener),
            home => self.send(home, ShardMessage::SlotReturned { listener }),
        }
    }

    fn leave_slot(&mut self, listener: ListenerId, slot: bool) {
        if slot {
            self.release_slot(listener);
        }
    }

    pub(super) fn slot_wanted(&mut self, listener: ListenerId, waiter: Waiter, resume: bool, at: Number) {
        if self.gather(listener, waiter, resume, at) {
            return;
        }
        if self.slots[listener.0 as usize].take(waiter, resume) {
            self.grant(listener, waiter.shard, waiter.thread);
        }
    }

    pub(super) fn slot_granted(&mut self, listener: ListenerId, key: ThreadKey) {
        if self.threads.get(key).is_some_and(|thread| thread.turn == Turn::Waiting) {
            self.enter_ring(key, true);
        } else {
            self.release_slot(listener);
        }
    }

    pub(super) fn slot_returned(&mut self, listener: ListenerId) {
        if self.stopped {
            return;
        }
        if let Some((shard, thread)) = self.slots[listener.0 as usize].give_back() {
            self.grant(listener, shard, thread);
        }
    }

    pub(super) fn slot_declined(&mut self, listener: ListenerId, shard: ShardId, thread: ThreadKey) {
        self.slots[listener.0 as usize].decline(shard, thread);
    }

    fn grant(&mut self, listener: ListenerId, shard: ShardId, thread: ThreadKey) {
        if shard == self.shard {
            self.slot_granted(listener, thread);
        } else {
            self.send(shard, ShardMessage::SlotGranted { listener, thread });
        }
    }

    fn take_slot(&mut self, listener: ListenerId, thread: ThreadKey, resume: bool) -> bool {
        let (home, root) = (self.home(listener), self.threads[thread].root);
        let at = self.arrival();
        if home != self.shard {
            self.send(home, ShardMessage::SlotWanted { from: self.shard, listener, thread, root, resume, at });
            return false;
        }
        let waiter = Waiter { shard: home, thread, root };
        if !self.blueprint.contract(listener).stateless && self.gather(listener, waiter, resume, at) {
            return false;
        }
        self.slots[listener.0 as usize].take(waiter, resume)
    }

    /// The shard that keeps the slots of a listener.
    fn home(&self, listener: ListenerId) -> ShardId {
        if self.blueprint.contract(listener).stateless {
            return self.shard;
        }
        ShardId((listener.0 % u32::from(self.shards)) as u16)
    }

    pub(super) fn send(&mut self, to: ShardId, message: ShardMessage) {
        self.outputs.push_back(Output::Shard { to, message });
    }

    fn enter_ring(&mut self, key: ThreadKey, slot: bool) {
        let conversation = self.conversation_of(key);
        let thread = &mut self.threads[key];
        thread.turn = Turn::RunQueue { slot, ticket: self.run_queue.push(conversation, key, thread.sequence) };
    }

    /// Whether the next message of a thread is for its listener, rather than the end of the thread.
    fn needs_handler(&self, key: ThreadKey) -> bool {
        let thread = &self.threads[key];
        let Some((listener, message)) = thread.listener().zip(thread.mailbox.front()) else { return false };
        match &message.content {
            _ if self.down[listener.0 as usize] => false,
            Content::Fatal(_) => false,
            Content::Body(Body::Fault(_)) => self.blueprint.contract(listener).accepts_faults,
            Content::Body(Body::Payload { .. }) | Content::Stored(_) => true,
        }
    }

    fn resume(&mut self, key: ThreadKey, id: InvocationId, slot: bool) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let (listener, running, boot) = (task.listener, task.is_running(), task.boot);
        // Either it went on without its answer, or it parked again after it had entered the ring.
        if slot && (running || task.ready.is_empty()) {
            self.release_slot(listener);
            return self.make_ready(key);
        }
        if !slot && !running && !boot {
            return self.make_ready(key);
        }
        let Some((call, result, _)) = task.ready.pop_front() else { return };
        self.resumes -= 1;
        if !running {
            self.run_task(id, slot);
        }
        self.outputs.push_back(Output::Resume { task: id, call, result });
        self.make_ready(key);
    }

    /// Starts the handler of the next message. `slot`: the thread holds one, as all do but those
    /// whose message is `<boot>`: its handler may run for ever, and must not keep one from others.
    fn start(&mut self, key: ThreadKey, slot: bool) {
        let Some(listener) = self.threads[key].listener() else { return };
        let boot = self.is_booting(key);
        let Some(queued) = self.take_message(key) else { return self.leave_slot(listener, slot) };
        let attempts = match self.count_attempt(listener, queued.number, queued.attempts) {
            Ok(attempts) => attempts,
            Err(fault) => {
                self.leave_slot(listener, slot);
                return self.give_up_message(key, queued, fault);
            }
        };
        let Queued { id, number, from, in_reply_to, content, answers, share, .. } = queued;
        drop(share);
        let body = match content {
            Content::Body(body) => Ok(body),
            Content::Stored(payload) => self.restore(listener, payload.clone()).map_err(|fault| (Some(payload), fault)),
            Content::Fatal(fault) => Err((None, fault)),
        };
        let body = match body {
            Ok(body) => body,
            Err((payload, fault)) => {
                self.leave_slot(listener, slot);
                self.log_done(number, None);
                match payload {
                    // The contract has changed since it was sent.
                    Some(payload) => {
                        let to = Some(self.blueprint.contract(listener).name.clone());
                        self.bury(key, (from, to), stored(payload).ok(), fault.clone());
                    }
                    None => self.counts.faulted += 1,
                }
                return self.fail(key, fault);
            }
        };
        let left = self.blueprint.contract(listener).timeout.filter(|_| !boot);
        let task = Invocation::new(key, listener, id, left, boot);
        self.running += usize::from(self.is_work(&task));
        let task = self.tasks.insert(task);
        self.threads[key].task = Some(task);
        self.run_task(task, slot);
        let (join, answered) = self.position(answers);
        let notes = self.attach_log(task, number, attempts, answered);
        let head = Head { id, from: self.sender_name(from), in_reply_to, join };
        let message = Message { number, notes, ..self.message(key, (listener, task), head, body) };
        self.counts.delivered += 1;
        self.outputs.push_back(Output::Start(Start { task, listener, message }));
    }

    /// The message as the handler gets it; its context remembers it.
    fn message(
        &mut self,
        key: ThreadKey,
        (listener, task): (ListenerId, InvocationId),
        head: Head,
        body: Body,
    ) -> Message {
        let Head { id, from, in_reply_to, join } = head;
        self.event(key, || EventKind::Delivered {
            message: id,
            from: from.clone(),
            payload: match &body {
                Body::Payload { payload, .. } => Some(payload.payload().root().clone()),
                Body::Fault(_) => None,
            },
        });
        let mut history = Vec::new();
        if self.blueprint.contract(listener).context {
            let remembered = self.tasks[task].log.as_ref().and_then(|log| log.replay.remembered);
            let before = remembered.unwrap_or(Number::MAX);
            history = self.threads[key].extra().history.get_or_insert_default().messages(before);
            if remembered.is_none() {
                let payload = match &body {
                    Body::Payload { payload, .. } => payload.payload().clone(),
                    Body::Fault(fault) => protocol::write_fault(fault),
                };
                let number = self.remember(key, Remembered { from: from.clone(), payload });
                self.log_seen(task, number);
            }
        }
        let thread = &self.threads[key];
        Message {
            id,
            thread: thread.id,
            from,
            in_reply_to,
            body,
            join,
            deadline: Some(thread.deadline).filter(|&deadline| deadline != Time::MAX),
            traceparent: thread.traceparent().cloned(),
            history,
            number: 0,
            notes: Vec::new(),
        }
    }

    /// Adds to the context of a thread; the number that it has there.
    pub(super) fn remember(&mut self, key: ThreadKey, message: Remembered) -> Number {
        let logs = self.logs();
        let (number, kept) = if logs { (self.next_number(), Some(message.clone())) } else { (0, None) };
        let Self { threads, blueprint, context, .. } = self;
        let history = threads[key].extra().history.get_or_insert_default();
        history.remember((number, message), &blueprint.limits, context);
        let before = history.oldest();
        if let Some(message) = kept {
            self.log_remembered(key, number, &message, before);
        }
        number
    }

    /// The place of an answer in its fan-out, and how much of that is consumed with it.
    fn position(&mut self, answers: Origin) -> (Option<JoinPosition>, Option<(FanId, u32)>) {
        match answers {
            Origin::None => (None, None),
            Origin::Single => (Some(JoinPosition { index: 0, total: 1, remaining: 0 }), None),
            Origin::Fan { fan, index } => match self.deliver_index(fan, index) {
                Some((position, fan, count)) => (Some(position), Some((fan, count))),
                None => (None, None),
            },
        }
    }

    /// A message that seems to end the process is not tried once more.
    fn give_up_message(&mut self, key: ThreadKey, message: Queued, fault: Fault) {
        self.log_done(message.number, None);
        let to = self.threads[key].listener().map(|listener| self.blueprint.contract(listener).name.clone());
        self.bury(key, (message.from, to), message.content.payload(), fault.clone());
        self.fail(key, fault);
    }

    /// The next message ends its thread: a fault that passes on, or a listener that is down.
    fn end_by_message(&mut self, key: ThreadKey, slot: bool) {
        let Some(listener) = self.threads[key].listener() else { return };
        self.leave_slot(listener, slot);
        let Some(queued) = self.take_message(key) else { return };
        self.counts.faulted += 1;
        self.log_done(queued.number, None);
        let fault = match queued.content {
            Content::Fatal(fault) | Content::Body(Body::Fault(fault)) => fault,
            Content::Body(Body::Payload { .. }) | Content::Stored(_) => faults::down(),
        };
        self.fail(key, fault);
    }

    fn take_message(&mut self, key: ThreadKey) -> Option<Queued> {
        let message = self.threads[key].mailbox.pop()?;
        self.queued -= 1;
        Some(message)
    }

    /// Whether a thread below the root of boot has not come further than `<boot>` itself.
    pub(super) fn is_booting(&self, key: ThreadKey) -> bool {
        let thread = &self.threads[key];
        let waits = || match thread.mailbox.front().map(|message| (message.from, &message.content)) {
            Some((from, Content::Body(body))) => is_boot(from, body),
            Some((_, Content::Stored(_) | Content::Fatal(_))) | None => false,
        };
        self.is_below_boot(key)
            && thread.task.map_or_else(waits, |task| self.tasks.get(task).is_some_and(|task| task.boot))
    }

    pub(super) fn is_below_boot(&self, key: ThreadKey) -> bool {
        self.threads[key].parent.is_some_and(|parent| self.threads[parent].owner == Owner::Nobody)
    }

    pub(super) fn sender_name(&self, sender: Sender) -> Name {
        match sender {
            Sender::Listener(id) => self.blueprint.contract(id).name.clone(),
            Sender::Client(id) => self.blueprint.principal(id).name.clone(),
            Sender::Core => Name::core(),
            Sender::System => Name::system(),
        }
    }
}

/// The only payload that the system sends of its own accord.
fn is_boot(from: Sender, body: &Body) -> bool {
    from == Sender::System && matches!(body, Body::Payload { .. })
}
