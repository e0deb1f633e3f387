//! What handlers say, taken from Queue 1: responses and awaited calls.

use super::answer::Reply;
use super::blueprint::ListenerId;
use super::event::EventKind;
use super::faults;
use super::io::{CallId, Emission, EmissionKind, Join, Outcome};
use super::join::FanKind;
use super::judge::{Refusal, Verdict};
use super::key::{TaskId, ThreadKey};
use super::machine::{Core, Item};
use super::thread::{Origin, Sender};
use crate::vocab::MessageId;

/// What a handler ended with.
pub(super) struct Response {
    pub thread: ThreadKey,
    /// The call that the thread owed an answer to.
    pub answers: MessageId,
    /// The message that was handled.
    pub message: MessageId,
    /// The index of the first emission: awaited calls went before.
    pub index: u64,
    pub outcome: Outcome,
}

/// What a handler waits for.
pub(super) struct Calls {
    pub thread: ThreadKey,
    pub task: TaskId,
    pub call: CallId,
    pub requests: Vec<Emission>,
    pub join: Join,
}

impl Response {
    /// Payloads in it, as far as that is known before it is parsed.
    pub(super) fn len(&self) -> usize {
        match &self.outcome {
            Outcome::Emitted(emissions) => emissions.len(),
            _ => 1,
        }
    }
}

impl Core {
    pub(super) fn called(&mut self, task: TaskId, call: CallId, requests: Vec<Emission>, join: Join) {
        let thread = self.tasks.get(task).and_then(|task| task.thread);
        let Some(thread) = thread.filter(|&thread| self.threads.contains_key(thread)) else {
            self.counts.emitted += requests.len() as u64;
            self.counts.cancelled += requests.len() as u64;
            return;
        };
        self.threads[thread].judging += 1;
        if let Some(task) = self.tasks.get_mut(task) {
            task.asked.push(call);
        }
        self.queue.push_back(Item::Calls(Calls { thread, task, call, requests, join }));
    }

    /// Judges a response as a whole, then lets it take effect.
    pub(super) fn respond(&mut self, response: Response) {
        let key = response.thread;
        let emissions = response.len() as u64;
        let Some(thread) = self.threads.get_mut(key) else {
            self.counts.emitted += emissions;
            self.counts.cancelled += emissions;
            return;
        };
        thread.judging -= 1;
        // A spawned thread goes on after its answer, but what was said before it is over.
        let is_late = thread.opened_by != response.answers || thread.is_spawned() && thread.origin == Origin::None;
        let Some(listener) = thread.listener().filter(|_| !is_late) else {
            self.counts.emitted += emissions;
            self.counts.cancelled += emissions;
            return self.settle(key);
        };
        match self.read(key, listener, response.outcome) {
            Ok(emissions) => self.judge_response(key, listener, response.message, response.index, emissions),
            Err(fault) => {
                self.counts.emitted += 1;
                self.counts.faulted += 1;
                self.event(key, || EventKind::Faulted { fault: fault.clone(), denied: false });
                let (about, _) = self.key.derive(response.message, response.index);
                self.fault_to(key, Origin::None, about, None, fault);
                self.note_mistake(key);
            }
        }
        self.settle(key);
    }

    /// Places a group of awaited calls.
    pub(super) fn place_calls(&mut self, calls: Calls) {
        let Calls { thread: key, task, call, requests, join } = calls;
        self.counts.emitted += requests.len() as u64;
        let place = self.threads.get_mut(key).and_then(|thread| {
            thread.judging -= 1;
            thread.listener()
        });
        let asked = self.tasks.get_mut(task).and_then(|task| {
            let at = task.asked.iter().position(|&asked| asked == call)?;
            task.asked.swap_remove(at);
            Some((task.message, task.emitted))
        });
        let Some((listener, (message, index))) = place.zip(asked) else {
            self.counts.cancelled += requests.len() as u64;
            return self.settle(key);
        };
        if !self.blueprint.contract(listener).can_park {
            self.counts.faulted += requests.len() as u64;
            return self.call_ready(task, call, Err(faults::cannot_park()));
        }
        let requests = requests.into_iter().map(|request| Emission { kind: EmissionKind::Call, ..request });
        let verdicts: Vec<_> = requests.map(|request| self.judge(key, listener, request)).collect();
        let total = verdicts.iter().map(Verdict::width).sum::<usize>();
        if total > self.blueprint.limits.fanout {
            self.counts.faulted += verdicts.len() as u64;
            return self.call_ready(task, call, Err(faults::too_many(total, &self.blueprint)));
        }
        let outcomes = vec![None; total];
        let fan = self.open_fan(key, total as u32, FanKind::Awaited { task, call, join, outcomes });
        if let Some(waiting) = self.tasks.get_mut(task) {
            waiting.emitted += total as u64;
            waiting.calls.push((call, fan));
        }
        self.take_effect(key, listener, message, index, Some(fan), verdicts);
        self.decide(fan);
    }

    fn judge_response(
        &mut self,
        key: ThreadKey,
        listener: ListenerId,
        message: MessageId,
        index: u64,
        emissions: Vec<Emission>,
    ) {
        if emissions.is_empty() {
            return;
        }
        self.counts.emitted += emissions.len() as u64;
        let verdicts = self.judge_all(key, listener, emissions);
        if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Reply(_))) {
            return self.answer_with(key, listener, message, index, verdicts);
        }
        let total = verdicts.iter().map(Verdict::width).sum::<usize>();
        if total.max(verdicts.len()) > self.blueprint.limits.fanout {
            self.counts.faulted += verdicts.len() as u64;
            let (about, _) = self.key.derive(message, index);
            let fault = faults::too_many(total.max(verdicts.len()), &self.blueprint);
            self.event(key, || EventKind::Faulted { fault: fault.clone(), denied: false });
            self.fault_to(key, Origin::None, about, None, fault);
            return self.note_mistake(key);
        }
        let fan = (total > 1).then(|| {
            let kind = FanKind::Mailbox { source: message, delivered: 0, counted_off: 0 };
            self.open_fan(key, total as u32, kind)
        });
        if !self.take_effect(key, listener, message, index, fan, verdicts) {
            self.note_mistake(key);
        } else if let Some(thread) = self.threads.get_mut(key) {
            thread.invalid = 0;
        }
    }

    /// Judges the emissions of a response. Where there are too many, only those are looked at that
    /// may be the answer, and no more than a fan-out of them: the rest comes to nothing in any case.
    fn judge_all(&mut self, key: ThreadKey, listener: ListenerId, emissions: Vec<Emission>) -> Vec<Verdict> {
        let limit = self.blueprint.limits.fanout;
        if emissions.len() <= limit {
            return emissions.into_iter().map(|emission| self.judge(key, listener, emission)).collect();
        }
        let blueprint = self.blueprint.clone();
        let replies = &blueprint.contract(listener).replies;
        let fault = faults::too_many(emissions.len(), &blueprint);
        let mut judged = 0;
        let judge = |emission: Emission| {
            if judged < limit && emission.may_be_one_of(replies) {
                judged += 1;
                return self.judge(key, listener, emission);
            }
            let (to, payload, fault) = (emission.to, emission.payload.into_payload(), fault.clone());
            Verdict::Refused(Refusal { to, payload, fault, denied: false, width: 1 })
        };
        emissions.into_iter().map(judge).collect()
    }

    /// The first valid reply is the answer; everything beside it is given to nobody.
    fn answer_with(
        &mut self,
        key: ThreadKey,
        listener: ListenerId,
        message: MessageId,
        index: u64,
        verdicts: Vec<Verdict>,
    ) {
        let mut answer = None;
        for verdict in verdicts {
            match verdict {
                Verdict::Reply(payload) if answer.is_none() => {
                    self.emitted(key, listener, payload.payload());
                    answer = Some(payload);
                }
                other => {
                    self.counts.dead += 1;
                    let way = (Sender::Listener(listener), other.addressee(&self.blueprint));
                    self.bury(key, way, other.into_payload(), faults::superseded());
                }
            }
        }
        let (id, _) = self.key.derive(message, index);
        if let Some(payload) = answer {
            self.threads[key].invalid = 0;
            self.answer(key, id, Reply::Payload(payload));
        }
    }

    /// One more response without a valid emission.
    fn note_mistake(&mut self, key: ThreadKey) {
        let limit = self.blueprint.limits.invalid_responses.min(u8::MAX.into());
        let Some(thread) = self.threads.get_mut(key) else { return };
        thread.invalid = thread.invalid.saturating_add(1);
        if u32::from(thread.invalid) >= limit {
            self.fail(key, faults::quarrel(limit));
        }
    }
}
