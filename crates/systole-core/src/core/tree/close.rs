//! The end of threads, with their messages, fan-outs and history.

use crate::core::setup::StepContext;
use std::collections::VecDeque;

use super::thread::Backlog;
use super::{Owner, Tree};
use crate::core::clock::Timer;
use crate::core::event::EventKind;
use crate::core::io::Output;
use crate::core::key::{FanOutKey, ThreadKey};
use crate::core::queued::{Origin, Queued};
use crate::journal::Op;
use crate::vocab::{MessageId, Time};

/// The debt of a thread at the moment of its answer.
#[derive(Debug, Clone, Copy)]
pub(in crate::core) struct Owed {
    pub parent: Option<ThreadKey>,
    pub origin: Origin,
    /// The message whose answer it was.
    pub opened_by: MessageId,
}

impl Tree {
    /// A thread gives its only answer: from now on it owes none.
    pub(in crate::core) fn take_owed(&mut self, key: ThreadKey, step: &mut StepContext) -> Owed {
        let thread = &mut self.threads[key];
        let origin = std::mem::replace(&mut thread.origin, Origin::None);
        let owed = Owed { parent: thread.parent, origin, opened_by: thread.opened_by };
        self.write_owes(key, step);
        self.end_rounds(key);
        owed
    }

    /// Counts off one of the answers that a thread waits for: it came, or never will.
    pub(in crate::core) fn owed_less(&mut self, key: ThreadKey) {
        if let Some(thread) = self.threads.get_mut(key) {
            thread.children.open = thread.children.open.saturating_sub(1);
            self.release_place(key);
        }
    }

    /// The answers that a spawned thread owes, with the calls: the one in flight, and those that wait.
    pub(in crate::core) fn all_owed(&self, key: ThreadKey) -> Vec<(Origin, MessageId)> {
        let Some(thread) = self.threads.get(key) else { return Vec::new() };
        let backlog = thread.extra.iter().filter_map(|extra| extra.spawned.as_ref()).flatten();
        let waiting = backlog.map(|call| (call.origin, call.message.id));
        let owed = std::iter::once((thread.origin, thread.opened_by)).chain(waiting);
        owed.filter(|(origin, _)| *origin != Origin::None).collect()
    }

    /// A thread and the threads below it, those below first: each can still name its path and its root.
    pub(in crate::core) fn subtree(&self, top: ThreadKey) -> Vec<ThreadKey> {
        let mut subtree = vec![top];
        let mut read = 0;
        while let Some(&key) = subtree.get(read) {
            self.children_of(key, &mut subtree);
            read += 1;
        }
        subtree.reverse();
        subtree
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
                if let Some(fan_out) = self.fan_outs.remove(fan) {
                    fan_out.kind.cancel_timer(step);
                }
            }
        }
        cancelled
    }

    /// Cancels the messages of a thread that wait for their delay; their number.
    fn cancel_delayed(&mut self, key: ThreadKey, step: &mut StepContext) -> usize {
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

    /// Cancels the delayed messages of a thread because the organism drains; whether there were any. Those that are in
    /// the journal wait for the next start.
    pub(in crate::core) fn drain(&mut self, key: ThreadKey, step: &mut StepContext) -> bool {
        if step.out.writes() || self.cancel_delayed(key, step) == 0 {
            return false;
        }
        self.threads[key].extra().drained = true;
        true
    }

    /// Removes a thread whose messages are [discarded](Self::discard), with the calls that wait on it.
    pub(in crate::core) fn remove(&mut self, key: ThreadKey, mut cancelled: usize, step: &mut StepContext) {
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
        self.directory.thread_closed();
        if let Some(state) = self.threads.get_mut(root).and_then(|root| root.extra().root.as_mut()) {
            state.live_threads -= 1;
        }
        if let Some(timer) = thread.extra.and_then(|extra| extra.timer) {
            step.clock.cancel(timer);
        }
        if let Owner::Client(client) = thread.owner {
            self.roots.remove(&id);
            self.directory.remove(id);
            step.out.emit(Output::Closed { client, root: id });
        }
    }

    /// Writes that a spawned thread is emptied between two calls; `handled`: the number of the message in flight.
    pub(in crate::core) fn write_cleared(&self, key: ThreadKey, handled: u64, step: &mut StepContext) {
        if !step.out.writes() {
            return;
        }
        let thread = &self.threads[key];
        let StepContext { clock, out, .. } = step;
        let continues = thread.extra.iter().flat_map(|extra| &extra.continues);
        let continues = continues.filter_map(|timer| clock.continued(*timer)).map(|message| message.number);
        let waiting = thread.mailbox.iter().map(|message| message.number).chain(continues).chain([handled]);
        waiting.filter(|&message| message != 0).for_each(|message| out.write(|| Op::Cancelled { message }));
    }

    /// Resets the debts and the mistakes of a spawned thread after its last call.
    pub(in crate::core) fn reset(&mut self, key: ThreadKey) {
        let thread = &mut self.threads[key];
        thread.children.open = 0;
        thread.invalid = 0;
    }

    /// Cancels the calls of a fan-out that wait on a spawned thread.
    pub(in crate::core) fn cancel_backlog(&mut self, key: ThreadKey, fan: FanOutKey, step: &mut StepContext) {
        let owner = self.threads[key].parent;
        let backlog = self.threads[key].extra.as_mut().and_then(|extra| extra.spawned.as_mut());
        let Some(backlog) = backlog else { return };
        let of_fan = |call: &Backlog| matches!(call.origin, Origin::Fan { fan: other, .. } if other == fan);
        let (dropped, kept): (VecDeque<_>, VecDeque<_>) = std::mem::take(backlog).into_iter().partition(of_fan);
        *backlog = kept;
        self.queued -= dropped.len();
        for call in dropped {
            write_cancelled(call.message.number, step);
            step.books.cancelled(call.message.entry);
            owner.iter().for_each(|&owner| self.owed_less(owner));
        }
    }

    /// Takes a thread's answer back if it is for that fan-out; whether it was.
    pub(in crate::core) fn take_call(&mut self, key: ThreadKey, fan: FanOutKey, step: &mut StepContext) -> bool {
        let thread = &mut self.threads[key];
        let is_of_fan = matches!(thread.origin, Origin::Fan { fan: other, .. } if other == fan);
        if is_of_fan {
            thread.origin = Origin::None;
            self.write_owes(key, step);
        }
        is_of_fan
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

    /// A client sends nothing else into a root.
    pub(in crate::core) fn mark_left(&mut self, key: ThreadKey, step: &mut StepContext) {
        let thread = &mut self.threads[key];
        let number = thread.sequence;
        if let Some(state) = &mut thread.extra().root {
            state.left = true;
            step.out.write(|| Op::Left { thread: number });
        }
    }

    /// Ends the idleness of a root that got a message.
    pub(in crate::core) fn touch_root(&mut self, key: ThreadKey, step: &mut StepContext) {
        if let Some(timer) = self.threads[key].extra().timer.take() {
            step.clock.cancel(timer);
        }
    }

    /// A deadline of a thread has passed; whether the thread is open.
    pub(in crate::core) fn forget_deadline(&mut self, key: ThreadKey) -> bool {
        let Some(thread) = self.threads.get_mut(key) else { return false };
        thread.extra().timer = None;
        true
    }

    /// A root has nothing to do: it closes after a while. `false` if it closes at once, since its client has left.
    pub(in crate::core) fn rest_root(&mut self, key: ThreadKey, due: Time, step: &mut StepContext) -> bool {
        self.rest_conversation(key);
        let extra = self.threads[key].extra();
        if extra.root.as_ref().is_some_and(|root| root.left) {
            return false;
        }
        extra.timer.get_or_insert_with(|| step.clock.set(due, Timer::Idle(key)));
        true
    }
}

/// Writes that a message was discarded, though its thread stays.
fn write_cancelled(message: u64, step: &mut StepContext) {
    if message != 0 {
        step.out.write(|| Op::Cancelled { message });
    }
}
