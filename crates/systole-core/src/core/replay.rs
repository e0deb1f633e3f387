//! Handlers that run again after a crash: what they were told before, they are told again, in the same order.
//!
//! A handler of a recovered message starts from the beginning. A group of calls that it makes is not made again where
//! the journal has it: its result is handed over in the order in which results were decided, so that whatever the
//! handler did with them it does again; one that is still open is attached to the children that it has. A handler that
//! asks for something else than before fails with both sides shown: it is not deterministic, and what it asked then
//! has had its effect.
//!
//! A handler that reattaches goes on from what it keeps elsewhere, and is not held to an order: it finds a group that it
//! made before by what it asked, and says when it wants none of the others, and which result it need not have again.

use std::collections::{BTreeMap, HashMap};

use super::fan_out::FanOutKind;
use super::faults;
use super::invocation::Invocation;
use super::io::{Attachment, CallId, Emission, Settled};
use super::key::{FanOutKey, InvocationId, ThreadKey};
use super::machine::{Core, Item};
use super::write_ahead::requests_record;
use crate::journal::{FanId, NoteRecord, Number, Op, Request};
use crate::vocab::Fault;

/// What the journal says of the message that a handler works on.
#[derive(Debug, Default)]
pub(super) struct InvocationLog {
    /// The number of the message.
    pub number: Number,
    /// How often it was dispatched after a crash and did not end.
    pub attempts: Option<u8>,
    /// The fan-out that the message answers, and how many of its answers were consumed with it.
    pub answered: Option<(FanId, u32)>,
    /// What the handler did before.
    pub replay: Replay,
    /// Operations that are written in the step that consumes the message.
    pub attachment: Option<Attachment>,
}

/// What a handler did before, as far as it has not done it again.
#[derive(Debug, Default)]
pub(super) struct Replay {
    /// The groups of calls that it made, and has not asked for again.
    pub calls: HashMap<u32, Made>,
    /// The groups that were decided, in that order, as far as their results were not handed over.
    pub decided: BTreeMap<Number, CallId>,
    /// Results that were asked for again, and wait for those before them.
    pub results: HashMap<CallId, Result<Vec<Settled>, Fault>>,
    /// Groups that were asked for again: their results wait for those before them, or never come.
    pub repeated: Vec<CallId>,
    /// What it noted.
    pub notes: Vec<NoteRecord>,
    /// Where its context has the message already: what comes from there on it had not seen when it began.
    pub remembered: Option<Number>,
    /// Indices that its calls took.
    pub emitted: u64,
    /// It finds groups by what it asked, in any order.
    pub reattaches: bool,
    /// The numbers below are those of groups that were made before it was run again.
    pub before: u32,
    /// The groups made before that it found again.
    pub found: HashMap<CallId, FanId>,
}

/// A group of calls that a handler made before.
#[derive(Debug)]
pub(super) struct Made {
    pub requests: Vec<Request>,
    pub state: MadeState,
}

impl Made {
    /// Whether it asked that, and was not given up.
    fn is(&self, asked: &[Request]) -> bool {
        self.requests == asked && !matches!(self.state, MadeState::Dropped)
    }
}

#[derive(Debug)]
pub(super) enum MadeState {
    Open(FanOutKey),
    Decided(Result<Vec<Settled>, Fault>),
    /// The handler gave it up, and will again.
    Dropped,
}

impl Core {
    /// Takes a group of calls that a handler made before, and asks for again; `false` if it is a new one.
    pub(super) fn repeat_calls(&mut self, task: InvocationId, call: CallId, requests: &[Emission]) -> bool {
        let Some(waiting) = self.tasks.get_mut(task).filter(|task| task.thread.is_some()) else { return false };
        let Some(log) = &mut waiting.log else { return false };
        if log.replay.calls.is_empty() {
            return false;
        }
        let asked = requests_record(requests);
        let Some((fan, made)) = log.replay.take(log.number, call, &asked) else { return false };
        let asked_at = waiting.asked.iter().position(|&asked| asked == call);
        asked_at.map(|at| waiting.asked.swap_remove(at));
        self.counts.emitted += requests.len() as u64;
        self.counts.cancelled += requests.len() as u64;
        if asked != made.requests {
            self.diverge(task, &describe(&made.requests), &describe(&asked));
            return true;
        }
        let Some(waiting) = self.tasks.get_mut(task) else { return true };
        let Some(log) = &mut waiting.log else { return true };
        if log.replay.reattaches {
            log.replay.found.insert(call, fan);
        }
        match made.state {
            MadeState::Open(fan) => {
                waiting.calls.push((call, fan));
                if let Some(FanOutKind::Awaited { call: waits, .. }) = self.fans.get_mut(fan).map(|fan| &mut fan.kind) {
                    *waits = call;
                }
            }
            // It waits for nothing that will come.
            MadeState::Dropped => log.replay.repeated.push(call),
            MadeState::Decided(result) if log.replay.reattaches => self.call_ready(task, call, result),
            MadeState::Decided(result) => {
                log.replay.results.insert(call, result);
                log.replay.repeated.push(call);
            }
        }
        // It gave the group up before this was its turn.
        if asked_at.is_none() {
            self.call_dropped(task, call);
        }
        self.hand_over(task);
        true
    }

    /// Keeps the result of a group for a handler that runs again; gives it back if nothing has to come before it.
    pub(super) fn keep_result(
        &mut self,
        fan: FanId,
        task: InvocationId,
        order: Number,
        result: Result<Vec<Settled>, Fault>,
    ) -> Option<Result<Vec<Settled>, Fault>> {
        let Some(call) = fan.call else { return Some(result) };
        let replay = match self.tasks.get_mut(task) {
            Some(task) => task.log.as_mut().map(|log| &mut log.replay),
            None => self.replays.get_mut(&fan.message),
        };
        let Some(replay) = replay else { return Some(result) };
        match replay.calls.get_mut(&call) {
            Some(made) => made.state = MadeState::Decided(result),
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

    /// Whether the handlers of a thread reattach.
    pub(super) fn reattaches(&self, key: ThreadKey) -> bool {
        let listener = self.threads.get(key).and_then(|thread| thread.listener());
        listener.is_some_and(|listener| self.blueprint.contract(listener).reattaches)
    }

    /// What came of a group need not be known any longer.
    pub(super) fn forget_call(&mut self, task: InvocationId, call: CallId) {
        let Some(task) = self.tasks.get_mut(task) else { return };
        let fan = task.fan_id(call);
        let Some(replay) = task.log.as_mut().map(|log| &mut log.replay).filter(|replay| replay.reattaches) else {
            return;
        };
        let fan = replay.found.remove(&call).unwrap_or(fan);
        self.log(|_| Op::Forgotten { fan });
    }

    /// Handlers ask on Queue 1, so what they say of that stands behind it there.
    pub(super) fn reattached_later(&mut self, task: InvocationId) {
        if self.tasks.get(task).is_some_and(|task| task.thread.is_some()) {
            self.queue.push_back(Item::Reattached(task));
        }
    }

    /// The handler wants none of the groups that it has not found again.
    pub(super) fn reattached(&mut self, task: InvocationId) {
        let Some(log) = self.tasks.get_mut(task).and_then(|task| task.log.as_mut()) else { return };
        if !log.replay.reattaches {
            return;
        }
        let message = log.number;
        let mut left: Vec<_> = log.replay.calls.drain().collect();
        left.sort_unstable_by_key(|(call, _)| *call);
        for (call, made) in left {
            match made.state {
                MadeState::Open(fan) => self.drop_fan(fan),
                MadeState::Decided(_) | MadeState::Dropped => {
                    self.log(|_| Op::Forgotten { fan: FanId { message, call: Some(call) } });
                }
            }
        }
    }

    /// Hands over the results that are next in the order of decisions.
    pub(super) fn hand_over(&mut self, id: InvocationId) {
        loop {
            let Some(task) = self.tasks.get_mut(id) else { return };
            let Some(log) = &mut task.log else { return };
            let Some((&order, &call)) = log.replay.decided.first_key_value() else { return };
            let Some(result) = log.replay.results.remove(&call) else { return };
            log.replay.decided.remove(&order);
            log.replay.repeated.retain(|other| *other != call);
            self.call_ready(id, call, result);
        }
    }

    /// A handler waits. If it waits for a result that came, before, after one that it has not asked for, it does
    /// not do what it did.
    pub(super) fn check_replay(&mut self, id: InvocationId) {
        let Some(task) = self.tasks.get(id) else { return };
        let Some(log) = &task.log else { return };
        if task.is_running() || !task.ready.is_empty() || task.is_asking() {
            return;
        }
        let Some(&next) = log.replay.decided.values().next() else { return };
        if let Some(made) = log.replay.calls.get(&next.0) {
            let before = describe(&made.requests);
            self.diverge(id, &before, "nothing: it waits for others");
        }
    }

    fn diverge(&mut self, task: InvocationId, before: &str, now: &str) {
        if let Some(thread) = self.tasks.get(task).and_then(|task| task.thread) {
            self.fail_shown(thread, faults::diverged(before, now));
        }
    }
}

impl Replay {
    /// From now on groups are found by what they asked.
    pub(super) fn reattach(&mut self) {
        self.reattaches = true;
        self.before = self.calls.keys().max().map_or(0, |last| last + 1);
        self.decided.clear();
    }

    /// The group that was made before, if this is it.
    fn take(&mut self, message: Number, call: CallId, asked: &[Request]) -> Option<(FanId, Made)> {
        let call = match self.reattaches {
            true => *self.calls.iter().filter(|(_, made)| made.is(asked)).map(|(call, _)| call).min()?,
            false => call.0,
        };
        Some((FanId { message, call: Some(call) }, self.calls.remove(&call)?))
    }

    /// The handler gives up a group that it asked for again; `false` if that is none.
    pub(super) fn gives_up(&mut self, call: CallId) -> bool {
        let Some(at) = self.repeated.iter().position(|other| *other == call) else { return false };
        self.repeated.remove(at);
        self.results.remove(&call);
        self.decided.retain(|_, other| *other != call);
        true
    }
}

impl Invocation {
    /// Whether it asked for all that it had asked for before.
    pub(super) fn repeats_all(&self) -> bool {
        self.log.as_ref().is_none_or(|log| log.replay.reattaches || log.replay.calls.is_empty())
    }

    /// The fault of a handler that ended without asking for all that it had asked for before.
    pub(super) fn unrepeated(&self) -> Fault {
        let calls = self.log.iter().flat_map(|log| &log.replay.calls);
        let first = calls.min_by_key(|(call, _)| **call).map(|(_, made)| describe(&made.requests));
        faults::diverged(&first.unwrap_or_default(), "nothing: it ended")
    }
}

/// What was asked, in words.
fn describe(requests: &[Request]) -> String {
    let one = |request: &Request| match (&request.to, &request.thread) {
        (Some(to), _) => format!("{} to '{to}'", request.text),
        (None, Some(thread)) => format!("{} on {thread}", request.text),
        (None, None) => request.text.clone(),
    };
    requests.iter().map(one).collect::<Vec<_>>().join(", ")
}
