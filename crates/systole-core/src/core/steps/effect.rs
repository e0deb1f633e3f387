//! Effects of emissions that are judged: calls are placed, questions to the core answered,
//! the rest refused.

use std::time::Duration;

use systole_xml::ladder::Canonical;
use systole_xml::schema::{Element, Validated};

use super::Core;
use super::call::Call;
use crate::core::blueprint::ListenerId;
use crate::core::books::{Entries, Entry};
use crate::core::event::EventKind;
use crate::core::faults;
use crate::core::items::Source;
use crate::core::judge::{Refusal, Verdict};
use crate::core::key::{FanOutKey, ThreadKey};
use crate::core::misroute::Misroute;
use crate::core::queued::{Content, Origin, Queued, Sender};
use crate::core::tree::{About, FanOutKind};
use crate::vocab::{FaultCode, MessageId, ThreadId, Time};

/// The place that an emission comes from.
pub(super) struct Site {
    pub thread: ThreadKey,
    pub listener: ListenerId,
    message: MessageId,
    /// The index for derived ids.
    index: u64,
    /// The destination of its answer; one more for each further index of the same emission.
    origin: Origin,
}

/// Indices of emissions that are no calls.
const OWN: u64 = 1 << 32;

impl Core {
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
            .and_then(|fan| self.tree.fan_out(fan))
            .is_some_and(|fan| matches!(fan.kind, FanOutKind::Awaited { .. }));
        for (position, mut verdict) in (0..).zip(verdicts) {
            let origin = match fan {
                _ if verdict.width() == 0 => Origin::None,
                Some(fan) => Origin::Fan { fan, index: next },
                None => Origin::Single,
            };
            // An emission that is no call takes no index of the fan-out: its ids come from a range of their own.
            let index = if verdict.width() == 0 { OWN + first + position } else { first + u64::from(next) };
            next += verdict.width() as u32;
            let entry = entries.one();
            if self.tree.is_decided(origin) {
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
                None => self.tree.room_for(thread, &verdict),
            };
            if let Err(fault) = room {
                self.step.books.faulted(entry);
                self.step.books.cancelled(entries);
                self.fail(thread, fault);
                return true;
            }
            valid |= self.effect(Site { thread, listener, message, index, origin }, verdict, entry);
        }
        self.step.books.cancelled(entries);
        valid
    }

    /// Lets one emission take effect; `false` if its emitter should not have made it.
    fn effect(&mut self, site: Site, verdict: Verdict, entry: Entry) -> bool {
        let key = site.thread;
        match verdict {
            // Replies are answers, and awaited calls are none.
            Verdict::Reply(payload) => {
                let way = (Sender::Listener(site.listener), None);
                self.keep_dead(key, way, Some(payload.payload().clone()), faults::unasked_reply(), entry);
                false
            }
            Verdict::Continue { payload, after } => self.go_on(&site, payload, after, entry),
            Verdict::Call { first, others, payload } => {
                self.call_emitted(&site, payload.payload(), 1 + others.len());
                let (mut valid, mut entry) = (false, Some(entry));
                for (copy, target) in (0..).zip(std::iter::once(first).chain(others)) {
                    let (ids, origin) = self.copy(&site, copy);
                    let entry = entry.take().unwrap_or_else(|| self.step.books.made());
                    // A copy that was refused may have decided the group.
                    if self.tree.is_decided(origin) {
                        self.step.books.cancelled(entry);
                        continue;
                    }
                    let call = self.call_of(&site, target, payload.clone(), ids, origin);
                    valid |= match self.place(call, entry) {
                        Ok(_) => true,
                        Err((fault, entry)) => self.refuse_call(key, origin, ids.0, fault, None, entry),
                    };
                }
                valid
            }
            Verdict::Addressed { thread, payload } => {
                self.call_emitted(&site, payload.payload(), 1);
                let (ids, origin) = self.copy(&site, 0);
                let Some(target) = self.tree.get(thread).and_then(|thread| thread.listener()) else {
                    let fault = faults::route(payload.payload().root());
                    return self.refuse_call(key, origin, ids.0, fault, Some(Misroute::UnknownThread), entry);
                };
                let call = self.call_of(&site, target, payload, ids, origin);
                match self.place_on(thread, call, entry) {
                    Ok(()) => true,
                    Err((fault, entry)) => self.refuse_call(key, origin, ids.0, fault, None, entry),
                }
            }
            Verdict::CloseThread { thread, payload } => {
                self.call_emitted(&site, &payload, 0);
                self.step.books.delivered(entry);
                self.close_spawned(key, thread);
                let (ids, origin) = self.copy(&site, 0);
                self.count_off(key, origin, ids.0);
                true
            }
            Verdict::Core { request, payload } => {
                self.call_emitted(&site, &payload, 1);
                let (ids, origin) = self.copy(&site, 0);
                self.ask_core(&site, origin, ids.0, request, entry)
            }
            Verdict::Spawn { target, first, payload } => {
                self.call_emitted(&site, &payload, 2);
                let (spawned, told) = self.copy(&site, 0);
                let (ids, origin) = self.copy(&site, 1);
                let call = Call { spawned: true, ..self.call_of(&site, target, first, (ids.0, spawned.1), origin) };
                self.spawn(&site, told, spawned, call, payload.root(), entry)
            }
            Verdict::Refused(refusal) => self.refuse(&site, refusal, entry),
        }
    }

    /// Refuses an emission: a fault for each index that it holds.
    fn refuse(&mut self, site: &Site, refusal: Refusal, entry: Entry) -> bool {
        let Refusal { to, payload, fault, misroute, width } = refusal;
        if payload.is_some() || fault.code == FaultCode::Route {
            let dead = self.step.books.made();
            self.keep_dead(site.thread, (Sender::Listener(site.listener), to), payload, fault.clone(), dead);
        }
        let (mut excused, mut entry) = (true, Some(entry));
        for copy in 0..width.max(1) as u32 {
            let (ids, origin) = self.copy(site, copy);
            let entry = entry.take().unwrap_or_else(|| self.step.books.made());
            excused &= self.refuse_call(site.thread, origin, ids.0, fault.clone(), misroute.clone(), entry);
        }
        excused
    }

    fn go_on(&mut self, site: &Site, payload: Validated<Element>, after: Duration, entry: Entry) -> bool {
        let key = site.thread;
        let (id, _) = self.setup.key.derive(site.message, site.index);
        self.call_emitted(site, payload.payload(), 0);
        let body = self.tree.room_in_mailbox(key).and_then(|()| self.judge.decode(site.listener, payload));
        match body {
            Ok(body) => {
                let content = Content::Body(body);
                let share = self.tree.count(key, content.size());
                let message = Queued::new(id, Sender::Listener(site.listener), content, share, entry);
                self.place_continue(key, message, after);
                true
            }
            Err(fault) => self.refuse_call(key, Origin::None, id, fault, None, entry),
        }
    }

    /// Puts a message at the tail of the thread's own mailbox.
    fn place_continue(&mut self, key: ThreadKey, message: Queued, after: Duration) {
        if after.is_zero() {
            self.enqueue(key, message);
        } else if self.entrance.is_draining() {
            self.step.books.cancelled(message.entry);
            self.tree.mark_drained(key);
        } else {
            self.tree.delay(key, message, after, &mut self.step);
        }
    }

    fn call_of(
        &self,
        site: &Site,
        target: ListenerId,
        payload: Validated<Element>,
        ids: (MessageId, ThreadId),
        origin: Origin,
    ) -> Call {
        Call {
            parent: site.thread,
            target,
            payload,
            origin,
            ids,
            from: Sender::Listener(site.listener),
            label: None,
            traceparent: self.tree[site.thread].traceparent().cloned(),
            deadline: Time::MAX,
            budget: None,
            spawned: false,
            permit: None,
        }
    }

    /// Notes an emission that is so many calls.
    fn call_emitted(&mut self, site: &Site, payload: &Canonical, calls: usize) {
        let own = &self.setup;
        let ids = |copy| own.key.derive(site.message, site.index + copy as u64).0;
        let about = match own.blueprint.contract(site.listener).context {
            true => About::Calls((0..calls).map(ids).collect()),
            false => About::Nothing,
        };
        self.emitted(site.thread, site.listener, payload, about);
    }

    /// Notes an emission of a handler: for operators, and for the context of its thread.
    pub(super) fn emitted(&mut self, key: ThreadKey, listener: ListenerId, payload: &Canonical, about: About) {
        self.tree.event(key, &mut self.step, || EventKind::Emitted { payload: payload.root().clone() });
        let contract = self.setup.blueprint.contract(listener);
        if contract.context {
            let from = contract.name.clone();
            self.tree.remember(key, (from, payload.clone()), about, &mut self.step);
        }
    }

    /// Ids and origin of the n-th index of one emission.
    fn copy(&self, site: &Site, n: u32) -> ((MessageId, ThreadId), Origin) {
        let ids = self.setup.key.derive(site.message, site.index + u64::from(n));
        let origin = match site.origin {
            Origin::Fan { fan, index } => Origin::Fan { fan, index: index + n },
            other => other,
        };
        (ids, origin)
    }
}
