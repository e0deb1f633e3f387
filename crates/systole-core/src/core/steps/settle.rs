//! The end of threads: silence, answers given, cancellation, deadlines.

use super::{Core, own_index};
use crate::core::clock::{Timer, TimerId};
use crate::core::contract::Silence;
use crate::core::faults;
use crate::core::io::Output;
use crate::core::key::{FanOutKey, ThreadKey};
use crate::core::queued::{Content, Origin, Queued, Sender};
use crate::core::tree::{CountedOff, Owner, Turn};
use crate::protocol;
use crate::vocab::{MessageId, ThreadId};

impl Core {
    /// Settles the threads that the step has touched, and those that this touches in turn.
    pub(super) fn settle_touched(&mut self) {
        while let Some(key) = self.tree.next_touched() {
            self.settle(key);
        }
    }

    /// Checks whether a thread has work left; without any, it is silent.
    fn settle(&mut self, key: ThreadKey) {
        let Some(thread) = self.tree.get(key) else { return };
        if thread.is_busy() {
            return self.make_ready(key);
        }
        match thread.owner {
            // The children of a root without an owner owe nothing, so the root isn't busy with them.
            Owner::None if thread.children.first.is_none() => self.close(key),
            Owner::None => {}
            Owner::Client(_) => {
                let due = self.step.clock.now().after(self.setup.blueprint.limits.root_idle);
                if !self.tree.rest_root(key, due, &mut self.step) {
                    self.close(key);
                }
            }
            Owner::Listener(_) if thread.is_spawned() && thread.origin == Origin::None => {}
            Owner::Listener(_) if self.tree.is_below_boot(key) => self.end_child(key),
            Owner::Listener(listener) => match self.setup.blueprint.contract(listener).silence {
                Silence::Error if thread.was_drained() => self.fail(key, faults::cancelled()),
                Silence::Error => {
                    let fault = self.budgets.refusal(key).cloned();
                    self.fail(key, fault.unwrap_or_else(faults::silent));
                }
                Silence::Idle => {
                    let owed = self.tree.take_owed(key, &mut self.step);
                    let Some(parent) = owed.parent else { return };
                    self.count_off(parent, owed.origin, owed.opened_by);
                    self.answered(key, parent, owed.origin);
                }
            },
        }
    }

    /// The thread has given its answer: it closes, or a spawned one takes its next call.
    pub(super) fn answered(&mut self, key: ThreadKey, parent: ThreadKey, origin: Origin) {
        self.end_call(key);
        if origin != Origin::None {
            self.tree.owed_less(parent);
        }
        self.next_call(key);
        self.tree.touch(parent);
    }

    /// Ends the work of a thread for its call: the thread closes, or a spawned thread is emptied.
    fn end_call(&mut self, key: ThreadKey) {
        match self.tree.get(key) {
            Some(thread) if thread.is_spawned() => self.clear(key),
            Some(_) => self.close(key),
            None => {}
        }
    }

    /// Starts the next call of a spawned thread that owes nothing.
    pub(super) fn next_call(&mut self, key: ThreadKey) {
        if self.tree.next_call(key, &mut self.step) {
            self.make_ready(key);
        }
    }

    /// Closes a child that owes nothing.
    pub(super) fn end_child(&mut self, key: ThreadKey) {
        let (parent, owed) = (self.tree[key].parent, self.tree[key].origin != Origin::None);
        self.close(key);
        let Some(parent) = parent else { return };
        if owed {
            self.tree.owed_less(parent);
        }
        self.tree.touch(parent);
    }

    /// A call ends without an answer and without a fault.
    pub(super) fn count_off(&mut self, owner: ThreadKey, origin: Origin, opened_by: MessageId) {
        match origin {
            Origin::None => {}
            Origin::Single => self.fan_out_ended(owner, 1, opened_by),
            Origin::Fan { fan, index } => match self.tree.count_off(fan, &mut self.step) {
                CountedOff::Awaited(silent) => self.settle_call(fan, index, Err(silent)),
                CountedOff::Over { total, source } => self.fan_out_ended(owner, total, source),
                CountedOff::Open => {}
            },
        }
    }

    /// Reports to a listener whose contract asks for it that no further answer comes.
    fn fan_out_ended(&mut self, owner: ThreadKey, total: u32, source: MessageId) {
        let Some(listener) = self.tree[owner].listener() else { return };
        if !self.setup.blueprint.contract(listener).returns.contains(&protocol::fan_out_ended_qname()) {
            return;
        }
        let (id, _) = self.setup.key.derive(source, own_index::FAN_OUT_ENDED);
        let entry = self.step.books.made();
        match self.judge.own_payload(listener, protocol::write_fan_out_ended(total)) {
            Ok(body) => {
                let share = self.tree.count(owner, 0);
                self.enqueue(owner, Queued::new(id, Sender::Core, Content::Body(body), share, entry));
            }
            Err(fault) => {
                self.step.books.faulted(entry);
                self.fault_to(owner, Origin::None, id, None, fault);
            }
        }
    }

    /// Cancels the open children that belong to a group of calls.
    pub(super) fn cancel_calls(&mut self, owner: ThreadKey, fan: FanOutKey) {
        let mut next = self.tree[owner].children.first;
        while let Some(key) = next {
            next = self.tree[key].children.next;
            self.tree.cancel_backlog(key, fan, &mut self.step);
            if self.tree.take_call(key, fan, &mut self.step) {
                self.end_call(key);
                self.tree.owed_less(owner);
                self.next_call(key);
            }
        }
    }

    /// Closes a thread and everything below it. Its caller gets no answer: that is left to the caller of this.
    pub(super) fn close(&mut self, top: ThreadKey) {
        self.tree.unlink(top);
        if self.tree[top].children.first.is_none() {
            return self.close_one(top);
        }
        for key in self.tree.subtree(top) {
            self.close_one(key);
        }
    }

    /// Closes a spawned thread at the wish of its owner. The calls that it owes answers to are
    /// counted off: the owner knows best why none will come.
    pub(super) fn close_spawned(&mut self, owner: ThreadKey, child: ThreadKey) {
        if !self.tree.contains(child) {
            return;
        }
        let owed = self.tree.all_owed(child);
        self.close(child);
        for (origin, call) in owed {
            self.tree.owed_less(owner);
            self.count_off(owner, origin, call);
        }
    }

    /// Empties a spawned thread between two calls; its backlog and its context stay.
    fn clear(&mut self, key: ThreadKey) {
        let mut below = Vec::new();
        self.tree.children_of(key, &mut below);
        below.into_iter().for_each(|child| self.close(child));
        let invocation = self.tree[key].invocation.and_then(|id| self.invocations.get(id));
        let handled = invocation.map_or(0, |invocation| invocation.number());
        self.tree.write_cleared(key, handled, &mut self.step);
        self.discard_work(key);
        self.tree.reset(key);
        self.budgets.forget_refusals(key);
    }

    fn close_one(&mut self, key: ThreadKey) {
        let cancelled = self.discard_work(key);
        self.close_account(key);
        self.tree.remove(key, cancelled, &mut self.step);
    }

    /// Cancels the running handler and the queued messages of a thread; returns the number of messages.
    fn discard_work(&mut self, key: ThreadKey) -> usize {
        if self.tree[key].turn != Turn::None {
            self.leave_turn(key);
        }
        if let Some(invocation) = self.tree.set_invocation(key, None) {
            self.invocations.abort(invocation, &mut self.step);
            // The account closes before the handler has ended.
            self.budgets.forfeit(invocation, &mut self.step);
        }
        self.tree.discard(key, &mut self.step)
    }

    /// The client of a conversation has left.
    pub(super) fn leave(&mut self, root: ThreadId) {
        let Some(key) = self.tree.root(root) else { return self.step.out.emit(Output::Gone { root }) };
        self.tree.mark_left(key, &mut self.step);
        self.tree.touch(key);
    }

    /// Closes a conversation at the wish of its client.
    pub(super) fn cancel_conversation(&mut self, root: ThreadId) {
        if let Some(key) = self.tree.root(root) {
            self.close(key);
        }
    }

    /// A timer is due.
    pub(super) fn expire(&mut self, id: TimerId, timer: Timer) {
        match timer {
            Timer::Handler(invocation) => {
                if let Some(thread) = self.invocations.thread(invocation) {
                    self.fail(thread, faults::handler_timeout());
                }
            }
            Timer::Deadline(key) => {
                if self.tree.forget_deadline(key) {
                    self.fail(key, faults::deadline());
                }
            }
            Timer::Idle(key) => {
                if self.tree.contains(key) {
                    self.close(key);
                }
            }
            Timer::Calls(fan) => self.expire_calls(fan),
            Timer::Continue(key, message) => match self.tree.contains(key) {
                true => {
                    self.tree.end_delay(key, id);
                    self.enqueue(key, *message);
                }
                false => self.step.books.cancelled(message.entry),
            },
        }
    }
}
