//! What handlers say, taken from Queue 1: responses and awaited calls.

use std::time::Duration;

use super::answer::Reply;
use super::blueprint::ListenerId;
use super::conversation::Pile;
use super::event::EventKind;
use super::faults;
use super::io::{CallId, Emission, EmissionKind, Join, Outcome};
use super::join::{Fan, FanKind};
use super::judge::{Refusal, Verdict};
use super::key::{TaskId, ThreadKey};
use super::log::{join_word, requests_record};
use super::machine::{Core, Item};
use super::outcomes::Outcomes;
use super::refused::written;
use super::replay::TaskLog;
use super::task::Task;
use super::thread::{Origin, Sender};
use crate::journal::{self, CallRecord, FanId, Number};
use crate::vocab::MessageId;

/// What a handler ended with.
pub(super) struct Response {
    pub thread: ThreadKey,
    /// The call that the thread owed an answer to.
    pub answers: MessageId,
    pub source: Source,
    /// What the journal says of the message that was handled.
    pub log: Option<Box<TaskLog>>,
    pub outcome: Outcome,
}

/// What emissions come from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// The message that was handled.
    pub message: MessageId,
    /// Its number in the journal.
    pub number: Number,
    /// The index of the first emission: awaited calls went before.
    pub index: u64,
}

/// What a handler waits for.
pub(super) struct Calls {
    pub thread: ThreadKey,
    pub task: TaskId,
    pub call: CallId,
    pub requests: Vec<Emission>,
    pub join: Join,
    pub within: Option<Duration>,
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
    pub(super) fn called(
        &mut self,
        task: TaskId,
        call: CallId,
        requests: Vec<Emission>,
        (join, within): (Join, Option<Duration>),
    ) {
        let thread = self.tasks.get(task).and_then(|task| task.thread);
        let Some(thread) = thread.filter(|&thread| self.threads.contains_key(thread)) else {
            self.counts.emitted += requests.len() as u64;
            self.counts.cancelled += requests.len() as u64;
            return;
        };
        let groups = self.tasks.get(task).map_or(0, Task::groups);
        if let Err(fault) = self.room_for_group(groups) {
            self.counts.emitted += requests.len() as u64;
            self.counts.faulted += requests.len() as u64;
            return self.fail(thread, fault);
        }
        self.threads[thread].judging += 1;
        if let Some(task) = self.tasks.get_mut(task) {
            task.asked.push(call);
        }
        let requests = requests.into_iter().map(|request| Emission { kind: EmissionKind::Call, ..request }).collect();
        self.queue.push_back(Item::Calls(Calls { thread, task, call, requests, join, within }));
    }

    /// Judges a response as a whole, then lets it take effect.
    pub(super) fn respond(&mut self, mut response: Response) {
        let key = response.thread;
        let emissions = response.len() as u64;
        let Some(thread) = self.threads.get_mut(key) else {
            self.counts.emitted += emissions;
            self.counts.cancelled += emissions;
            return self.log_attached(response.log);
        };
        thread.judging -= 1;
        // A spawned thread goes on after its answer, but what was said before it is over.
        let is_late = thread.opened_by != response.answers || thread.is_spawned() && thread.origin == Origin::None;
        let Some(listener) = thread.listener().filter(|_| !is_late) else {
            self.counts.emitted += emissions;
            self.counts.cancelled += emissions;
            self.log_consumed(response.log.as_deref_mut());
            return self.settle(key);
        };
        let Response { source, mut log, outcome, .. } = response;
        let wrote = written(&outcome);
        match self.read(key, listener, outcome) {
            Ok(emissions) => {
                let verdicts = self.judge_all(key, listener, &emissions);
                self.keep_refused(key, listener, source.number, wrote.as_ref(), &verdicts);
                self.log_consumed(log.as_deref_mut());
                self.respond_with(key, listener, source, verdicts);
            }
            Err(fault) => {
                self.counts.emitted += 1;
                self.counts.faulted += 1;
                self.event(key, || EventKind::Faulted { fault: fault.clone(), misroute: None });
                self.keep_unreadable(key, listener, source.number, wrote.as_ref(), &fault);
                self.log_consumed(log.as_deref_mut());
                let (about, _) = self.key.derive(source.message, source.index);
                self.fault_to(key, Origin::None, about, None, fault);
                self.note_mistake(key);
            }
        }
        self.settle(key);
    }

    /// Places a group of awaited calls.
    pub(super) fn place_calls(&mut self, calls: Calls) {
        if self.repeat_calls(calls.task, calls.call, &calls.requests) {
            return self.calls_repeated(calls.thread, calls.task);
        }
        let Calls { thread: key, task, call, join, within, .. } = calls;
        let listener = self.threads.get(key).and_then(|thread| thread.listener());
        let asked = self.tasks.get(task).filter(|task| task.asked.contains(&call));
        let place = listener.zip(asked.map(|task| (task.message, task.number(), task.emitted)));
        let can_park = listener.is_some_and(|listener| self.blueprint.contract(listener).can_park);
        let verdicts = match place.filter(|_| can_park) {
            Some((listener, _)) => self.judge_each(key, listener, &calls.requests),
            None => Vec::new(),
        };
        let emissions = calls.requests.len() as u64;
        self.counts.emitted += emissions;
        if let Some(thread) = self.threads.get_mut(key) {
            thread.judging -= 1;
        }
        let Some((listener, (message, number, index))) = place else {
            self.counts.cancelled += emissions;
            return self.settle(key);
        };
        self.tasks[task].asked.retain(|&asked| asked != call);
        let total = verdicts.iter().map(Verdict::width).sum::<usize>();
        if !can_park || total > self.blueprint.limits.fanout {
            self.counts.faulted += emissions;
            let fault = if can_park { faults::too_many(total, &self.blueprint) } else { faults::cannot_park() };
            return self.call_ready(task, call, Err(fault));
        }
        let outcomes = Outcomes::new(total);
        let held = Pile::new(self.conversation_of(key));
        let id = self.tasks[task].fan_id(call);
        let kind = FanKind::Awaited { task, call, join, outcomes, held, expires: None };
        let fan = self.open_fan(Fan { id, owner: key, source: message, total: total as u32, kind });
        let until = within.map(|within| self.now.after(within));
        self.expire_at(fan, until);
        self.log_fan(fan, || {
            let (requests, join) = (requests_record(&calls.requests), join_word(join));
            Some(CallRecord { requests, join, until, settled: Vec::new(), outcome: journal::Outcome::Open })
        });
        if let Some(waiting) = self.tasks.get_mut(task) {
            waiting.emitted += total as u64;
            waiting.calls.push((call, fan));
        }
        self.take_effect(key, listener, Source { message, number, index }, Some(fan), verdicts);
        self.decide(fan);
    }

    /// A group of calls was made before: nothing of it has an effect again.
    fn calls_repeated(&mut self, key: ThreadKey, task: TaskId) {
        if let Some(thread) = self.threads.get_mut(key) {
            thread.judging -= 1;
        }
        self.settle(key);
        self.check_replay(task);
    }

    fn respond_with(&mut self, key: ThreadKey, listener: ListenerId, source: Source, verdicts: Vec<Verdict>) {
        let Source { message, number, index } = source;
        if verdicts.is_empty() {
            return;
        }
        self.counts.emitted += verdicts.len() as u64;
        if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Reply(_))) {
            return self.answer_with(key, listener, source, verdicts);
        }
        let total = verdicts.iter().map(Verdict::width).sum::<usize>();
        if total.max(verdicts.len()) > self.blueprint.limits.fanout {
            self.counts.faulted += verdicts.len() as u64;
            let (about, _) = self.key.derive(message, index);
            let fault = faults::too_many(total.max(verdicts.len()), &self.blueprint);
            self.event(key, || EventKind::Faulted { fault: fault.clone(), misroute: None });
            self.fault_to(key, Origin::None, about, None, fault);
            return self.note_mistake(key);
        }
        let fan = (total > 1).then(|| {
            let kind = FanKind::Mailbox { delivered: 0, counted_off: 0 };
            let id = FanId { message: number, call: None };
            let fan = self.open_fan(Fan { id, owner: key, source: message, total: total as u32, kind });
            self.log_fan(fan, || None);
            fan
        });
        if !self.take_effect(key, listener, source, fan, verdicts) {
            self.note_mistake(key);
        } else if let Some(thread) = self.threads.get_mut(key) {
            thread.invalid = 0;
        }
    }

    /// Judges the emissions of a response. Where there are too many, only those are looked at that
    /// may be the answer, and no more than a fan-out of them: the rest comes to nothing in any case.
    fn judge_all(&mut self, key: ThreadKey, listener: ListenerId, emissions: &[Emission]) -> Vec<Verdict> {
        let limit = self.blueprint.limits.fanout;
        if emissions.len() <= limit {
            return self.judge_each(key, listener, emissions);
        }
        let blueprint = self.blueprint.clone();
        let replies = &blueprint.contract(listener).replies;
        let fault = faults::too_many(emissions.len(), &blueprint);
        let mut judged = 0;
        let verdicts = emissions.iter().map(|emission| {
            if judged < limit && emission.may_be_one_of(replies) {
                judged += 1;
                return self.judge(key, listener, emission);
            }
            let (to, payload, fault) = (emission.to.clone(), emission.payload.clone().into_payload(), fault.clone());
            Verdict::Refused(Refusal { to, payload, fault, misroute: None, width: 1 })
        });
        verdicts.collect()
    }

    fn judge_each(&mut self, key: ThreadKey, listener: ListenerId, emissions: &[Emission]) -> Vec<Verdict> {
        emissions.iter().map(|emission| self.judge(key, listener, emission)).collect()
    }

    /// The first valid reply is the answer; everything beside it is given to nobody.
    fn answer_with(&mut self, key: ThreadKey, listener: ListenerId, source: Source, verdicts: Vec<Verdict>) {
        let mut answer = None;
        for verdict in verdicts {
            match verdict {
                Verdict::Reply(payload) if answer.is_none() => {
                    self.emitted(key, listener, payload.payload());
                    answer = Some(payload);
                }
                other => {
                    let way = (Sender::Listener(listener), other.addressee(&self.blueprint));
                    self.bury(key, way, other.into_payload(), faults::superseded());
                }
            }
        }
        let (id, _) = self.key.derive(source.message, source.index);
        let Some(payload) = answer else { return };
        if self.threads[key].parent.is_some_and(|parent| self.threads[parent].listener().is_some())
            && let Err(fault) = self.room_for_bytes(key)
        {
            self.counts.faulted += 1;
            return self.fail(key, fault);
        }
        self.threads[key].invalid = 0;
        self.answer(key, id, Reply::Payload(payload));
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
