//! Fan-outs: the calls of one response, or of one group of awaited calls, and their answers.

use super::Tree;
use crate::core::clock::{Timer, TimerId};
use crate::core::conversation::AwaitedAnswers;
use crate::core::io::{Answer, Body, CallId, Join, JoinPosition, Settled};
use crate::core::key::{FanOutKey, InvocationId, ThreadKey};
use crate::core::outcomes::{GroupResult, Outcomes};
use crate::core::queued::{ReplyTo, Sender};
use crate::core::records::{result_record, settled_record};
use crate::core::setup::StepContext;
use crate::journal::{CallRecord, FanId, Number, Op};
use crate::vocab::{Fault, FaultCode, MessageId, Time};

/// The calls that were made together. Every index gets exactly one answer, fault or count-off.
#[derive(Debug)]
pub(in crate::core) struct FanOut {
    /// The name of the fan-out in the journal.
    pub id: FanId,
    pub owner: ThreadKey,
    /// The message whose handler made the calls.
    pub source: MessageId,
    pub total: u32,
    pub kind: FanOutKind,
}

/// The destination of the answers.
#[derive(Debug)]
pub(in crate::core) enum FanOutKind {
    /// The mailbox of the owner, one by one.
    Mailbox { delivered: u32, counted_off: u32 },
    /// A handler that waits.
    Awaited {
        invocation: InvocationId,
        call: CallId,
        join: Join,
        outcomes: Outcomes,
        held: AwaitedAnswers,
        /// The timer of the deadline.
        expires: Option<TimerId>,
    },
}

/// A group of awaited calls that has its result.
pub(in crate::core) struct Decided {
    pub id: FanId,
    pub invocation: InvocationId,
    pub call: CallId,
    /// The place of the group in the order of decisions.
    pub order: Number,
    pub result: GroupResult,
}

/// The effect of a call that ends without an answer and without a fault.
pub(in crate::core) enum CountedOff {
    /// An awaited call, which has that outcome.
    Awaited(Fault),
    /// The last of so many calls of a message.
    Over { total: u32, source: MessageId },
    /// Others are still open.
    Open,
}

impl Tree {
    /// Opens a fan-out. `until`: the deadline of awaited calls.
    pub(in crate::core) fn open_fan_out(
        &mut self,
        fan_out: FanOut,
        until: Option<Time>,
        call: impl FnOnce() -> Option<CallRecord>,
        step: &mut StepContext,
    ) -> FanOutKey {
        let key = self.link_fan_out(fan_out, until, step);
        self.write_fan_out(key, call, step);
        key
    }

    /// Puts a fan-out where it belongs, whether it is new or comes out of the journal.
    pub(in crate::core) fn link_fan_out(
        &mut self,
        fan_out: FanOut,
        until: Option<Time>,
        step: &mut StepContext,
    ) -> FanOutKey {
        let owner = fan_out.owner;
        let key = self.fan_outs.insert(fan_out);
        self.threads[owner].extra.get_or_insert_default().fans.push(key);
        if let (Some(until), FanOutKind::Awaited { expires, .. }) = (until, &mut self.fan_outs[key].kind) {
            *expires = Some(step.clock.set(until, Timer::Calls(key)));
        }
        key
    }

    /// The place of an answer that goes to the handler of its thread now, and how much of its fan-out is consumed with it. The
    /// fan-out is over with the last one. The answer belongs to the round of the thread.
    pub(in crate::core) fn deliver(
        &mut self,
        thread: ThreadKey,
        answers: ReplyTo,
        from: Sender,
        body: &Body,
    ) -> (Option<JoinPosition>, Option<(FanId, u32)>) {
        let (key, index) = match answers {
            ReplyTo::None => return (None, None),
            ReplyTo::Single => {
                self.note_answer(thread, 0, from, body);
                return (Some(JoinPosition { index: 0, total: 1, remaining: 0 }), None);
            }
            ReplyTo::Fan { fan, index } => (fan, index),
        };
        let Some(fan) = self.fan_outs.get_mut(key) else { return (None, None) };
        let (id, total) = (fan.id, fan.total);
        let FanOutKind::Mailbox { delivered, counted_off } = &mut fan.kind else { return (None, None) };
        *delivered += 1;
        let count = *delivered;
        let remaining = total.saturating_sub(*delivered + *counted_off);
        if remaining == 0 {
            self.unlink_fan_out(key);
        }
        self.note_answer(thread, index, from, body);
        (Some(JoinPosition { index, total, remaining }), Some((id, count)))
    }

    /// A call ends without an answer and without a fault.
    pub(in crate::core) fn count_off(&mut self, key: FanOutKey, step: &mut StepContext) -> CountedOff {
        let Some(fan) = self.fan_outs.get_mut(key) else { return CountedOff::Open };
        let (id, total, source) = (fan.id, fan.total, fan.source);
        match &mut fan.kind {
            FanOutKind::Awaited { .. } => {
                CountedOff::Awaited(Fault::new(FaultCode::Silent, "a listener ended without an answer"))
            }
            FanOutKind::Mailbox { delivered, counted_off } => {
                *counted_off += 1;
                let (count, over) = (*counted_off, *delivered + *counted_off == total);
                step.out.write(|| Op::CountedOff { fan: id, count });
                if !over {
                    return CountedOff::Open;
                }
                self.unlink_fan_out(key);
                CountedOff::Over { total, source }
            }
        }
    }

    /// Keeps the outcome of one awaited call. The result of the group, if that decides it.
    pub(in crate::core) fn settle_call(
        &mut self,
        key: FanOutKey,
        index: u32,
        outcome: Result<Answer, Fault>,
        step: &mut StepContext,
    ) -> Option<Decided> {
        let fan = self.fan_outs.get_mut(key)?;
        let id = fan.id;
        let FanOutKind::Awaited { outcomes, held, .. } = &mut fan.kind else { return None };
        let outcome = outcomes.settle(index, outcome)?;
        held.add_outcome(outcome);
        let is_fault = outcome.is_err();
        let kept = step.out.writes().then(|| Settled { index, outcome: outcome.clone() });
        let write = |step: &mut StepContext| {
            if let Some(settled) = kept {
                step.out.write(|| Op::Settled { fan: id, settled: settled_record(&settled) });
            }
        };
        // A reply that decides is written with the decision; a fault that does need not be in its result.
        if is_fault {
            write(step);
            return self.decide(key, step);
        }
        let decided = self.decide(key, step);
        if decided.is_none() {
            write(step);
        }
        decided
    }

    /// The result of a group of awaited calls, if it is fixed.
    pub(in crate::core) fn decide(&mut self, key: FanOutKey, step: &mut StepContext) -> Option<Decided> {
        let fan = self.fan_outs.get_mut(key)?;
        let FanOutKind::Awaited { invocation, call, join, outcomes, .. } = &mut fan.kind else { return None };
        let result = outcomes.decide(*join)?;
        let order = if step.out.writes() { step.out.next_number() } else { 0 };
        step.out.write(|| Op::Decided { fan: fan.id, order, result: result_record(&result) });
        Some(Decided { id: fan.id, invocation: *invocation, call: *call, order, result })
    }

    /// Removes a fan-out with its timer; its owner, if that is open.
    pub(in crate::core) fn remove_fan_out(&mut self, key: FanOutKey, step: &mut StepContext) -> Option<ThreadKey> {
        let FanOut { owner, kind, .. } = self.unlink_fan_out(key)?;
        if let FanOutKind::Awaited { expires: Some(timer), .. } = kind {
            step.clock.cancel(timer);
        }
        self.threads.contains_key(owner).then_some(owner)
    }

    fn unlink_fan_out(&mut self, key: FanOutKey) -> Option<FanOut> {
        let fan_out = self.fan_outs.remove(key)?;
        if let Some(extra) = self.threads.get_mut(fan_out.owner).and_then(|thread| thread.extra.as_mut()) {
            extra.fans.retain(|&other| other != key);
        }
        Some(fan_out)
    }
}
