//! Responses of handlers: read, judged as a whole, and then let take effect.

use systole_xml::ladder::Claim;

use super::Core;
use super::answer::Reply;
use crate::core::blueprint::ListenerId;
use crate::core::books::Entries;
use crate::core::event::{EventKind, shown};
use crate::core::faults;
use crate::core::invocations::{Holdings, Invocation};
use crate::core::io::{Emission, EmissionKind, HandlerOutcome};
use crate::core::items::{Item, Response, Source};
use crate::core::judge::{Refusal, Verdict};
use crate::core::key::{InvocationId, ThreadKey};
use crate::core::queued::{Origin, Sender};
use crate::core::read::{ReadAnswer, ReadPart, read_answer};
use crate::core::tree::{About, FanOut, FanOutKind, Turn};
use crate::journal::{FanId, NoteRecord, Op};
use crate::vocab::{Fault, Name, ThreadId};

impl HandlerOutcome {
    /// Payloads in it, as far as that is known before it is parsed.
    fn emissions(&self) -> usize {
        match self {
            Self::Emitted(emissions) => emissions.len(),
            Self::Wrote(_) => 1,
            Self::Read(read) => read.parts.len(),
            Self::Failed(_) | Self::Panicked | Self::Discarded | Self::Aborted => 0,
        }
    }
}

impl Core {
    /// A handler ended.
    pub(super) fn finished(&mut self, id: InvocationId, outcome: HandlerOutcome) {
        let Some((ended, holdings)) = self.end_invocation(id) else { return };
        match ended.thread.filter(|&thread| self.tree.contains(thread)) {
            Some(thread) => self.thread_finished(thread, ended, holdings, outcome),
            None => {
                self.give_back(holdings);
                let emitted = self.step.books.emitted(outcome.emissions());
                self.step.books.cancelled(emitted);
            }
        }
    }

    /// A handler ended whose thread is open.
    fn thread_finished(&mut self, key: ThreadKey, ended: Invocation, holdings: Holdings, outcome: HandlerOutcome) {
        // A resume that stood in a queue for the ended handler has lost its purpose.
        if self.tree[key].turn != Turn::None {
            self.leave_turn(key);
        }
        let silent = matches!(&outcome, HandlerOutcome::Emitted(emissions) if emissions.is_empty());
        let ended_well =
            matches!(outcome, HandlerOutcome::Emitted(_) | HandlerOutcome::Wrote(_) | HandlerOutcome::Read(_));
        let diverged = (ended_well && !holdings.repeats_all()).then(|| holdings.unrepeated());
        if ended_well && !silent && diverged.is_none() {
            self.tree.begin_judging(key);
            let answers = self.tree[key].opened_by;
            let source = Source { message: ended.seed, number: holdings.number(), index: ended.emitted };
            let response = Response { thread: key, answers, source, holdings, outcome };
            return self.entrance.push(self.tree.principal(key), Item::Response(response));
        }
        self.consume(holdings);
        match (diverged, outcome) {
            (Some(fault), _) => self.fail_shown(key, fault),
            (None, HandlerOutcome::Emitted(_) | HandlerOutcome::Wrote(_) | HandlerOutcome::Read(_)) => {
                self.tree.touch(key)
            }
            (None, HandlerOutcome::Failed(failure)) => self.fail(key, faults::failed(failure)),
            (None, HandlerOutcome::Panicked) => self.fail(key, faults::panicked()),
            (None, HandlerOutcome::Discarded | HandlerOutcome::Aborted) => self.fail(key, faults::discarded()),
        }
    }

    /// Writes that the message of a handler was consumed, with the answer of a fan-out that it was, and the handler's
    /// attachment. Its slot is free.
    fn consume(&mut self, mut holdings: Holdings) {
        if let Some(record) = &mut holdings.record {
            if let Some(said) = record.said.take().filter(|_| record.number != 0) {
                let (message, index, name) = (record.number, NoteRecord::SAID, NoteRecord::SAID_NAME.into());
                self.step.out.write(|| Op::Note(NoteRecord { message, index, name, value: said }));
            }
            self.write_done(record.number);
            if let Some((fan, count)) = record.answered {
                self.step.out.write(|| Op::Delivered { fan, count });
            }
        }
        self.give_back(holdings);
    }

    /// Writes the attachment of a handler that has ended, and frees its slot: its message is consumed, or was over
    /// before.
    pub(super) fn give_back(&mut self, holdings: Holdings) {
        let Holdings { slot, record } = holdings;
        self.step.out.take(record.and_then(|record| record.attachment), true);
        if let Some(listener) = slot {
            self.release_slot(listener);
        }
    }

    /// Judges a response as a whole, then lets it take effect.
    pub(super) fn respond(&mut self, response: Response) {
        let Response { thread: key, answers, source, holdings, outcome } = response;
        let Some(thread) = self.tree.end_judging(key) else {
            let emitted = self.step.books.emitted(outcome.emissions());
            self.step.books.cancelled(emitted);
            return self.give_back(holdings);
        };
        // A spawned thread goes on after its answer, but what was said before it is over.
        let is_late = thread.opened_by != answers || thread.is_spawned() && thread.origin == Origin::None;
        let Some(listener) = thread.listener().filter(|_| !is_late) else {
            let emitted = self.step.books.emitted(outcome.emissions());
            self.step.books.cancelled(emitted);
            self.consume(holdings);
            return self.tree.touch(key);
        };
        let (wrote, emissions) = match outcome {
            HandlerOutcome::Wrote(raw) => {
                let (contract, limits) = (self.setup.blueprint.contract(listener), &self.setup.blueprint.limits.xml);
                let read = read_answer(raw.clone(), contract, limits, self.judge.catalog());
                (Some(raw), read.map(|read| self.open_all(key, listener, read)))
            }
            HandlerOutcome::Read(read) => (Some(read.raw.clone()), Ok(self.open_all(key, listener, *read))),
            HandlerOutcome::Emitted(emissions) => (None, Ok(emissions)),
            HandlerOutcome::Failed(_)
            | HandlerOutcome::Panicked
            | HandlerOutcome::Discarded
            | HandlerOutcome::Aborted => (None, Ok(Vec::new())),
        };
        match emissions {
            Ok(emissions) => {
                let verdicts = self.judge_all(key, listener, &emissions);
                self.keep_refused(key, listener, source.number, wrote.as_ref(), &verdicts);
                self.consume(holdings);
                self.respond_with(key, listener, source, verdicts);
            }
            Err(fault) => {
                let emitted = self.step.books.emitted(1);
                self.step.books.faulted(emitted);
                self.tree.event(key, &mut self.step, || EventKind::Faulted { fault: fault.clone(), misroute: None });
                self.keep_unreadable(key, listener, source.number, wrote.as_ref(), &fault);
                self.consume(holdings);
                self.refuse_response(key, source, fault);
            }
        }
        self.tree.touch(key);
    }

    /// Makes emissions of what a handler wrote as bytes.
    fn open_all(&mut self, key: ThreadKey, listener: ListenerId, read: ReadAnswer) -> Vec<Emission> {
        let ReadAnswer { raw, repairs, parts } = read;
        if !repairs.is_empty() {
            let by = self.setup.blueprint.contract(listener).name.clone();
            let text = || shown(raw.bytes());
            self.tree.event(key, &mut self.step, || EventKind::Repaired { by, repairs, text: text() });
        }
        parts.into_iter().map(|part| self.open_part(key, listener, part)).collect()
    }

    /// Takes a payload out of a top-level `<message>`, which counts for its `to`, its `thread` and its payload only.
    fn open_part(&mut self, key: ThreadKey, listener: ListenerId, part: ReadPart) -> Emission {
        let (kind, ReadPart { claims, payload }) = (EmissionKind::Inferred, part);
        let Some(claims) = claims else { return Emission { kind, to: None, thread: None, payload } };
        let own = &self.setup.blueprint.contract(listener).name;
        let own_id = self.tree.get(key).map(|thread| thread.id);
        let named = claims.thread.as_deref().and_then(|thread| thread.parse::<ThreadId>().ok());
        let thread = named.filter(|&id| self.tree.spawned_by(key, id).is_some());
        let foreign = claims.thread.filter(|_| thread.is_none() && (named.is_none() || named != own_id));
        let pretended = Some(claims.from).filter(|from| !from.is_empty() && **from != *own.as_str());
        if pretended.is_some() || foreign.is_some() {
            let text = |claim: Option<Claim>| claim.map(|claim| claim.to_string());
            let (claimed, thread) = (text(pretended), text(foreign));
            self.tree.event(key, &mut self.step, || EventKind::Forged { by: own.clone(), claimed, thread });
        }
        // A text that is no name is routed like any other unknown one.
        let to = claims.to.map(|to| Name::parse(&to).unwrap_or_else(|_| Name::root()));
        Emission { kind, to, thread, payload }
    }

    /// Judges the emissions of a response. Where there are too many, only those are looked at that
    /// may be the answer, and no more than a fan-out of them: the rest comes to nothing in any case.
    fn judge_all(&mut self, key: ThreadKey, listener: ListenerId, emissions: &[Emission]) -> Vec<Verdict> {
        let setup = self.setup.clone();
        let limit = setup.blueprint.limits.fanout;
        if emissions.len() <= limit {
            return self.judge_each(key, listener, emissions);
        }
        let replies = &setup.blueprint.contract(listener).replies;
        let fault = faults::too_many(emissions.len(), &setup.blueprint);
        let mut judged = 0;
        let verdicts = emissions.iter().map(|emission| {
            if judged < limit && emission.may_be_one_of(replies) {
                judged += 1;
                return self.judge_one(key, listener, emission);
            }
            let (to, payload, fault) = (emission.to.clone(), emission.payload.clone().into_payload(), fault.clone());
            Verdict::Refused(Refusal { to, payload, fault, misroute: None, width: 1 })
        });
        verdicts.collect()
    }

    /// Judges emissions, or awaited calls.
    pub(super) fn judge_each(&mut self, key: ThreadKey, listener: ListenerId, emissions: &[Emission]) -> Vec<Verdict> {
        emissions.iter().map(|emission| self.judge_one(key, listener, emission)).collect()
    }

    fn judge_one(&mut self, key: ThreadKey, listener: ListenerId, emission: &Emission) -> Verdict {
        let tree = &self.tree;
        self.judge.emission(listener, emission, |id| {
            let child = tree.spawned_by(key, id)?;
            Some((child, tree[child].listener()?))
        })
    }

    fn respond_with(&mut self, key: ThreadKey, listener: ListenerId, source: Source, verdicts: Vec<Verdict>) {
        if verdicts.is_empty() {
            return;
        }
        let entries = self.step.books.emitted(verdicts.len());
        if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Reply(_))) {
            return self.answer_with(key, listener, source, verdicts, entries);
        }
        let total = verdicts.iter().map(Verdict::width).sum::<usize>();
        if total.max(verdicts.len()) > self.setup.blueprint.limits.fanout {
            self.step.books.faulted(entries);
            let fault = faults::too_many(total.max(verdicts.len()), &self.setup.blueprint);
            self.tree.event(key, &mut self.step, || EventKind::Faulted { fault: fault.clone(), misroute: None });
            return self.refuse_response(key, source, fault);
        }
        if let Err(fault) = self.tree.begin_round(key, &verdicts) {
            self.step.books.faulted(entries);
            self.tree.event(key, &mut self.step, || EventKind::Faulted { fault: fault.clone(), misroute: None });
            return self.refuse_response(key, source, fault);
        }
        let fan = (total > 1).then(|| {
            let (id, kind) =
                (FanId { message: source.number, call: None }, FanOutKind::Mailbox { delivered: 0, counted_off: 0 });
            let fan_out = FanOut { id, owner: key, source: source.message, total: total as u32, kind };
            self.tree.open_fan_out(fan_out, || None, &mut self.step)
        });
        let first = verdicts.iter().find_map(Verdict::refusal).cloned();
        if !self.take_effect(key, listener, source, fan, verdicts, entries) {
            self.note_mistake(key, first.as_ref());
        } else {
            self.tree.forget_mistakes(key);
        }
    }

    /// The first valid reply is the answer; everything beside it is undeliverable.
    fn answer_with(
        &mut self,
        key: ThreadKey,
        listener: ListenerId,
        source: Source,
        verdicts: Vec<Verdict>,
        mut entries: Entries,
    ) {
        let mut answer = None;
        for verdict in verdicts {
            let entry = entries.one();
            match verdict {
                Verdict::Reply(payload) if answer.is_none() => {
                    self.emitted(key, listener, payload.payload(), About::Nothing);
                    answer = Some((payload, entry));
                }
                other => {
                    let way = (Sender::Listener(listener), other.addressee(&self.setup.blueprint));
                    self.keep_dead(key, way, other.into_payload(), faults::superseded(), entry);
                }
            }
        }
        let (id, _) = self.setup.key.derive(source.message, source.index);
        let Some((payload, entry)) = answer else { return };
        let parent = self.tree[key].parent;
        if parent.is_some_and(|parent| self.tree[parent].listener().is_some())
            && let Err(fault) = self.tree.room_for_bytes(key)
        {
            self.step.books.faulted(entry);
            return self.fail(key, fault);
        }
        self.tree.forget_mistakes(key);
        self.answer(key, id, Reply::Payload(payload), entry);
    }

    /// Refuses a response as a whole: a fault to its thread.
    fn refuse_response(&mut self, key: ThreadKey, source: Source, fault: Fault) {
        let (about, _) = self.setup.key.derive(source.message, source.index);
        self.fault_to(key, Origin::None, about, None, fault.clone());
        self.note_mistake(key, Some(&fault));
    }

    /// Counts a response without a valid emission, with the fault that refused it if it is known; the thread fails after
    /// too many in a row.
    fn note_mistake(&mut self, key: ThreadKey, last: Option<&Fault>) {
        let limit = self.setup.blueprint.limits.invalid_responses.min(u8::MAX.into());
        if self.tree.count_mistake(key, limit) {
            self.fail(key, faults::too_many_mistakes(limit, last));
        }
    }
}
