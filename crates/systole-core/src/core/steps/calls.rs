//! Groups of calls that handlers await: asked, decided, given up, and asked again after a restart.
//!
//! # After a crash
//! The core hands them the same results as before, in the same order.
//!
//! A handler of a recovered message starts from the beginning. A group of calls that it makes is not made again where
//! the journal has it: its result is handed over in the order in which results were decided, so that whatever the
//! handler did with them it does again; one that is still open is attached to the children that it has. A handler that
//! asks for something else than before fails with both sides shown: it is not deterministic, and what it asked then
//! has had its effect.
//!
//! A handler that reattaches goes on from what it keeps elsewhere, and is not held to an order: it finds a group that
//! it made before by what it asked, and says when it wants none of the others, and which result it need not have again.

use std::time::Duration;

use super::Core;
use super::enter::mailbox_full;
use crate::core::contract::OnRestart;
use crate::core::conversation::AwaitedAnswers;
use crate::core::entrance::{Calls, Item, Source};
use crate::core::faults;
use crate::core::invocations::{GroupState, Invocations, Repeated, describe};
use crate::core::io::{Answer, CallId, Emission, EmissionKind, Join};
use crate::core::judge::Verdict;
use crate::core::key::{FanOutKey, InvocationId, ThreadKey};
use crate::core::outcomes::{GroupResult, Outcomes};
use crate::core::records::{join_word, requests_record};
use crate::core::tree::{Decided, FanOut, FanOutKind};
use crate::journal;
use crate::journal::{CallRecord, FanId, Number, Op};
use crate::vocab::Fault;

impl Core {
    /// A handler awaits the answers to calls.
    pub(super) fn called(
        &mut self,
        invocation: InvocationId,
        call: CallId,
        requests: Vec<Emission>,
        (join, within): (Join, Option<Duration>),
    ) {
        let Some(thread) = self.invocations.thread(invocation).filter(|&thread| self.tree.threads.contains_key(thread))
        else {
            let emitted = self.step.books.emitted(requests.len());
            return self.step.books.cancelled(emitted);
        };
        let Some(asking) = self.invocations.all.get_mut(invocation) else { return };
        // Beside those that wait to be judged or handed over.
        let limits = &self.setup.blueprint.limits;
        if asking.groups() >= limits.mailbox.saturating_add(limits.fanout) {
            let emitted = self.step.books.emitted(requests.len());
            self.step.books.faulted(emitted);
            return self.fail(thread, mailbox_full(limits.mailbox));
        }
        asking.asked.push(call);
        self.tree[thread].unjudged += 1;
        let requests = requests.into_iter().map(|request| Emission { kind: EmissionKind::Call, ..request }).collect();
        let calls = Calls { thread, invocation, call, requests, join, within };
        self.entrance.push(self.tree[self.tree[thread].root].owner.into(), Item::Calls(calls));
    }

    /// Judges a group of calls as a whole, then places them.
    pub(super) fn place_calls(&mut self, calls: Calls) {
        let Calls { thread: key, invocation, call, requests, join, within } = calls;
        if self.repeat_calls(invocation, call, &requests) {
            self.count_judged(key);
            self.tree.touch(key);
            return self.check_replay(invocation);
        }
        let listener = self.tree.threads.get(key).and_then(|thread| thread.listener());
        let asked = self.invocations.all.get(invocation).filter(|invocation| invocation.asked.contains(&call));
        let asked =
            asked.map(|one| (Source { message: one.seed, number: one.number(), index: one.emitted }, one.fan_id(call)));
        let place = listener.zip(asked);
        let can_park = listener.is_some_and(|listener| self.setup.blueprint[listener].can_park);
        let verdicts = match place.filter(|_| can_park) {
            Some((listener, _)) => self.judge_calls(key, listener, &requests),
            None => Vec::new(),
        };
        let entries = self.step.books.emitted(requests.len());
        self.count_judged(key);
        let Some((listener, (source, id))) = place else {
            self.step.books.cancelled(entries);
            return self.tree.touch(key);
        };
        if let Some(invocation) = self.invocations.all.get_mut(invocation) {
            invocation.asked.retain(|&asked| asked != call);
        }
        let total = verdicts.iter().map(Verdict::width).sum::<usize>();
        let blueprint = &self.setup.blueprint;
        if !can_park || total > blueprint.limits.fanout {
            self.step.books.faulted(entries);
            let fault = if can_park { faults::too_many(total, blueprint) } else { faults::cannot_park() };
            return self.call_ready(invocation, call, Err(fault));
        }
        let (outcomes, held) = (Outcomes::new(total), AwaitedAnswers::new(self.tree.conversation(key)));
        let kind = FanOutKind::Awaited { invocation, call, join, outcomes, held, expires: None };
        let until = within.map(|within| self.step.clock.now.after(within));
        let fan_out = FanOut { id, owner: key, source: source.message, total: total as u32, kind };
        let record = || {
            let (requests, join) = (requests_record(&requests), join_word(join));
            Some(CallRecord { requests, join, until, settled: Vec::new(), outcome: journal::FanOutcome::Open })
        };
        let fan = self.tree.open_fan_out(fan_out, until, record, &mut self.step);
        if let Some(invocation) = self.invocations.all.get_mut(invocation) {
            invocation.emitted += total as u64;
            invocation.calls.push((call, fan));
        }
        self.take_effect(key, listener, source, Some(fan), verdicts, entries);
        let decided = self.tree.decide(fan, &mut self.step);
        self.call_decided(fan, decided);
    }

    /// The outcome of one awaited call is there; maybe it decides the group.
    pub(super) fn settle_call(&mut self, fan: FanOutKey, index: u32, outcome: Result<Answer, Fault>) {
        let decided = self.tree.settle_call(fan, index, outcome, &mut self.step);
        self.call_decided(fan, decided);
    }

    /// Ends a group of awaited calls at its deadline: each call without an outcome has a fault for one.
    pub(super) fn expire_calls(&mut self, fan: FanOutKey) {
        let Some(FanOut { kind: FanOutKind::Awaited { expires, .. }, total, .. }) = self.tree.fan_outs.get_mut(fan)
        else {
            return;
        };
        *expires = None;
        for index in 0..*total {
            self.settle_call(fan, index, Err(faults::unanswered()));
        }
    }

    /// Ends a group of awaited calls that has its result; the losers are cancelled.
    fn call_decided(&mut self, fan: FanOutKey, decided: Option<Decided>) {
        let Some(Decided { id, invocation, call, order, result }) = decided else { return };
        self.survived(invocation);
        self.abandon_fan_out(fan);
        match self.keep_result(id, invocation, order, result) {
            Some(result) => self.call_ready(invocation, call, result),
            None => self.hand_over(invocation),
        }
    }

    /// Lets the result of a group wait for its handler's turn.
    fn call_ready(&mut self, invocation: InvocationId, call: CallId, result: GroupResult) {
        let tree = &mut self.tree;
        let thread =
            self.invocations.decided(invocation, call, result, |thread| AwaitedAnswers::new(tree.conversation(thread)));
        if let Some(thread) = thread {
            self.make_ready(thread);
        }
    }

    /// A handler gave a group of calls up.
    pub(super) fn drop_fan_out(&mut self, key: FanOutKey) {
        if let Some(fan_out) = self.tree.fan_outs.get(key) {
            let (fan, owner) = (fan_out.id, fan_out.owner);
            let reattaches = self.reattaches(owner);
            self.step.out.write(|| if reattaches { Op::Forgotten { fan } } else { Op::Dropped { fan } });
        }
        self.abandon_fan_out(key);
    }

    /// Forgets a group of calls and cancels those that are still open.
    fn abandon_fan_out(&mut self, key: FanOutKey) {
        if let Some(owner) = self.tree.remove_fan_out(key, &mut self.step) {
            self.cancel_calls(owner, key);
        }
    }

    /// Returns whether the handlers of a thread reattach.
    pub(super) fn reattaches(&self, key: ThreadKey) -> bool {
        let listener = self.tree.threads.get(key).and_then(|thread| thread.listener());
        listener.is_some_and(|listener| self.setup.blueprint[listener].on_restart == OnRestart::Reattach)
    }

    /// Counts off a response or group of calls of a thread that was on the entrance queue.
    fn count_judged(&mut self, key: ThreadKey) {
        if let Some(thread) = self.tree.threads.get_mut(key) {
            thread.unjudged -= 1;
        }
    }

    /// A handler that waits has not brought the process down.
    pub(super) fn survived(&mut self, id: InvocationId) {
        let record = self.invocations.all.get_mut(id).and_then(|invocation| invocation.record.as_mut());
        if let Some(record) = record.filter(|record| record.attempts > 0) {
            (record.attempts, record.lost) = (0, 0);
            self.step.out.write(|| Op::Attempt { message: record.number, attempts: 0 });
        }
    }

    /// Takes a group of calls that a handler made before, and asks for again; `false` if it is a new one.
    fn repeat_calls(&mut self, invocation: InvocationId, call: CallId, requests: &[Emission]) -> bool {
        let Some((repeated, is_wanted)) = self.repeat(invocation, call, requests) else { return false };
        let emitted = self.step.books.emitted(requests.len());
        self.step.books.cancelled(emitted);
        match repeated {
            Repeated::Diverged(fault) => {
                self.diverge(invocation, fault);
                return true;
            }
            Repeated::Open(fan) => {
                if let Some(FanOutKind::Awaited { call: known, .. }) =
                    self.tree.fan_outs.get_mut(fan).map(|fan| &mut fan.kind)
                {
                    *known = call;
                }
            }
            Repeated::Decided(result) => self.call_ready(invocation, call, result),
            Repeated::Waits => {}
        }
        // The handler gave the group up before this was its turn.
        if !is_wanted {
            self.call_dropped(invocation, call);
        }
        self.hand_over(invocation);
        true
    }

    /// Takes a group of calls that a handler of an open thread made before; `None` if it is a new one. With it, whether
    /// the handler still wants it.
    fn repeat(&mut self, id: InvocationId, call: CallId, requests: &[Emission]) -> Option<(Repeated, bool)> {
        let invocation = self.invocations.all.get_mut(id).filter(|invocation| invocation.thread.is_some())?;
        let record = invocation.record.as_mut().filter(|record| !record.replay.calls.is_empty())?;
        let asked = requests_record(requests);
        let (fan, made) = record.replay.take(record.number, call, &asked)?;
        let asked_at = invocation.asked.iter().position(|&asked| asked == call);
        asked_at.map(|at| invocation.asked.swap_remove(at));
        if asked != made.requests {
            let fault = faults::diverged(&describe(&made.requests), &describe(&asked));
            return Some((Repeated::Diverged(fault), true));
        }
        if record.replay.reattaches {
            record.replay.found.insert(call, fan);
        }
        let repeated = match made.state {
            GroupState::Open(fan) => {
                invocation.calls.push((call, fan));
                Repeated::Open(fan)
            }
            GroupState::Decided(result) if record.replay.reattaches => Repeated::Decided(result),
            GroupState::Decided(result) => {
                record.replay.results.insert(call, result);
                record.replay.repeated.push(call);
                Repeated::Waits
            }
            GroupState::Dropped => {
                record.replay.repeated.push(call);
                Repeated::Waits
            }
        };
        Some((repeated, asked_at.is_some()))
    }

    /// Keeps the result of a group for a handler that runs again; gives it back if nothing has to come before it.
    fn keep_result(&mut self, fan: FanId, id: InvocationId, order: Number, result: GroupResult) -> Option<GroupResult> {
        let Some(call) = fan.call else { return Some(result) };
        let replay = match self.invocations.all.get_mut(id) {
            Some(invocation) => invocation.record.as_mut().map(|record| &mut record.replay),
            None => self.invocations.replays.get_mut(&fan.message),
        };
        let Some(replay) = replay else { return Some(result) };
        match replay.calls.get_mut(&call) {
            Some(made) => made.state = GroupState::Decided(result),
            None if replay.decided.is_empty() => return Some(result),
            None => {
                replay.results.insert(CallId(call), result);
            }
        }
        if !replay.reattaches {
            replay.decided.insert(order, CallId(call));
        }
        None
    }

    /// Hands over the results that are next in the order of decisions, as far as the handler has asked for them.
    pub(super) fn hand_over(&mut self, id: InvocationId) {
        let next = |invocations: &mut Invocations| {
            let replay = &mut invocations.all.get_mut(id)?.record.as_mut()?.replay;
            let (&order, &call) = replay.decided.first_key_value()?;
            let result = replay.results.remove(&call)?;
            replay.decided.remove(&order);
            replay.repeated.retain(|other| *other != call);
            Some((call, result))
        };
        while let Some((call, result)) = next(&mut self.invocations) {
            self.call_ready(id, call, result);
        }
    }

    /// The result of a group need not be known any longer.
    pub(super) fn forget_call(&mut self, id: InvocationId, call: CallId) {
        let Some(invocation) = self.invocations.all.get_mut(id) else { return };
        let fan = invocation.fan_id(call);
        let Some(replay) =
            invocation.record.as_mut().map(|record| &mut record.replay).filter(|replay| replay.reattaches)
        else {
            return;
        };
        let fan = replay.found.remove(&call).unwrap_or(fan);
        self.step.out.write(|| Op::Forgotten { fan });
    }

    /// A handler that reattaches wants none of the groups that it has not found again.
    pub(super) fn reattached(&mut self, id: InvocationId) {
        let record = self.invocations.all.get_mut(id).and_then(|invocation| invocation.record.as_mut());
        let Some(record) = record.filter(|record| record.replay.reattaches) else { return };
        let message = record.number;
        let mut unwanted: Vec<_> = record.replay.calls.drain().collect();
        unwanted.sort_unstable_by_key(|(call, _)| *call);
        for (call, group) in unwanted {
            match group.state {
                GroupState::Open(fan) => self.drop_fan_out(fan),
                GroupState::Decided(_) | GroupState::Dropped => {
                    self.step.out.write(|| Op::Forgotten { fan: FanId { message, call: Some(call) } });
                }
            }
        }
    }

    /// Ends a handler that runs again and waits in another order than before: for a result that came after one which it
    /// has not asked for this time.
    pub(super) fn check_replay(&mut self, id: InvocationId) {
        let Some(invocation) = self.invocations.all.get(id) else { return };
        let Some(record) = invocation.record.as_ref() else { return };
        if invocation.is_running() || invocation.is_ready() || !invocation.asked.is_empty() {
            return;
        }
        let next = record.replay.decided.values().next().and_then(|next| record.replay.calls.get(&next.0));
        if let Some(group) = next {
            let fault = faults::diverged(&describe(&group.requests), "nothing: it waits for others");
            self.diverge(id, fault);
        }
    }

    fn diverge(&mut self, invocation: InvocationId, fault: Fault) {
        if let Some(thread) = self.invocations.thread(invocation) {
            self.fail_shown(thread, fault);
        }
    }
}
