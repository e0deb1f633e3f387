//! What emissions do once they are judged: calls are placed, questions to the core answered,
//! the rest refused.

use std::time::Duration;

use systole_xml::ladder::{Canonical, Element, Validated};

use super::blueprint::ListenerId;
use super::event::EventKind;
use super::faults;
use super::io::Remembered;
use super::judge::{Refusal, Verdict};
use super::key::{FanOutKey, ThreadKey};
use super::machine::Core;
use super::misroute::Misroute;
use super::open::Call;
use super::respond::Source;
use super::thread::{Content, Origin, Queued, Sender};
use crate::vocab::{Fault, FaultCode, MessageId, ThreadId, Time};

/// Where one call comes from.
struct Site {
    thread: ThreadKey,
    listener: ListenerId,
    message: MessageId,
    /// The index for derived ids.
    index: u64,
    /// Where its answer goes; one more for each further index of the same emission.
    origin: Origin,
}

impl Core {
    /// Lets emissions take effect, one by one; whether any of them was valid. The first that finds no room fails the
    /// thread.
    pub(super) fn take_effect(
        &mut self,
        thread: ThreadKey,
        listener: ListenerId,
        source: Source,
        fan: Option<FanOutKey>,
        verdicts: Vec<Verdict>,
    ) -> bool {
        let Source { message, index: first, .. } = source;
        let (mut next, mut valid) = (0, false);
        let mut verdicts = (0..).zip(verdicts);
        while let Some((position, verdict)) = verdicts.next() {
            let origin = match fan {
                _ if verdict.width() == 0 => Origin::None,
                Some(fan) => Origin::Fan { fan, index: next },
                None => Origin::Single,
            };
            // What is no call takes no index of the fan-out: its ids come from a range of their own.
            let index = if verdict.width() == 0 { OWN + first + position } else { first + u64::from(next) };
            next += verdict.width() as u32;
            if self.is_decided(origin) {
                self.counts.cancelled += 1;
                continue;
            }
            if let Err(fault) = self.room_for(thread, &verdict) {
                self.counts.faulted += 1;
                self.counts.cancelled += verdicts.count() as u64;
                self.fail(thread, fault);
                return true;
            }
            valid |= self.effect(Site { thread, listener, message, index, origin }, verdict);
        }
        valid
    }

    /// Lets one emission take effect; `false` if its emitter should not have made it.
    fn effect(&mut self, site: Site, verdict: Verdict) -> bool {
        let key = site.thread;
        match verdict {
            // Replies are answers, and awaited calls are none.
            Verdict::Reply(payload) => {
                let sender = Sender::Listener(site.listener);
                self.bury(key, (sender, None), Some(payload.payload().clone()), faults::nobody_asked());
                false
            }
            Verdict::Continue { payload, after } => self.go_on(&site, payload, after),
            Verdict::Call { first, others, payload } => {
                self.emitted(key, site.listener, payload.payload());
                self.counts.made += others.len() as u64;
                let mut valid = false;
                for (copy, target) in (0..).zip(std::iter::once(first).chain(others)) {
                    let (ids, origin) = site.copy(copy, self);
                    // A copy that was refused may have decided the group.
                    if self.is_decided(origin) {
                        self.counts.cancelled += 1;
                        continue;
                    }
                    let call = self.call_of(&site, target, payload.clone(), ids, origin);
                    valid |= match self.place(call) {
                        Ok(_) => true,
                        Err(fault) => self.refuse_call(key, origin, ids.0, fault, None),
                    };
                }
                valid
            }
            Verdict::Addressed { thread, payload } => {
                self.emitted(key, site.listener, payload.payload());
                let (ids, origin) = site.copy(0, self);
                let Some(target) = self.threads.get(thread).and_then(|thread| thread.listener()) else {
                    return self.refuse_call(
                        key,
                        origin,
                        ids.0,
                        faults::route(payload.payload().root()),
                        Some(Misroute::UnknownThread),
                    );
                };
                let call = self.call_of(&site, target, payload, ids, origin);
                match self.place_on(thread, call) {
                    Ok(()) => true,
                    Err(fault) => self.refuse_call(key, origin, ids.0, fault, None),
                }
            }
            Verdict::CloseThread { thread, payload } => {
                self.emitted(key, site.listener, &payload);
                self.counts.delivered += 1;
                self.close_spawned(key, thread);
                let (ids, origin) = site.copy(0, self);
                self.count_off(key, origin, ids.0);
                true
            }
            Verdict::Core { request, payload } => {
                self.emitted(key, site.listener, &payload);
                let (ids, origin) = site.copy(0, self);
                self.ask_core(key, site.listener, origin, ids.0, request)
            }
            Verdict::Spawn { target, first, payload } => {
                self.emitted(key, site.listener, &payload);
                let (spawned, told) = site.copy(0, self);
                let (ids, origin) = site.copy(1, self);
                let call = Call { spawned: true, ..self.call_of(&site, target, first, (ids.0, spawned.1), origin) };
                self.spawn(key, site.listener, told, spawned, call, payload.root())
            }
            Verdict::Refused(refusal) => self.refuse(&site, refusal),
        }
    }

    /// Refuses an emission: a fault for each index that it holds.
    fn refuse(&mut self, site: &Site, refusal: Refusal) -> bool {
        let Refusal { to, payload, fault, misroute, width } = refusal;
        if payload.is_some() || fault.code == FaultCode::Route {
            self.counts.made += 1;
            self.bury(site.thread, (Sender::Listener(site.listener), to), payload, fault.clone());
        }
        let mut excused = true;
        for copy in 0..width.max(1) as u32 {
            let (ids, origin) = site.copy(copy, self);
            self.counts.made += u64::from(copy > 0);
            excused &= self.refuse_call(site.thread, origin, ids.0, fault.clone(), misroute.clone());
        }
        excused
    }

    /// Refuses what was counted as emitted; `false` if it should not have been.
    pub(super) fn refuse_call(
        &mut self,
        key: ThreadKey,
        origin: Origin,
        about: MessageId,
        fault: Fault,
        misroute: Option<Misroute>,
    ) -> bool {
        self.counts.faulted += 1;
        self.event(key, || EventKind::Faulted { fault: fault.clone(), misroute });
        let is_mistake = faults::is_mistake(&fault);
        self.fault_to(key, origin, about, None, fault);
        !is_mistake
    }

    /// Whether a call belongs to a group that has its result already.
    fn is_decided(&self, origin: Origin) -> bool {
        matches!(origin, Origin::Fan { fan, .. } if !self.fans.contains_key(fan))
    }

    fn go_on(&mut self, site: &Site, payload: Validated<Element>, after: Duration) -> bool {
        let key = site.thread;
        let (id, _) = self.key.derive(site.message, site.index);
        self.emitted(key, site.listener, payload.payload());
        let body = self.room_in_mailbox(key).and_then(|()| self.decode(site.listener, payload));
        match body {
            Ok(body) => {
                let content = Content::Body(body);
                let permit = self.gauge.count(content.size());
                let share = self.share(key, permit);
                let from = Sender::Listener(site.listener);
                let message = Queued::new(id, from, content, share);
                self.place_continue(key, message, after);
                true
            }
            Err(fault) => self.refuse_call(key, Origin::None, id, fault, None),
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
            traceparent: self.threads[site.thread].traceparent().cloned(),
            deadline: Time::MAX,
            spawned: false,
            permit: None,
        }
    }

    /// Notes what a handler said: for operators, and for the context of its thread.
    pub(super) fn emitted(&mut self, key: ThreadKey, listener: ListenerId, payload: &Canonical) {
        self.event(key, || EventKind::Emitted { payload: payload.root().clone() });
        if self.blueprint.contract(listener).context {
            let from = self.blueprint.contract(listener).name.clone();
            self.remember(key, Remembered { from, payload: payload.clone() });
        }
    }
}

/// Indices of emissions that are no calls.
const OWN: u64 = 1 << 32;

impl Site {
    /// Ids and origin of the n-th index of one emission.
    fn copy(&self, n: u32, core: &Core) -> ((MessageId, ThreadId), Origin) {
        let ids = core.key.derive(self.message, self.index + u64::from(n));
        let origin = match self.origin {
            Origin::Fan { fan, index } => Origin::Fan { fan, index: index + n },
            other => other,
        };
        (ids, origin)
    }
}
