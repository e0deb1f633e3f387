//! The end of threads: silence, answers given, cancellation, deadlines.

use super::contract::Silence;
use super::event::EventKind;
use super::faults;
use super::io::Output;
use super::key::{FanKey, ThreadKey};
use super::machine::Core;
use super::thread::{Backlog, Origin, Owner, Turn};
use super::timer::{Timer, TimerId};
use crate::journal::Op;
use crate::vocab::ThreadId;

impl Core {
    /// Looks at what a thread has left to do; if nothing, it is silent.
    pub(super) fn settle(&mut self, key: ThreadKey) {
        let Some(thread) = self.threads.get(key) else { return };
        if thread.is_busy() {
            return self.make_ready(key);
        }
        match thread.owner {
            // Its children owe nothing, so that it isn't busy with them.
            Owner::Nobody if thread.children.first.is_none() => self.close(key),
            Owner::Nobody => {}
            Owner::Client(_) => self.settle_root(key),
            Owner::Listener(_) if thread.is_spawned() && thread.origin == Origin::None => {}
            Owner::Listener(listener) => {
                let below_boot = self.is_below_boot(key);
                match self.blueprint.contract(listener).silence {
                    _ if below_boot => self.end_child(key),
                    Silence::Error if self.threads[key].was_drained() => self.fail(key, faults::cancelled()),
                    Silence::Error => self.fail(key, faults::silent()),
                    Silence::Idle => {
                        let (parent, opened_by) = (self.threads[key].parent, self.threads[key].opened_by);
                        let origin = std::mem::replace(&mut self.threads[key].origin, Origin::None);
                        self.log_owes(key);
                        let Some(parent) = parent else { return };
                        self.count_off(parent, origin, opened_by);
                        self.answered(key, parent, origin);
                    }
                }
            }
        }
    }

    /// The thread has given its answer: it closes, or a spawned one takes its next call.
    pub(super) fn answered(&mut self, key: ThreadKey, parent: ThreadKey, origin: Origin) {
        if self.threads.contains_key(key) {
            if self.threads[key].is_spawned() {
                self.clear(key);
            } else {
                self.close(key);
            }
        }
        if origin != Origin::None {
            self.owed_less(parent);
        }
        self.next_call(key);
        self.settle(parent);
    }

    /// One of the answers that a thread waits for is there, or will never come.
    fn owed_less(&mut self, parent: ThreadKey) {
        if let Some(thread) = self.threads.get_mut(parent) {
            thread.children.open = thread.children.open.saturating_sub(1);
        }
    }

    /// Closes a child that owes nothing.
    pub(super) fn end_child(&mut self, key: ThreadKey) {
        let parent = self.threads[key].parent;
        let owed = self.threads[key].origin != Origin::None;
        self.close(key);
        if let Some(parent) = parent {
            if owed {
                self.owed_less(parent);
            }
            self.settle(parent);
        }
    }

    /// Cancels the open children that belong to a group of calls.
    pub(super) fn cancel_calls(&mut self, owner: ThreadKey, fan: FanKey) {
        let mut next = self.threads[owner].children.first;
        while let Some(key) = next {
            let thread = &mut self.threads[key];
            next = thread.children.next;
            if let Some(backlog) = thread.extra.as_mut().and_then(|extra| extra.spawned.as_mut()) {
                let of_fan = |call: &Backlog| matches!(call.origin, Origin::Fan { fan: other, .. } if other == fan);
                let numbers: Vec<_> =
                    backlog.iter().filter(|call| of_fan(call)).map(|call| call.message.number).collect();
                backlog.retain(|call| !of_fan(call));
                let dropped = numbers.len();
                numbers.into_iter().for_each(|number| self.log_cancelled(number));
                self.queued -= dropped;
                self.counts.cancelled += dropped as u64;
                (0..dropped).for_each(|_| self.owed_less(owner));
            }
            let thread = &mut self.threads[key];
            if !matches!(thread.origin, Origin::Fan { fan: other, .. } if other == fan) {
                continue;
            }
            thread.origin = Origin::None;
            if thread.is_spawned() {
                self.log_owes(key);
                self.clear(key)
            } else {
                self.close(key)
            }
            self.owed_less(owner);
            self.next_call(key);
        }
    }

    /// Closes a thread and everything below it. Nobody is told: that is the caller's part.
    pub(super) fn close(&mut self, top: ThreadKey) {
        self.unlink(top);
        if self.threads[top].children.first.is_none() {
            return self.close_one(top);
        }
        let mut subtree = vec![top];
        let mut read = 0;
        while let Some(&key) = subtree.get(read) {
            self.children_of(key, &mut subtree);
            read += 1;
        }
        // Those below go first: each can still name its path and its root.
        for key in subtree.into_iter().rev() {
            self.close_one(key);
        }
    }

    /// Closes a spawned thread at the wish of its owner. The calls that it owes answers to are
    /// counted off: the owner knows best why none will come.
    pub(super) fn close_spawned(&mut self, owner: ThreadKey, child: ThreadKey) {
        let Some(thread) = self.threads.get_mut(child) else { return };
        let mut owed = vec![(thread.origin, thread.opened_by)];
        let backlog = thread.extra.as_mut().and_then(|extra| extra.spawned.as_ref());
        owed.extend(backlog.into_iter().flatten().map(|call| (call.origin, call.message.id)));
        self.close(child);
        for (origin, call) in owed.into_iter().filter(|(origin, _)| *origin != Origin::None) {
            self.owed_less(owner);
            self.count_off(owner, origin, call);
        }
    }

    /// Empties a spawned thread between two calls; its backlog and its context stay.
    fn clear(&mut self, key: ThreadKey) {
        let mut below = Vec::new();
        self.children_of(key, &mut below);
        below.into_iter().for_each(|child| self.close(child));
        self.log_cleared(key);
        self.discard_work(key);
        let thread = &mut self.threads[key];
        thread.children.open = 0;
        thread.invalid = 0;
    }

    fn close_one(&mut self, key: ThreadKey) {
        let mut cancelled = self.discard_work(key);
        let thread = &mut self.threads[key];
        let (id, number, root) = (thread.id, thread.sequence, thread.root);
        if let Some(backlog) = thread.extra.as_mut().and_then(|extra| extra.spawned.take()) {
            self.spawned.remove(&id);
            self.queued -= backlog.len();
            self.counts.cancelled += backlog.len() as u64;
            cancelled += backlog.len();
        }
        self.event(key, || EventKind::Closed { thread: id, cancelled });
        let Some(thread) = self.threads.remove(key) else { return };
        self.log(|_| Op::Close { thread: number });
        self.directory.thread_closed();
        if let Some(state) = self.threads.get_mut(root).and_then(|root| root.extra().root.as_mut()) {
            state.live_threads -= 1;
        }
        if let Some(timer) = thread.extra.and_then(|extra| extra.timer) {
            self.timers.cancel(timer);
        }
        if let Owner::Client(client) = thread.owner {
            self.roots.remove(&id);
            self.directory.remove(id);
            self.outputs.push_back(Output::Closed { client, root: id });
        }
    }

    /// Cancels what a thread has begun and what it has queued.
    fn discard_work(&mut self, key: ThreadKey) -> usize {
        if self.threads[key].turn != Turn::None {
            self.leave_turn(key);
        }
        if let Some(task) = self.threads[key].task.take() {
            self.abort_task(task);
        }
        let mut cancelled = 0;
        while self.threads[key].mailbox.pop().is_some() {
            cancelled += 1;
        }
        self.queued -= cancelled;
        if let Some(extra) = &mut self.threads[key].extra {
            let (continues, fans) = (std::mem::take(&mut extra.continues), std::mem::take(&mut extra.fans));
            extra.drained = false;
            for timer in continues {
                self.timers.cancel(timer);
                self.delayed -= 1;
                cancelled += 1;
            }
            for fan in fans {
                self.discard_fan(fan);
            }
        }
        self.counts.cancelled += cancelled as u64;
        cancelled
    }

    fn settle_root(&mut self, key: ThreadKey) {
        self.rest_conversation(key);
        let due = self.now.after(self.blueprint.limits.root_idle);
        let extra = self.threads[key].extra();
        if extra.root.as_ref().is_some_and(|root| root.left) {
            return self.close(key);
        }
        if extra.timer.is_none() {
            let timer = self.timers.set(due, Timer::Idle(key));
            self.threads[key].extra().timer = Some(timer);
        }
    }

    /// A message came for a root: it is not idle any more.
    pub(super) fn touch_root(&mut self, key: ThreadKey) {
        if let Some(timer) = self.threads[key].extra().timer.take() {
            self.timers.cancel(timer);
        }
    }

    pub(super) fn leave(&mut self, root: ThreadId) {
        let Some(&key) = self.roots.get(&root) else { return self.outputs.push_back(Output::Gone { root }) };
        self.mark_left(key);
        self.settle(key);
    }

    /// Nobody sends anything else into a root.
    pub(super) fn mark_left(&mut self, key: ThreadKey) {
        if let Some(state) = &mut self.threads[key].extra().root {
            state.left = true;
            let thread = self.threads[key].sequence;
            self.log(|_| Op::Left { thread });
        }
    }

    pub(super) fn cancel_conversation(&mut self, root: ThreadId) {
        if let Some(&key) = self.roots.get(&root) {
            self.close(key);
        }
    }

    pub(super) fn expire(&mut self, id: TimerId, timer: Timer) {
        match timer {
            Timer::Handler(task) => {
                let Some(thread) = self.tasks.get(task).and_then(|task| task.thread) else { return };
                self.fail(thread, faults::handler_timeout());
            }
            Timer::Deadline(key) => {
                if let Some(thread) = self.threads.get_mut(key) {
                    thread.extra().timer = None;
                    self.fail(key, faults::deadline());
                }
            }
            Timer::Idle(key) => {
                if self.threads.contains_key(key) {
                    self.close(key);
                }
            }
            Timer::Calls(key) => self.expire_calls(key),
            Timer::Continue(key, message) => {
                let Some(thread) = self.threads.get_mut(key) else { return };
                thread.extra().continues.retain(|&other| other != id);
                self.delayed -= 1;
                self.enqueue(key, *message);
            }
        }
    }
}
