//! Calls: boot, children for calls, spawned threads, and requests to the core.

use std::collections::HashSet;
use std::sync::Arc;

use systole_xml::ladder::Canonical;
use systole_xml::schema::{Element, Validated};

use super::answer::{Head, Reply};
use super::effect::Site;
use super::{Core, own_index};
use crate::core::blueprint::{ClientId, ListenerId};
use crate::core::books::Entry;
use crate::core::contract::Access;
use crate::core::faults;
use crate::core::gauge::Permit;
use crate::core::io::Body;
use crate::core::key::ThreadKey;
use crate::core::meta::Asker;
use crate::core::queued::{Content, Origin, Queued, Sender};
use crate::core::tree::{Child, Owner};
use crate::protocol::{self, Boot, MetaAnswer, MetaRequest};
use crate::vocab::{Budget, Fault, MessageId, QName, ThreadId, Time};

/// A call that is about to open a thread.
pub(super) struct Call {
    pub parent: ThreadKey,
    pub target: ListenerId,
    pub payload: Validated<Element>,
    pub origin: Origin,
    pub ids: (MessageId, ThreadId),
    pub from: Sender,
    pub label: Option<Arc<str>>,
    pub traceparent: Option<Arc<str>>,
    pub deadline: Time,
    /// The budget that the message gives its thread.
    pub budget: Option<Box<Budget>>,
    pub spawned: bool,
    /// The place among the messages that wait, if it has one already.
    pub permit: Option<Permit>,
}

impl Core {
    /// Sends `<boot>` to each listener that accepts it, on threads below a root without an owner.
    pub(super) fn boot(&mut self, root: ThreadId) {
        let qname = protocol::boot_qname();
        let booting = self.tree.in_order(|_| true).into_iter().filter(|&key| self.is_booting(key));
        let resumed: HashSet<_> = booting.filter_map(|key| self.tree[key].listener()).collect();
        let mut listeners: Vec<ListenerId> = self.setup.blueprint.accepting(&qname).to_vec();
        listeners.retain(|listener| !resumed.contains(listener));
        if listeners.is_empty() {
            return;
        }
        let parent = self.tree.open_root(root, Owner::None, true, Time::MAX, &mut self.step);
        for (index, listener) in (1..).zip(listeners) {
            let entry = self.step.books.made();
            let ids = self.setup.key.derive_entry(root, index);
            match self.boot_body(listener) {
                Ok(body) => {
                    let key = self.tree.open_child(parent, Child::new(listener, ids), &mut self.step);
                    let share = self.tree.count(key, 0);
                    self.enqueue(key, Queued::new(ids.0, Sender::System, Content::Body(body), share, entry));
                }
                Err(fault) => self.keep_dead(parent, (Sender::System, None), None, fault, entry),
            }
        }
        self.tree.touch(parent);
    }

    /// The payload of `<boot>` at this start.
    pub(super) fn boot_body(&mut self, listener: ListenerId) -> Result<Body, Fault> {
        let boot = Boot {
            organism: self.setup.blueprint.organism.clone(),
            started: self.setup.started,
            listeners: self.setup.blueprint.listeners().count(),
        };
        self.judge.own_payload(listener, boot.write())
    }

    /// Opens the thread of a call and puts the request into its mailbox.
    pub(super) fn place(&mut self, call: Call, entry: Entry) -> Result<ThreadKey, (Fault, Entry)> {
        let Call { parent, target, payload, origin, ids, from, label, traceparent, deadline, spawned, permit, .. } =
            call;
        let budget = self.child_budget(target, call.budget);
        let room = self.tree.room_for_child(parent).and_then(|()| self.tree.permit(permit, &payload));
        let placed = room.and_then(|permit| Ok((permit, self.judge.decode(target, payload)?)));
        let (permit, body) = match placed {
            Ok(placed) => placed,
            Err(fault) => return Err((fault, entry)),
        };
        if let Err(fault) = self.charge_call(parent, 1) {
            return Err((fault, entry));
        }
        let deadline = deadline.min(self.end_of(budget.as_deref()));
        let child = Child { listener: target, ids, origin, label, traceparent, deadline, spawned };
        let key = self.tree.open_child(parent, child, &mut self.step);
        self.open_account(key, budget);
        let share = self.tree.share(key, permit);
        self.enqueue(key, Queued::new(ids.0, from, Content::Body(body), share, entry));
        Ok(key)
    }

    /// Puts a call on a spawned thread; it starts when the one before it is answered.
    pub(super) fn place_on(&mut self, key: ThreadKey, call: Call, entry: Entry) -> Result<(), (Fault, Entry)> {
        let Call { parent, target, payload, origin, ids, from, permit, .. } = call;
        let room = self.tree.room_for_call(parent).and_then(|()| self.tree.room_in_mailbox(key));
        let room = room.and_then(|()| self.tree.permit(permit, &payload));
        let placed = room.and_then(|permit| Ok((permit, self.judge.decode(target, payload)?)));
        let (permit, body) = match placed {
            Ok(placed) => placed,
            Err(fault) => return Err((fault, entry)),
        };
        if let Err(fault) = self.charge_call(parent, 0) {
            return Err((fault, entry));
        }
        let share = self.tree.share(key, permit);
        let message = Queued::new(ids.0, from, Content::Body(body), share, entry);
        self.tree.put_call(key, message, origin, &mut self.step);
        self.next_call(key);
        Ok(())
    }

    /// Answers a request of a thread; `false` if it should not have been made.
    pub(super) fn ask_core(
        &mut self,
        site: &Site,
        origin: Origin,
        about: MessageId,
        request: MetaRequest,
        entry: Entry,
    ) -> bool {
        let key = site.thread;
        let contract = self.setup.blueprint.contract(site.listener);
        let asker = Asker { calls: &contract.calls, replies: &contract.replies, admin: false, remote: false };
        let answer = self.tree.room_in_mailbox(key).and_then(|()| match request {
            MetaRequest::ClearContext => {
                may_touch(self.setup.blueprint.meta.clear_context, &request.qname())?;
                self.tree.clear_history(key, &mut self.step);
                Ok(MetaAnswer::ContextCleared)
            }
            request => self.judge.knowledge(&asker, request),
        });
        match answer {
            Ok(answer) => {
                self.step.books.delivered(entry);
                self.tell(site, origin, about, &answer);
                true
            }
            Err(fault) => self.refuse_call(key, origin, about, fault, None, entry),
        }
    }

    /// Answers a request of a client.
    pub(super) fn ask_as_client(
        &mut self,
        client: ClientId,
        remote: bool,
        request: MetaRequest,
    ) -> Result<Canonical, Fault> {
        let client = self.setup.blueprint.principal(client);
        let asker = Asker { calls: &client.calls, replies: &[], admin: client.admin, remote };
        self.judge.knowledge(&asker, request).map(|answer| answer.write())
    }

    /// Opens a spawned thread for its owner and puts the first call on it; `false` if that should
    /// not have been asked for.
    pub(super) fn spawn(
        &mut self,
        site: &Site,
        told: Origin,
        ids: (MessageId, ThreadId),
        call: Call,
        request: &QName,
        entry: Entry,
    ) -> bool {
        let (first, about) = (call.origin, call.ids.0);
        let first_entry = self.step.books.made();
        let placed = match may_touch(self.setup.blueprint.meta.spawn_thread, request) {
            Ok(()) => self.place(call, first_entry),
            Err(fault) => Err((fault, first_entry)),
        };
        match placed {
            Ok(_) => {
                self.step.books.delivered(entry);
                self.tell(site, told, ids.0, &MetaAnswer::ThreadSpawned(ids.1));
                true
            }
            Err((fault, first_entry)) => {
                self.refuse_call(site.thread, told, ids.0, fault.clone(), None, entry);
                self.refuse_call(site.thread, first, about, fault, None, first_entry)
            }
        }
    }

    fn tell(&mut self, site: &Site, origin: Origin, about: MessageId, answer: &MetaAnswer) {
        let (id, _) = self.setup.key.derive(about, own_index::ANSWER);
        let entry = self.step.books.made();
        let reply = match self.judge.validate(answer.write()) {
            Ok(payload) => Reply::Payload(payload),
            Err(error) => Reply::Fault(faults::internal(&error)),
        };
        let head = Head { id, in_reply_to: about, origin, from: Sender::Core };
        self.answer_listener(site.thread, site.listener, head, reply, entry);
    }
}

/// Checks that a listener may change something on its own threads.
fn may_touch(access: Access, request: &QName) -> Result<(), Fault> {
    match access {
        Access::Peers | Access::Authenticated => Ok(()),
        Access::None | Access::Admin => Err(faults::route(request)),
    }
}
