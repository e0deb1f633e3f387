//! Handlers that run again after a crash: the core hands them the same results as before, in the same order.
//!
//! A handler of a recovered message starts from the beginning. A group of calls that it makes is not made again where
//! the journal has it: its result is handed over in the order in which results were decided, so that whatever the
//! handler did with them it does again; one that is still open is attached to the children that it has. A handler that
//! asks for something else than before fails with both sides shown: it is not deterministic, and what it asked then
//! has had its effect.
//!
//! A handler that reattaches goes on from what it keeps elsewhere, and is not held to an order: it finds a group that
//! it made before by what it asked, and says when it wants none of the others, and which result it need not have again.

use crate::core::setup::StepContext;
use std::collections::{BTreeMap, HashMap};

use super::{GroupResult, Holdings, InvocationRecord, Invocations};
use crate::core::contract::OnRestart;
use crate::core::faults;
use crate::core::io::{CallId, Emission};
use crate::core::key::{FanOutKey, InvocationId};
use crate::core::records::requests_record;
use crate::journal::{FanId, NoteRecord, Number, Op, RequestRecord, Seen, epoch_of};
use crate::vocab::Fault;

/// The past of a handler, as far as it has not repeated it.
#[derive(Debug, Default)]
pub(in crate::core) struct Replay {
    /// The groups of calls that it made, and has not asked for again.
    pub calls: HashMap<u32, Made>,
    /// The groups that were decided, in that order, as far as their results were not handed over.
    pub decided: BTreeMap<Number, CallId>,
    /// The notes of the handler.
    pub notes: Vec<NoteRecord>,
    /// The message in the context: the handler had not seen later entries when it began.
    pub remembered: Option<Seen>,
    /// The number as which it first began, where that is written.
    pub began: Option<Number>,
    /// Indices that its calls took.
    pub emitted: u64,
    /// Results that were asked for again, and wait for those before them.
    results: HashMap<CallId, GroupResult>,
    /// Groups that were asked for again: their results wait for those before them, or never come.
    pub(super) repeated: Vec<CallId>,
    /// The handler finds groups by their requests, in any order.
    reattaches: bool,
    /// The numbers below are those of groups that were made before it was run again.
    pub(super) before: u32,
    /// The groups made before that it found again.
    found: HashMap<CallId, FanId>,
}

/// A group of calls that a handler made before.
#[derive(Debug)]
pub(in crate::core) struct Made {
    pub requests: Vec<RequestRecord>,
    pub state: MadeState,
}

/// The state of a group of calls that a handler made before.
#[derive(Debug)]
pub(in crate::core) enum MadeState {
    Open(FanOutKey),
    Decided(GroupResult),
    /// The handler gave it up, and will again.
    Dropped,
}

/// A group of calls that a handler asks for again.
pub(in crate::core) enum Repeated {
    /// The group differs from the earlier one.
    Diverged(Fault),
    /// The fan-out of the group is open.
    Open(FanOutKey),
    /// The result is handed over at once.
    Decided(GroupResult),
    /// The result waits for those before it, or never comes.
    Waits,
}

impl Invocations {
    /// The past of the handler of a recovered message.
    pub(in crate::core) fn recall(&mut self, message: Number) -> &mut Replay {
        self.replays.entry(message).or_default()
    }

    /// Returns the number as which the handler of a recovered message first began, where that is written.
    pub(in crate::core) fn began(&self, message: Number) -> Option<Number> {
        self.replays.get(&message)?.began
    }

    /// Forgets the calls of a recovered message, but not the notes: its open fan-outs, in the order of the calls.
    pub(in crate::core) fn forget_calls(&mut self, message: Number) -> Vec<FanOutKey> {
        let Some(replay) = self.replays.get_mut(&message) else { return Vec::new() };
        replay.count_calls();
        replay.decided.clear();
        let mut calls: Vec<_> = replay.calls.drain().collect();
        calls.sort_unstable_by_key(|(call, _)| *call);
        let open = |(_, made): (u32, Made)| match made.state {
            MadeState::Open(fan) => Some(fan),
            MadeState::Decided(_) | MadeState::Dropped => None,
        };
        calls.into_iter().filter_map(open).collect()
    }

    /// Gives a handler the records of its message. Returns its earlier notes, and the open fan-outs that it has from
    /// now on.
    pub(in crate::core) fn attach_record(
        &mut self,
        id: InvocationId,
        number: Number,
        (lost, attempts): (u8, u8),
        answered: Option<(FanId, u32)>,
        step: &mut StepContext,
    ) -> (Vec<NoteRecord>, Vec<FanOutKey>) {
        let Some(invocation) = self.invocations.get_mut(id).filter(|_| number != 0) else { return Default::default() };
        let mut replay = self.replays.remove(&number).unwrap_or_default();
        let on_restart = self.setup.blueprint.contract(invocation.listener).on_restart;
        if on_restart == OnRestart::Reattach {
            replay.reattach();
        }
        invocation.emitted = replay.emitted;
        // A run that need not repeat the one before, whose calls may be forgotten, has ids of its own.
        let run = step.out.next_number();
        if on_restart != OnRestart::Replay && epoch_of(number) != epoch_of(run) {
            (invocation.seed, _) = self.setup.key.derive(invocation.message, run);
        }
        let notes = std::mem::take(&mut replay.notes);
        let open = replay.calls.values().filter_map(|made| match made.state {
            MadeState::Open(fan) => Some(fan),
            MadeState::Decided(_) | MadeState::Dropped => None,
        });
        let open = open.collect();
        invocation.record =
            Some(Box::new(InvocationRecord { number, attempts, lost, answered, replay, attachment: None, said: None }));
        (notes, open)
    }

    /// Takes a group of calls that a handler of an open thread made before; `None` if it is a new one. With it, whether
    /// the handler still wants it.
    pub(in crate::core) fn repeat(
        &mut self,
        id: InvocationId,
        call: CallId,
        requests: &[Emission],
    ) -> Option<(Repeated, bool)> {
        let invocation = self.invocations.get_mut(id).filter(|invocation| invocation.thread.is_some())?;
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
            MadeState::Open(fan) => {
                invocation.calls.push((call, fan));
                Repeated::Open(fan)
            }
            MadeState::Decided(result) if record.replay.reattaches => Repeated::Decided(result),
            MadeState::Decided(result) => {
                record.replay.results.insert(call, result);
                record.replay.repeated.push(call);
                Repeated::Waits
            }
            MadeState::Dropped => {
                record.replay.repeated.push(call);
                Repeated::Waits
            }
        };
        Some((repeated, asked_at.is_some()))
    }

    /// Keeps the result of a group for a handler that runs again; gives it back if nothing has to come before it.
    pub(in crate::core) fn keep_result(
        &mut self,
        fan: FanId,
        id: InvocationId,
        order: Number,
        result: GroupResult,
    ) -> Option<GroupResult> {
        let Some(call) = fan.call else { return Some(result) };
        let replay = match self.invocations.get_mut(id) {
            Some(invocation) => invocation.record.as_mut().map(|record| &mut record.replay),
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

    /// Takes the result that is next in the order of decisions, if the handler has asked for it.
    pub(in crate::core) fn next_result(&mut self, id: InvocationId) -> Option<(CallId, GroupResult)> {
        let replay = &mut self.invocations.get_mut(id)?.record.as_mut()?.replay;
        let (&order, &call) = replay.decided.first_key_value()?;
        let result = replay.results.remove(&call)?;
        replay.decided.remove(&order);
        replay.repeated.retain(|other| *other != call);
        Some((call, result))
    }

    /// The result of a group need not be known any longer.
    pub(in crate::core) fn forget_call(&mut self, id: InvocationId, call: CallId, step: &mut StepContext) {
        let Some(invocation) = self.invocations.get_mut(id) else { return };
        let fan = invocation.fan_id(call);
        let Some(replay) =
            invocation.record.as_mut().map(|record| &mut record.replay).filter(|replay| replay.reattaches)
        else {
            return;
        };
        let fan = replay.found.remove(&call).unwrap_or(fan);
        step.out.write(|| Op::Forgotten { fan });
    }

    /// The groups that a handler which reattaches has not found again, in the order of the calls, with their fan-outs
    /// where they are open: it wants none of them.
    pub(in crate::core) fn unwanted(&mut self, id: InvocationId) -> Vec<(FanId, Option<FanOutKey>)> {
        let record = self.invocations.get_mut(id).and_then(|invocation| invocation.record.as_mut());
        let Some(record) = record.filter(|record| record.replay.reattaches) else { return Vec::new() };
        let message = record.number;
        let group = |(call, made): (u32, Made)| match made.state {
            MadeState::Open(fan) => (FanId { message, call: Some(call) }, Some(fan)),
            MadeState::Decided(_) | MadeState::Dropped => (FanId { message, call: Some(call) }, None),
        };
        let mut left: Vec<_> = record.replay.calls.drain().map(group).collect();
        left.sort_unstable_by_key(|(fan, _)| fan.call);
        left
    }

    /// The fault of a handler that waits for a result which came, before, after one that it has not asked for.
    pub(in crate::core) fn divergence(&self, id: InvocationId) -> Option<Fault> {
        let invocation = self.invocations.get(id)?;
        let record = invocation.record.as_ref()?;
        if invocation.is_running() || invocation.is_ready() || !invocation.asked.is_empty() {
            return None;
        }
        let next = record.replay.decided.values().next()?;
        let made = record.replay.calls.get(&next.0)?;
        Some(faults::diverged(&describe(&made.requests), "nothing: it waits for others"))
    }
}

impl Replay {
    /// Finds groups by their requests from now on.
    fn reattach(&mut self) {
        self.reattaches = true;
        self.count_calls();
        self.decided.clear();
    }

    /// Gives groups that are made from now on numbers behind those of the groups that were made before.
    fn count_calls(&mut self) {
        self.before = self.calls.keys().max().map_or(self.before, |last| last + 1);
    }

    /// The group that was made before, if this is it.
    fn take(&mut self, message: Number, call: CallId, asked: &[RequestRecord]) -> Option<(FanId, Made)> {
        let same = |made: &Made| made.requests == asked && !matches!(made.state, MadeState::Dropped);
        let call = match self.reattaches {
            true => *self.calls.iter().filter(|(_, made)| same(made)).map(|(call, _)| call).min()?,
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

impl Holdings {
    /// Returns whether the handler asked for all that it had asked for before.
    pub(in crate::core) fn repeats_all(&self) -> bool {
        self.record.as_ref().is_none_or(|record| record.replay.reattaches || record.replay.calls.is_empty())
    }

    /// The fault of a handler that ended without asking for all that it had asked for before.
    pub(in crate::core) fn unrepeated(&self) -> Fault {
        let calls = self.record.iter().flat_map(|record| &record.replay.calls);
        let first = calls.min_by_key(|(call, _)| **call).map(|(_, made)| describe(&made.requests));
        faults::diverged(&first.unwrap_or_default(), "nothing: it ended")
    }
}

/// The requests of a group, in words.
fn describe(requests: &[RequestRecord]) -> String {
    let one = |request: &RequestRecord| match (&request.to, &request.thread) {
        (Some(to), _) => format!("{} to '{to}'", request.text),
        (None, Some(thread)) => format!("{} on {thread}", request.text),
        (None, None) => request.text.clone(),
    };
    requests.iter().map(one).collect::<Vec<_>>().join(", ")
}
