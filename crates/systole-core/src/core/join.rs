//! Fan-outs: the calls of one response, or of one group of awaited calls, and their answers.

use super::conversation::Pile;
use super::faults;
use super::io::{Answer, CallId, Join, JoinPosition, Settled};
use super::key::{FanKey, TaskId, ThreadKey};
use super::log::{result_record, settled_record};
use super::machine::Core;
use super::outcomes::Outcomes;
use super::thread::{Content, Origin, Queued, Sender};
use super::timer::{Timer, TimerId};
use crate::journal::{FanId, Op};
use crate::protocol;
use crate::vocab::{Fault, FaultCode, MessageId, Time};

/// The calls that were made together. Every index gets exactly one answer, fault or count-off.
#[derive(Debug)]
pub(super) struct Fan {
    /// Its name in the journal.
    pub id: FanId,
    pub owner: ThreadKey,
    /// The message whose handler made the calls.
    pub source: MessageId,
    pub total: u32,
    pub kind: FanKind,
}

/// Where the answers go.
#[derive(Debug)]
pub(super) enum FanKind {
    /// To the mailbox, one by one.
    Mailbox { delivered: u32, counted_off: u32 },
    /// To a handler that waits.
    Awaited {
        task: TaskId,
        call: CallId,
        join: Join,
        outcomes: Outcomes,
        held: Pile,
        /// When the waiting ends at the latest.
        expires: Option<TimerId>,
    },
}

impl Core {
    pub(super) fn open_fan(&mut self, fan: Fan) -> FanKey {
        let owner = fan.owner;
        let key = self.fans.insert(fan);
        self.threads[owner].extra().fans.push(key);
        key
    }

    /// The answer of `index` goes to its handler now; the fan is over with the last one.
    pub(super) fn deliver_index(&mut self, key: FanKey, index: u32) -> Option<(JoinPosition, FanId, u32)> {
        let fan = self.fans.get_mut(key)?;
        let (id, total) = (fan.id, fan.total);
        let FanKind::Mailbox { delivered, counted_off } = &mut fan.kind else { return None };
        *delivered += 1;
        let count = *delivered;
        let remaining = total.saturating_sub(*delivered + *counted_off);
        if remaining == 0 {
            self.remove_fan(key);
        }
        Some((JoinPosition { index, total, remaining }, id, count))
    }

    /// A call ends without an answer and without a fault.
    pub(super) fn count_off(&mut self, owner: ThreadKey, origin: Origin, opened_by: MessageId) {
        let Origin::Fan { fan: key, index } = origin else {
            if origin == Origin::Single {
                self.fan_out_ended(owner, 1, opened_by);
            }
            return;
        };
        let Some(fan) = self.fans.get_mut(key) else { return };
        let (id, total, source) = (fan.id, fan.total, fan.source);
        match &mut fan.kind {
            FanKind::Awaited { .. } => {
                let silent = Fault::new(FaultCode::Silent, "a listener ended without an answer");
                self.settle_call(key, index, Err(silent));
            }
            FanKind::Mailbox { delivered, counted_off } => {
                *counted_off += 1;
                let (count, over) = (*counted_off, *delivered + *counted_off == total);
                self.log(|_| Op::CountedOff { fan: id, count });
                if over {
                    self.remove_fan(key);
                    self.fan_out_ended(owner, total, source);
                }
            }
        }
    }

    /// Tells a listener that asked for it that no further answer comes.
    fn fan_out_ended(&mut self, owner: ThreadKey, total: u32, source: MessageId) {
        let Some(listener) = self.threads[owner].listener() else { return };
        if !self.blueprint.contract(listener).returns.contains(&protocol::fan_out_ended_qname()) {
            return;
        }
        let (id, _) = self.key.derive(source, protocol_index::FAN_OUT_ENDED);
        self.counts.made += 1;
        match self.own_payload(listener, protocol::write_fan_out_ended(total)) {
            Ok(body) => {
                let permit = self.gauge.count(0);
                let share = self.share(owner, permit);
                self.enqueue(owner, Queued::new(id, Sender::Core, Content::Body(body), share));
            }
            Err(fault) => self.fault_to(owner, Origin::None, id, None, fault),
        }
    }

    /// The outcome of one awaited call is there; maybe it decides the group.
    pub(super) fn settle_call(&mut self, key: FanKey, index: u32, outcome: Result<Answer, Fault>) {
        let durable = self.logs();
        let Some(fan) = self.fans.get_mut(key) else { return };
        let id = fan.id;
        let FanKind::Awaited { outcomes, held, .. } = &mut fan.kind else { return };
        let Some(outcome) = outcomes.settle(index, outcome) else { return };
        held.add_outcome(outcome);
        let kept = durable.then(|| Settled { index, outcome: outcome.clone() });
        let is_fault = outcome.is_err();
        // A reply that decides is written with the decision; a fault that does need not be in its result.
        if is_fault {
            self.log_settled(id, kept.as_ref());
        }
        if !self.decide(key) && !is_fault {
            self.log_settled(id, kept.as_ref());
        }
    }

    fn log_settled(&mut self, fan: FanId, settled: Option<&Settled>) {
        if let Some(settled) = settled {
            self.log(|_| Op::Settled { fan, settled: settled_record(settled) });
        }
    }

    /// Ends a group of awaited calls if its outcome is fixed; the losers are cancelled. Whether it is.
    pub(super) fn decide(&mut self, key: FanKey) -> bool {
        let Some(fan) = self.fans.get_mut(key) else { return false };
        let FanKind::Awaited { task, call, join, outcomes, .. } = &mut fan.kind else { return false };
        let Some(result) = outcomes.decide(*join) else { return false };
        let (id, task, call) = (fan.id, *task, *call);
        let order = if self.logs() { self.next_number() } else { 0 };
        self.log(|_| Op::Decided { fan: id, order, result: result_record(&result) });
        self.survived(task);
        self.abandon_fan(key);
        if let Some(result) = self.keep_result(id, task, order, result) {
            self.call_ready(task, call, result);
        } else {
            self.hand_over(task);
        }
        true
    }

    /// Ends the waiting for a group of calls at a moment, if there is one.
    pub(super) fn expire_at(&mut self, key: FanKey, until: Option<Time>) {
        if let (Some(until), Some(Fan { kind: FanKind::Awaited { expires, .. }, .. })) = (until, self.fans.get_mut(key))
        {
            *expires = Some(self.timers.set(until, Timer::Calls(key)));
        }
    }

    /// A group of awaited calls has had its time: those without an outcome are faults.
    pub(super) fn expire_calls(&mut self, key: FanKey) {
        let Some(Fan { kind: FanKind::Awaited { expires, .. }, total, .. }) = self.fans.get_mut(key) else { return };
        *expires = None;
        for index in 0..*total {
            self.settle_call(key, index, Err(faults::unanswered()));
        }
    }

    /// A handler gave a group of calls up.
    pub(super) fn drop_fan(&mut self, key: FanKey) {
        if let Some(fan) = self.fans.get(key) {
            let (fan, reattaches) = (fan.id, self.reattaches(fan.owner));
            self.log(|_| if reattaches { Op::Forgotten { fan } } else { Op::Dropped { fan } });
        }
        self.abandon_fan(key);
    }

    /// Forgets a group of calls and cancels those that are still open.
    pub(super) fn abandon_fan(&mut self, key: FanKey) {
        let Some(fan) = self.fans.get(key) else { return };
        let owner = fan.owner;
        self.remove_fan(key);
        if self.threads.contains_key(owner) {
            self.cancel_calls(owner, key);
        }
    }

    /// Takes a fan-out away, with its timer.
    pub(super) fn discard_fan(&mut self, key: FanKey) -> Option<Fan> {
        let fan = self.fans.remove(key)?;
        if let FanKind::Awaited { expires: Some(timer), .. } = fan.kind {
            self.timers.cancel(timer);
        }
        Some(fan)
    }

    fn remove_fan(&mut self, key: FanKey) {
        let Some(fan) = self.discard_fan(key) else { return };
        if let Some(extra) = self.threads.get_mut(fan.owner).and_then(|thread| thread.extra.as_mut()) {
            extra.fans.retain(|&other| other != key);
        }
    }
}

/// Indices of the pump's own messages among those derived from one message; emissions count from 0.
pub(super) mod protocol_index {
    pub(in crate::core) const FAULT: u64 = 1 << 62;
    pub(in crate::core) const FAN_OUT_ENDED: u64 = 2 << 62;
    pub(in crate::core) const ANSWER: u64 = 3 << 62;
}

impl Pile {
    /// Counts the outcome of an awaited call.
    pub(super) fn add_outcome(&mut self, outcome: &Result<Answer, Fault>) {
        self.add(match outcome {
            Ok(answer) => answer.payload.payload().bytes().len(),
            Err(fault) => fault.message.len(),
        });
    }

    /// Counts the result of a group.
    pub(super) fn add_result(&mut self, result: &Result<Vec<Settled>, Fault>) {
        match result {
            Ok(settled) => settled.iter().for_each(|settled| self.add_outcome(&settled.outcome)),
            Err(fault) => self.add(fault.message.len()),
        }
    }
}
