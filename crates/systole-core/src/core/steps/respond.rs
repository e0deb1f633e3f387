//! Responses of handlers: read, judged as a whole, and then let take effect, emission by emission: calls are placed,
//! requests to the core answered, the rest refused.

use std::sync::Arc;
use std::time::Duration;

use systole_xml::ladder::{Canonical, Claim, Raw};
use systole_xml::schema::{Element, Validated};

use super::answer::{Head, Reply};
use super::enter::Call;
use super::{Core, own_index};
use crate::core::blueprint::ListenerId;
use crate::core::books::{Entries, Entry};
use crate::core::contract::Access;
use crate::core::entrance::{Phase, Response, Source};
use crate::core::event::{EventKind, Misroute, excerpt, shown};
use crate::core::faults;
use crate::core::io::{AttachmentEnd, DraftEnd, Emission, EmissionKind, HandlerOutcome};
use crate::core::judge::{Asker, Judge, Refusal, Verdict, selection};
use crate::core::key::{FanOutKey, InvocationId, ThreadKey};
use crate::core::queued::{Content, Queued, ReplyTo, Sender};
use crate::core::read::{ReadAnswer, ReadPart, read_answer};
use crate::core::tree::{About, FanOut, FanOutKind, Owner, Tree, WaitsFor};
use crate::journal::{FanId, NoteRecord, Number, Op};
use crate::protocol::{MetaAnswer, MetaRequest, write_refused};
use crate::vocab::{Fault, FaultCode, MessageId, Name, QName, ThreadId, Time};

/// The place that an emission comes from.
pub(super) struct Emitter {
    pub thread: ThreadKey,
    pub listener: ListenerId,
    message: MessageId,
    /// The index for derived ids.
    index: u64,
    /// The destination of its answer; one more for each further index of the same emission.
    reply_to: ReplyTo,
}

/// Indices of emissions that are no calls.
const OWN: u64 = 1 << 32;

/// Bytes that are kept of one output.
const KEPT: usize = 64 << 10;

impl Core {
    /// Judges a response as a whole, then lets it take effect.
    pub(super) fn respond(&mut self, response: Response) {
        let Response { thread: key, answers, handled, source, mut holdings, outcome } = response;
        let Some(thread) = self.tree.threads.get_mut(key) else {
            let emitted = self.step.books.emitted(outcome.emissions());
            self.step.books.cancelled(emitted);
            return self.give_back(holdings);
        };
        thread.unjudged -= 1;
        // A spawned thread goes on after its answer, but what was said before it is over.
        let is_late = thread.opened_by != answers || thread.reply_to == ReplyTo::None && thread.is_spawned();
        let (Owner::Listener(listener), false) = (thread.owner, is_late) else {
            let emitted = self.step.books.emitted(outcome.emissions());
            self.step.books.cancelled(emitted);
            if let Some((ticket, _)) = self.consume(holdings, false) {
                self.step.out.taken(ticket, AttachmentEnd::Late);
            }
            return self.tree.touch(key);
        };
        let (wrote, emissions) = match outcome {
            HandlerOutcome::Wrote(raw) => {
                let Judge { blueprint, validator } = self.payloads.judge(self.version(key));
                let read = read_answer(raw.clone(), &blueprint[listener], &blueprint.limits.xml, validator.catalog());
                (Some(raw), read.map(|read| self.open_all((key, listener), handled, read)))
            }
            HandlerOutcome::Read(read) => (Some(read.raw.clone()), Ok(self.open_all((key, listener), handled, *read))),
            HandlerOutcome::Refused(raw, fault) => (Some(raw), Err(*fault)),
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
                let draft = holdings.draft.take();
                let room = self.room_for_answer(key, &verdicts);
                let attached = self.consume(holdings, matches!(room, Some(Ok(()))));
                let has_room = !matches!(room, Some(Err(_)));
                self.respond_with((key, listener), source, (verdicts, room), draft);
                if let Some((ticket, end)) = attached {
                    self.step.out.taken(ticket, if has_room { end } else { AttachmentEnd::Late });
                }
            }
            Err(fault) => {
                let emitted = self.step.books.emitted(1);
                self.step.books.faulted(emitted);
                self.tree.event(key, &mut self.step, || EventKind::Faulted { fault: fault.clone(), misroute: None });
                self.keep_unreadable(key, listener, source.number, wrote.as_ref(), &fault);
                self.draft_over(holdings.draft.take(), DraftEnd::Refused);
                let attached = self.consume(holdings, false);
                self.refuse_response(key, source, fault);
                if let Some((ticket, end)) = attached {
                    self.step.out.taken(ticket, end);
                }
            }
        }
        self.tree.touch(key);
    }

    /// Makes emissions of what a handler wrote as bytes.
    fn open_all(
        &mut self,
        (key, listener): (ThreadKey, ListenerId),
        message: MessageId,
        read: ReadAnswer,
    ) -> Vec<Emission> {
        let ReadAnswer { raw, repairs, parts } = read;
        if !repairs.is_empty() {
            let by = self.setup.blueprint[listener].name.clone();
            let (text, bytes) = (|| shown(raw.bytes()), raw.bytes().len());
            self.tree.event(key, &mut self.step, || EventKind::Repaired { by, repairs, message, text: text(), bytes });
        }
        parts.into_iter().map(|part| self.open_part(key, listener, part)).collect()
    }

    /// Takes a payload out of a top-level `<message>`, which counts for its `to`, its `thread` and its payload only.
    fn open_part(&mut self, key: ThreadKey, listener: ListenerId, part: ReadPart) -> Emission {
        let (kind, ReadPart { claims, payload }) = (EmissionKind::Inferred, part);
        let Some(claims) = claims else { return Emission { kind, to: None, thread: None, payload } };
        let own = &self.setup.blueprint[listener].name;
        let own_id = self.tree.threads.get(key).map(|thread| thread.id);
        let named = claims.thread.as_deref().and_then(|thread| thread.parse::<ThreadId>().ok());
        let thread = named.filter(|&id| spawned_by(&self.tree, key, id).is_some());
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

    /// Judges the emissions of a response, or of so many as are [selected](selection).
    fn judge_all(&mut self, key: ThreadKey, listener: ListenerId, emissions: &[Emission]) -> Vec<Verdict> {
        let setup = self.setup.clone();
        let replies = &setup.blueprint[listener].replies;
        let mut is_judged = selection(emissions.len(), &setup.blueprint);
        let (mut judge, tree) = (self.payloads.judge(self.version(key)), &self.tree);
        let verdicts = emissions.iter().map(|emission| {
            if is_judged(&|| emission.may_be_one_of(replies)) {
                return judge_one(&mut judge, tree, key, listener, emission);
            }
            let (to, payload) = (emission.to.clone(), emission.payload.clone().into_payload());
            let fault = faults::too_many(emissions.len(), &setup.blueprint);
            Verdict::Refused(Refusal { to, payload, fault, misroute: None, width: 1 })
        });
        let mut verdicts: Vec<_> = verdicts.collect();
        judge.refuse_untaken(listener, &mut verdicts);
        verdicts
    }

    /// Judges awaited calls.
    pub(super) fn judge_calls(&mut self, key: ThreadKey, listener: ListenerId, calls: &[Emission]) -> Vec<Verdict> {
        let (mut judge, tree) = (self.payloads.judge(self.version(key)), &self.tree);
        calls.iter().map(|call| judge_one(&mut judge, tree, key, listener, call)).collect()
    }

    /// Checks whether there is room for the answer among verdicts; none if there is no answer.
    fn room_for_answer(&self, key: ThreadKey, verdicts: &[Verdict]) -> Option<Result<(), Fault>> {
        verdicts.iter().any(|verdict| matches!(verdict, Verdict::Reply(_))).then(|| {
            let parent = self.tree[key].parent;
            match parent.is_some_and(|parent| matches!(self.tree[parent].owner, Owner::Listener(_))) {
                true => self.room_in_conversation(key, 0, 0),
                false => Ok(()),
            }
        })
    }

    fn respond_with(
        &mut self,
        (key, listener): (ThreadKey, ListenerId),
        source: Source,
        (verdicts, room): (Vec<Verdict>, Option<Result<(), Fault>>),
        draft: Option<InvocationId>,
    ) {
        if verdicts.is_empty() {
            return self.draft_over(draft, DraftEnd::Ended);
        }
        let entries = self.step.books.emitted(verdicts.len());
        if let Some(room) = room {
            self.draft_over(draft, DraftEnd::Answered);
            return self.answer_with((key, listener), source, verdicts, room, entries);
        }
        let total = verdicts.iter().map(Verdict::width).sum::<usize>();
        if total.max(verdicts.len()) > self.setup.blueprint.limits.fanout {
            self.draft_over(draft, DraftEnd::Refused);
            self.step.books.faulted(entries);
            let fault = faults::too_many(total.max(verdicts.len()), &self.setup.blueprint);
            self.tree.event(key, &mut self.step, || EventKind::Faulted { fault: fault.clone(), misroute: None });
            return self.refuse_response(key, source, fault);
        }
        if let Err(fault) = self.tree.begin_round(key, &verdicts) {
            self.draft_over(draft, DraftEnd::Refused);
            self.step.books.faulted(entries);
            self.tree.event(key, &mut self.step, || EventKind::Faulted { fault: fault.clone(), misroute: None });
            return self.refuse_response(key, source, fault);
        }
        let is_refused = verdicts.iter().all(|verdict| verdict.refusal().is_some());
        self.draft_over(draft, if is_refused { DraftEnd::Refused } else { DraftEnd::Answered });
        let fan = (total > 1).then(|| {
            let (id, kind) =
                (FanId { message: source.number, call: None }, FanOutKind::Mailbox { delivered: 0, counted_off: 0 });
            let fan_out = FanOut { id, owner: key, source: source.message, total: total as u32, kind };
            self.tree.open_fan_out(fan_out, None, || None, &mut self.step)
        });
        let first = verdicts.iter().find_map(Verdict::refusal).cloned();
        if !self.take_effect(key, listener, source, fan, verdicts, entries) {
            self.note_mistake(key, first.as_ref());
        } else if let Some(thread) = self.tree.threads.get_mut(key) {
            thread.invalid = 0;
        }
    }

    /// The first valid reply is the answer; everything beside it is undeliverable.
    fn answer_with(
        &mut self,
        (key, listener): (ThreadKey, ListenerId),
        source: Source,
        verdicts: Vec<Verdict>,
        room: Result<(), Fault>,
        mut entries: Entries,
    ) {
        let mut answer = None;
        for verdict in verdicts {
            let entry = entries.one();
            match verdict {
                Verdict::Reply(payload) if answer.is_none() => {
                    self.note_emission(key, listener, payload.payload(), About::Nothing);
                    answer = Some((payload, entry));
                }
                other => {
                    let way = (Sender::Listener(listener), other.addressee(&self.setup.blueprint));
                    self.dead_letter(key, way, other.into_payload(), faults::superseded(), entry);
                }
            }
        }
        let (id, _) = self.setup.key.derive(source.message, source.index);
        let Some((payload, entry)) = answer else { return };
        if let Err(fault) = room {
            self.step.books.faulted(entry);
            return self.fail(key, fault);
        }
        self.tree[key].invalid = 0;
        self.answer(key, id, Reply::Payload(payload), entry);
    }

    /// Lets emissions take effect, one by one; whether any of them was valid. The first that finds no room fails the
    /// thread, as does one by which a thread goes on after its last turn; its awaited calls are refused first, as many as
    /// a handler may make at once.
    pub(super) fn take_effect(
        &mut self,
        thread: ThreadKey,
        listener: ListenerId,
        source: Source,
        fan: Option<FanOutKey>,
        verdicts: Vec<Verdict>,
        mut entries: Entries,
    ) -> bool {
        let Source { message, index: first, .. } = source;
        let (mut next, mut valid) = (0, false);
        let is_over = self.budgets.is_over(thread);
        let awaits = fan
            .and_then(|fan| self.tree.fan_outs.get(fan))
            .is_some_and(|fan| matches!(fan.kind, FanOutKind::Awaited { .. }));
        for (position, mut verdict) in (0..).zip(verdicts) {
            let reply_to = match fan {
                _ if verdict.width() == 0 => ReplyTo::None,
                Some(fan) => ReplyTo::Fan { fan, index: next },
                None => ReplyTo::Single,
            };
            // An emission that is no call takes no index of the fan-out: its ids come from a range of their own.
            let index = if verdict.width() == 0 { OWN + first + position } else { first + u64::from(next) };
            next += verdict.width() as u32;
            let entry = entries.one();
            if self.is_decided(reply_to) {
                self.step.books.cancelled(entry);
                continue;
            }
            if is_over && awaits && verdict.goes_on() {
                let most = self.setup.blueprint.limits.fanout;
                if let Some(fault) = self.budgets.refuse_late(thread, most) {
                    let width = verdict.width();
                    verdict = Verdict::Refused(Refusal { to: None, payload: None, fault, misroute: None, width });
                }
            }
            let refusal = self.budgets.refusal(thread).filter(|_| is_over && verdict.goes_on());
            let room = match refusal {
                Some(fault) => Err(fault.clone()),
                None => self.room_for(thread, &verdict),
            };
            if let Err(fault) = room {
                self.step.books.faulted(entry);
                self.step.books.cancelled(entries);
                self.fail(thread, fault);
                return true;
            }
            valid |= self.effect(Emitter { thread, listener, message, index, reply_to }, verdict, entry);
        }
        self.step.books.cancelled(entries);
        valid
    }

    /// Returns whether a call belongs to a group that has its result already.
    fn is_decided(&self, reply_to: ReplyTo) -> bool {
        matches!(reply_to, ReplyTo::Fan { fan, .. } if !self.tree.fan_outs.contains_key(fan))
    }

    /// Lets one emission take effect; `false` if its emitter should not have made it.
    fn effect(&mut self, emitter: Emitter, verdict: Verdict, entry: Entry) -> bool {
        let key = emitter.thread;
        match verdict {
            // Replies are answers, and awaited calls are none.
            Verdict::Reply(payload) => {
                let way = (Sender::Listener(emitter.listener), None);
                self.dead_letter(key, way, Some(payload.payload().clone()), faults::unasked_reply(), entry);
                false
            }
            Verdict::Continue { payload, after } => self.go_on(&emitter, payload, after, entry),
            Verdict::Call { first, others, payload } => {
                self.note_calls(&emitter, payload.payload(), 1 + others.len());
                let (mut valid, mut entry) = (false, Some(entry));
                for (copy, target) in (0..).zip(std::iter::once(first).chain(others)) {
                    let (ids, reply_to) = self.copy(&emitter, copy);
                    let entry = entry.take().unwrap_or_else(|| self.step.books.made());
                    // A copy that was refused may have decided the group.
                    if self.is_decided(reply_to) {
                        self.step.books.cancelled(entry);
                        continue;
                    }
                    let call = self.call_of(&emitter, target, payload.clone(), ids, reply_to);
                    valid |= match self.place(call, entry) {
                        Ok(_) => true,
                        Err((fault, entry)) => self.refuse_call(key, reply_to, ids.0, fault, None, entry),
                    };
                }
                valid
            }
            Verdict::Addressed { thread, payload } => {
                self.note_calls(&emitter, payload.payload(), 1);
                let (ids, reply_to) = self.copy(&emitter, 0);
                let Some(target) = self.tree.threads.get(thread).and_then(|thread| thread.listener()) else {
                    let fault = faults::route(payload.payload().root());
                    return self.refuse_call(key, reply_to, ids.0, fault, Some(Misroute::UnknownThread), entry);
                };
                let call = self.call_of(&emitter, target, payload, ids, reply_to);
                match self.place_on(thread, call, entry) {
                    Ok(()) => true,
                    Err((fault, entry)) => self.refuse_call(key, reply_to, ids.0, fault, None, entry),
                }
            }
            Verdict::CloseThread { thread, payload } => {
                self.note_calls(&emitter, &payload, 0);
                self.step.books.delivered(entry);
                self.close_spawned(key, thread);
                let (ids, reply_to) = self.copy(&emitter, 0);
                self.count_off(key, reply_to, ids.0);
                true
            }
            Verdict::Core { request, payload } => {
                self.note_calls(&emitter, &payload, 1);
                let (ids, reply_to) = self.copy(&emitter, 0);
                self.ask_core(&emitter, reply_to, ids.0, request, entry)
            }
            Verdict::Spawn { target, first, payload } => {
                self.note_calls(&emitter, &payload, 2);
                let (spawned, told) = self.copy(&emitter, 0);
                let (ids, reply_to) = self.copy(&emitter, 1);
                let call =
                    Call { spawned: true, ..self.call_of(&emitter, target, first, (ids.0, spawned.1), reply_to) };
                self.spawn(&emitter, told, spawned, call, payload.root(), entry)
            }
            Verdict::Refused(refusal) => self.refuse(&emitter, refusal, entry),
        }
    }

    fn go_on(&mut self, emitter: &Emitter, payload: Validated<Element>, after: Duration, entry: Entry) -> bool {
        let key = emitter.thread;
        let (id, _) = self.setup.key.derive(emitter.message, emitter.index);
        self.note_calls(emitter, payload.payload(), 0);
        let body = self.room_in_mailbox(key).and_then(|()| self.payloads.decode(emitter.listener, payload));
        match body {
            Ok(body) => {
                let content = Content::Body(body);
                let share = self.tree.count(key, content.size());
                let message = Queued::new(id, Sender::Listener(emitter.listener), content, share, entry);
                self.place_continue(key, message, after);
                true
            }
            Err(fault) => self.refuse_call(key, ReplyTo::None, id, fault, None, entry),
        }
    }

    /// Puts a message at the tail of the thread's own mailbox.
    fn place_continue(&mut self, key: ThreadKey, message: Queued, after: Duration) {
        if after.is_zero() {
            self.put(key, message);
        } else if self.entrance.phase >= Phase::Draining {
            self.step.books.cancelled(message.entry);
            self.tree[key].extra.get_or_insert_default().drained = true;
        } else {
            let due = self.step.clock.now.after(after);
            self.tree.put(key, message, WaitsFor::Time(due), &mut self.step);
        }
    }

    fn call_of(
        &self,
        emitter: &Emitter,
        target: ListenerId,
        payload: Validated<Element>,
        ids: (MessageId, ThreadId),
        reply_to: ReplyTo,
    ) -> Call {
        Call {
            parent: emitter.thread,
            target,
            payload,
            reply_to,
            ids,
            from: Sender::Listener(emitter.listener),
            label: None,
            traceparent: self.tree.threads.get(emitter.thread).and_then(|thread| thread.traceparent()),
            deadline: Time::MAX,
            budget: None,
            spawned: false,
            permit: None,
        }
    }

    /// Ids and destination of the n-th index of one emission.
    fn copy(&self, emitter: &Emitter, n: u32) -> ((MessageId, ThreadId), ReplyTo) {
        let ids = self.setup.key.derive(emitter.message, emitter.index + u64::from(n));
        let reply_to = match emitter.reply_to {
            ReplyTo::Fan { fan, index } => ReplyTo::Fan { fan, index: index + n },
            other => other,
        };
        (ids, reply_to)
    }

    /// Notes an emission that is so many calls.
    fn note_calls(&mut self, emitter: &Emitter, payload: &Canonical, calls: usize) {
        let own = &self.setup;
        let ids = |copy| own.key.derive(emitter.message, emitter.index + copy as u64).0;
        let about = match own.blueprint[emitter.listener].context {
            true => About::Calls((0..calls).map(ids).collect()),
            false => About::Nothing,
        };
        self.note_emission(emitter.thread, emitter.listener, payload, about);
    }

    /// Notes an emission of a handler: for operators, and for the context of its thread.
    pub(super) fn note_emission(&mut self, key: ThreadKey, listener: ListenerId, payload: &Canonical, about: About) {
        self.tree.event(key, &mut self.step, || EventKind::Emitted { payload: payload.root().clone() });
        let contract = &self.setup.blueprint[listener];
        if contract.context {
            let from = contract.name.clone();
            self.tree.remember(key, (from, payload.clone()), about, &mut self.step);
        }
    }

    /// Answers a request of a thread; `false` if it should not have been made.
    pub(super) fn ask_core(
        &mut self,
        emitter: &Emitter,
        reply_to: ReplyTo,
        about: MessageId,
        request: MetaRequest,
        entry: Entry,
    ) -> bool {
        let key = emitter.thread;
        let (contract, version) = (&self.setup.blueprint[emitter.listener], self.version(key));
        let asker = Asker { calls: &contract.calls, replies: &contract.replies, admin: false, remote: false };
        let answer = self.room_in_mailbox(key).and_then(|()| match request {
            MetaRequest::ClearContext => {
                may_touch(self.setup.blueprint.meta.clear_context, &request.qname())?;
                self.tree.clear_history(key, &mut self.step);
                Ok(MetaAnswer::ContextCleared)
            }
            request => self.payloads.judge(version).knowledge(&asker, request),
        });
        match answer {
            Ok(answer) => {
                self.step.books.delivered(entry);
                self.tell(emitter, reply_to, about, &answer);
                true
            }
            Err(fault) => self.refuse_call(key, reply_to, about, fault, None, entry),
        }
    }

    /// Opens a spawned thread for its owner and puts the first call on it; `false` if that should
    /// not have been asked for.
    pub(super) fn spawn(
        &mut self,
        emitter: &Emitter,
        told: ReplyTo,
        ids: (MessageId, ThreadId),
        call: Call,
        request: &QName,
        entry: Entry,
    ) -> bool {
        let (first, about) = (call.reply_to, call.ids.0);
        let first_entry = self.step.books.made();
        let placed = match may_touch(self.setup.blueprint.meta.spawn_thread, request) {
            Ok(()) => self.place(call, first_entry),
            Err(fault) => Err((fault, first_entry)),
        };
        match placed {
            Ok(_) => {
                self.step.books.delivered(entry);
                self.tell(emitter, told, ids.0, &MetaAnswer::ThreadSpawned(ids.1));
                true
            }
            Err((fault, first_entry)) => {
                self.refuse_call(emitter.thread, told, ids.0, fault.clone(), None, entry);
                self.refuse_call(emitter.thread, first, about, fault, None, first_entry)
            }
        }
    }

    fn tell(&mut self, emitter: &Emitter, reply_to: ReplyTo, about: MessageId, answer: &MetaAnswer) {
        let (id, _) = self.setup.key.derive(about, own_index::ANSWER);
        let entry = self.step.books.made();
        let reply = match self.payloads.validate(self.version(emitter.thread), answer.write()) {
            Ok(payload) => Reply::Payload(payload),
            Err(error) => Reply::Fault(faults::internal(&error)),
        };
        let head = Head { id, in_reply_to: about, reply_to, from: Sender::Core };
        self.answer_listener(emitter.thread, emitter.listener, head, reply, entry);
    }

    /// Refuses an emission: a fault for each index that it holds.
    fn refuse(&mut self, emitter: &Emitter, refusal: Refusal, entry: Entry) -> bool {
        let Refusal { to, payload, fault, misroute, width } = refusal;
        if payload.is_some() || fault.code == FaultCode::Route {
            let dead = self.step.books.made();
            self.dead_letter(emitter.thread, (Sender::Listener(emitter.listener), to), payload, fault.clone(), dead);
        }
        let (mut excused, mut entry) = (true, Some(entry));
        for copy in 0..width.max(1) as u32 {
            let (ids, reply_to) = self.copy(emitter, copy);
            let entry = entry.take().unwrap_or_else(|| self.step.books.made());
            excused &= self.refuse_call(emitter.thread, reply_to, ids.0, fault.clone(), misroute.clone(), entry);
        }
        excused
    }

    /// Refuses an emission with a fault; `false` if the emission was a mistake of its sender.
    pub(super) fn refuse_call(
        &mut self,
        key: ThreadKey,
        reply_to: ReplyTo,
        about: MessageId,
        fault: Fault,
        misroute: Option<Misroute>,
        entry: Entry,
    ) -> bool {
        self.step.books.faulted(entry);
        self.tree.event(key, &mut self.step, || EventKind::Faulted { fault: fault.clone(), misroute });
        let counts = faults::counts_against(&fault);
        self.note_refusal(key, &fault);
        self.fault_to(key, reply_to, about, None, fault);
        !counts
    }

    /// Notes that a call of a thread was refused, if a budget is why.
    pub(super) fn note_refusal(&mut self, key: ThreadKey, fault: &Fault) {
        if fault.code == FaultCode::Budget && !self.budgets.is_empty() {
            self.budgets.note_refusal(key, fault);
        }
    }

    /// Refuses a response as a whole: a fault to its thread.
    fn refuse_response(&mut self, key: ThreadKey, source: Source, fault: Fault) {
        let (about, _) = self.setup.key.derive(source.message, source.index);
        self.fault_to(key, ReplyTo::None, about, None, fault.clone());
        self.note_mistake(key, Some(&fault));
    }

    /// Counts a response without a valid emission, with the fault that refused it if it is known; the thread fails after
    /// too many in a row.
    fn note_mistake(&mut self, key: ThreadKey, last: Option<&Fault>) {
        let limit = self.setup.blueprint.limits.invalid_responses.min(u8::MAX.into());
        let Some(thread) = self.tree.threads.get_mut(key) else { return };
        thread.invalid = thread.invalid.saturating_add(1);
        if u32::from(thread.invalid) >= limit {
            self.fail(key, faults::too_many_mistakes(limit, last));
        }
    }

    /// Keeps the refused part of a response: all that the listener wrote, or the payload that it made.
    ///
    /// Must be called before the message counts as done: the journal keeps the output with that.
    pub(super) fn keep_refused(
        &mut self,
        key: ThreadKey,
        listener: ListenerId,
        message: Number,
        wrote: Option<&Raw>,
        verdicts: &[Verdict],
    ) {
        let refusal = verdicts.iter().find_map(|verdict| match verdict {
            Verdict::Refused(refusal) => Some(refusal),
            _ => None,
        });
        let Some(refusal) = refusal else { return };
        let payload = refusal.payload.as_ref().map(|payload| payload.bytes());
        let Some(output) = wrote.map(Raw::bytes).or(payload) else { return };
        let (output, fault) = (excerpt(output, KEPT), refusal.fault.clone());
        // Payloads that were read have dead letters of their own.
        if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Refused(refusal) if refusal.payload.is_none())) {
            self.dead_output(key, listener, &output, &fault);
        }
        self.keep_output(key, listener, message, (output, wrote.is_some()), fault);
    }

    /// Keeps an output that can't be parsed.
    pub(super) fn keep_unreadable(
        &mut self,
        key: ThreadKey,
        listener: ListenerId,
        message: Number,
        wrote: Option<&Raw>,
        fault: &Fault,
    ) {
        if let Some(wrote) = wrote {
            let output = excerpt(wrote.bytes(), KEPT);
            self.dead_output(key, listener, &output, fault);
            self.keep_output(key, listener, message, (output, true), fault.clone());
        }
    }

    fn dead_output(&mut self, key: ThreadKey, listener: ListenerId, output: &str, fault: &Fault) {
        let payload = write_refused(output, fault);
        let entry = self.step.books.made();
        self.dead_letter(key, (Sender::Listener(listener), None), Some(payload), fault.clone(), entry);
    }

    /// Keeps an output of bytes in the context of the thread. A handler that emitted a value sees the fault with it.
    fn keep_output(
        &mut self,
        key: ThreadKey,
        listener: ListenerId,
        message: Number,
        (output, written): (Arc<str>, bool),
        fault: Fault,
    ) {
        let contract = &self.setup.blueprint[listener];
        let (by, context) = (contract.name.clone(), contract.context && written);
        let is_kept = message != 0 && self.step.out.writes();
        if is_kept || context {
            let payload = write_refused(&output, &fault);
            if is_kept {
                let (name, value) = (NoteRecord::REFUSED_NAME.into(), payload.as_str().into());
                self.step.out.write(|| Op::Note(NoteRecord { message, index: NoteRecord::REFUSED, name, value }));
            }
            if context {
                self.tree.remember(key, (by.clone(), payload), About::Nothing, &mut self.step);
            }
        }
        self.tree.event(key, &mut self.step, || EventKind::Refused { by, output: shown(output.as_bytes()), fault });
    }
}

/// Judges an emission of a thread.
fn judge_one(judge: &mut Judge<'_>, tree: &Tree, key: ThreadKey, listener: ListenerId, emission: &Emission) -> Verdict {
    judge.emission(listener, emission, |id| {
        let child = spawned_by(tree, key, id)?;
        Some((child, tree[child].listener()?))
    })
}

/// A spawned thread, if it is a child of that owner.
fn spawned_by(tree: &Tree, owner: ThreadKey, id: ThreadId) -> Option<ThreadKey> {
    let child = *tree.spawned.get(&id)?;
    tree.threads.get(child).filter(|thread| thread.parent == Some(owner)).map(|_| child)
}

/// Checks that a listener may change something on its own threads.
fn may_touch(access: Access, request: &QName) -> Result<(), Fault> {
    match access {
        Access::Peers | Access::Authenticated => Ok(()),
        Access::None | Access::Admin => Err(faults::route(request)),
    }
}
