//! Groups of calls that handlers await: asked, decided, given up, and asked again after a restart.

use std::time::Duration;

use super::Core;
use crate::core::contract::OnRestart;
use crate::core::conversation::AwaitedAnswers;
use crate::core::faults;
use crate::core::invocations::{Invocation, Repeated};
use crate::core::io::{Answer, CallId, Emission, EmissionKind, Join};
use crate::core::items::{Calls, Item, Source};
use crate::core::judge::Verdict;
use crate::core::key::{FanOutKey, InvocationId, ThreadKey};
use crate::core::outcomes::{GroupResult, Outcomes};
use crate::core::records::{join_word, requests_record};
use crate::core::tree::{Decided, FanOut, FanOutKind};
use crate::journal;
use crate::journal::{CallRecord, Op};
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
        let Some(thread) = self.invocations.thread(invocation).filter(|&thread| self.tree.contains(thread)) else {
            let emitted = self.step.books.emitted(requests.len());
            return self.step.books.cancelled(emitted);
        };
        let groups = self.invocations.get(invocation).map_or(0, Invocation::groups);
        if let Err(fault) = self.tree.room_for_group(groups) {
            let emitted = self.step.books.emitted(requests.len());
            self.step.books.faulted(emitted);
            return self.fail(thread, fault);
        }
        self.tree.begin_judging(thread);
        self.invocations.ask(invocation, call);
        let requests = requests.into_iter().map(|request| Emission { kind: EmissionKind::Call, ..request }).collect();
        let calls = Calls { thread, invocation, call, requests, join, within };
        self.entrance.push(self.tree.principal(thread), Item::Calls(calls));
    }

    /// Judges a group of calls as a whole, then places them.
    pub(super) fn place_calls(&mut self, calls: Calls) {
        let Calls { thread: key, invocation, call, requests, join, within } = calls;
        if self.repeat_calls(invocation, call, &requests) {
            self.tree.end_judging(key);
            self.tree.touch(key);
            return self.check_replay(invocation);
        }
        let listener = self.tree.get(key).and_then(|thread| thread.listener());
        let asked = self.invocations.get(invocation).filter(|invocation| invocation.has_asked(call));
        let asked =
            asked.map(|one| (Source { message: one.seed, number: one.number(), index: one.emitted }, one.fan_id(call)));
        let place = listener.zip(asked);
        let can_park = listener.is_some_and(|listener| self.setup.blueprint.contract(listener).can_park);
        let verdicts = match place.filter(|_| can_park) {
            Some((listener, _)) => self.judge_each(key, listener, &requests),
            None => Vec::new(),
        };
        let entries = self.step.books.emitted(requests.len());
        self.tree.end_judging(key);
        let Some((listener, (source, id))) = place else {
            self.step.books.cancelled(entries);
            return self.tree.touch(key);
        };
        self.invocations.take_asked(invocation, call);
        let total = verdicts.iter().map(Verdict::width).sum::<usize>();
        let blueprint = &self.setup.blueprint;
        if !can_park || total > blueprint.limits.fanout {
            self.step.books.faulted(entries);
            let fault = if can_park { faults::too_many(total, blueprint) } else { faults::cannot_park() };
            return self.call_ready(invocation, call, Err(fault));
        }
        let (outcomes, held) = (Outcomes::new(total), AwaitedAnswers::new(self.tree.conversation(key)));
        let kind = FanOutKind::Awaited { invocation, call, join, outcomes, held, expires: None };
        let until = within.map(|within| self.step.clock.now().after(within));
        let fan_out = FanOut { id, owner: key, source: source.message, total: total as u32, kind };
        let record = || {
            let (requests, join) = (requests_record(&requests), join_word(join));
            Some(CallRecord { requests, join, until, settled: Vec::new(), outcome: journal::FanOutcome::Open })
        };
        let fan = self.tree.open_fan_out(fan_out, record, &mut self.step);
        self.tree.expire_at(fan, until, &mut self.step);
        self.invocations.wait_for(invocation, call, fan, total);
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
        for index in 0..self.tree.expired(fan).unwrap_or_default() {
            self.settle_call(fan, index, Err(faults::unanswered()));
        }
    }

    /// Ends a group of awaited calls that has its result; the losers are cancelled.
    fn call_decided(&mut self, fan: FanOutKey, decided: Option<Decided>) {
        let Some(Decided { id, invocation, call, order, result }) = decided else { return };
        self.invocations.survived(invocation, &mut self.step);
        self.abandon_fan_out(fan);
        match self.invocations.keep_result(id, invocation, order, result) {
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
        if let Some(fan_out) = self.tree.fan_out(key) {
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
        let listener = self.tree.get(key).and_then(|thread| thread.listener());
        listener.is_some_and(|listener| self.setup.blueprint.contract(listener).on_restart == OnRestart::Reattach)
    }

    /// Takes a group of calls that a handler made before, and asks for again; `false` if it is a new one.
    fn repeat_calls(&mut self, invocation: InvocationId, call: CallId, requests: &[Emission]) -> bool {
        let Some((repeated, is_wanted)) = self.invocations.repeat(invocation, call, requests) else { return false };
        let emitted = self.step.books.emitted(requests.len());
        self.step.books.cancelled(emitted);
        match repeated {
            Repeated::Diverged(fault) => {
                self.diverge(invocation, fault);
                return true;
            }
            Repeated::Open(fan) => self.tree.rename_call(fan, call),
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

    /// Hands over the results that are next in the order of decisions.
    pub(super) fn hand_over(&mut self, invocation: InvocationId) {
        while let Some((call, result)) = self.invocations.next_result(invocation) {
            self.call_ready(invocation, call, result);
        }
    }

    /// A handler that reattaches wants none of the groups that it has not found again.
    pub(super) fn reattached(&mut self, invocation: InvocationId) {
        for (fan, open) in self.invocations.unwanted(invocation) {
            match open {
                Some(key) => self.drop_fan_out(key),
                None => self.step.out.write(|| Op::Forgotten { fan }),
            }
        }
    }

    /// Ends a handler that runs again and waits in another order than before: for a result that came after one which it
    /// has not asked for this time.
    pub(super) fn check_replay(&mut self, invocation: InvocationId) {
        if let Some(fault) = self.invocations.divergence(invocation) {
            self.diverge(invocation, fault);
        }
    }

    fn diverge(&mut self, invocation: InvocationId, fault: Fault) {
        if let Some(thread) = self.invocations.thread(invocation) {
            self.fail_shown(thread, fault);
        }
    }
}
