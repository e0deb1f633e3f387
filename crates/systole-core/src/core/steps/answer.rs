//! Answers on their way up: to a mailbox, to a handler that waits, to a client, to the dead letters.

use std::sync::Arc;

use systole_xml::ladder::{Canonical, Meta, write_envelope};
use systole_xml::schema::{Element, Validated};

use super::{Core, own_index};
use crate::core::blueprint::{ClientId, ListenerId};
use crate::core::books::Entry;
use crate::core::event::EventKind;
use crate::core::exit::ExitPlace;
use crate::core::faults;
use crate::core::io::{Answer, Body, Egress, Output};
use crate::core::key::ThreadKey;
use crate::core::misroute::Misroute;
use crate::core::queued::{Content, Origin, Queued, Sender};
use crate::core::tree::{About, FanOutKind, Owner};
use crate::journal::{EgressRecord, LetterPlace, Op};
use crate::protocol;
use crate::vocab::{Fault, MessageId, Name, Partition, ThreadId, ThreadPath};

/// An answer: a payload or a fault.
pub(super) enum Reply {
    Payload(Validated<Element>),
    Fault(Fault),
}

/// The head of an answer to a listener.
pub(super) struct Head {
    pub id: MessageId,
    pub in_reply_to: MessageId,
    pub origin: Origin,
    pub from: Sender,
}

/// The client that gets an answer which leaves the organism.
pub(super) struct Recipient {
    pub client: ClientId,
    pub root: ThreadId,
    pub label: Option<Arc<str>>,
    pub traceparent: Option<Arc<str>>,
    /// The place of the answer in the client's exit, if its entrance reserved one.
    pub place: Option<ExitPlace>,
}

impl Core {
    /// Gives the thread's caller its only answer; then the thread is over.
    pub(super) fn answer(&mut self, key: ThreadKey, id: MessageId, reply: Reply, entry: Entry) {
        let sender = self.tree[key].owner.sender();
        let owed = self.tree.take_owed(key, &mut self.step);
        let Some(parent) = owed.parent else { return self.keep_dead_reply(key, sender, reply, entry) };
        match self.tree[parent].owner {
            Owner::Client(client) => {
                let place = self.tree.take_place(parent);
                let thread = &self.tree[key];
                let recipient = Recipient {
                    client,
                    root: self.tree[parent].id,
                    label: thread.label().cloned(),
                    traceparent: thread.traceparent().cloned(),
                    place,
                };
                self.leave_for(recipient, sender, id, reply, entry);
            }
            Owner::Listener(listener) if owed.origin != Origin::None => {
                let head = Head { id, in_reply_to: owed.opened_by, origin: owed.origin, from: sender };
                self.answer_listener(parent, listener, head, reply, entry);
            }
            Owner::None | Owner::Listener(_) => self.keep_dead_reply(key, sender, reply, entry),
        }
        self.answered(key, parent, owed.origin);
    }

    /// Ends a thread with a fault in the name of its listener. The broken rule, if there is one,
    /// stays here: the caller need not know the contract that it belongs to.
    pub(super) fn fail(&mut self, key: ThreadKey, mut fault: Fault) {
        let opened_by = self.tree[key].opened_by;
        let (id, _) = self.setup.key.derive(opened_by, own_index::FAULT);
        fault.in_reply_to = Some(opened_by);
        fault.rule = None;
        let entry = self.step.books.made();
        self.tree.event(key, &mut self.step, || EventKind::Faulted { fault: fault.clone(), misroute: None });
        self.answer(key, id, Reply::Fault(fault), entry);
    }

    /// Ends a thread as [`Core::fail`] does, with a rule that operators find among the dead letters.
    pub(super) fn fail_shown(&mut self, key: ThreadKey, fault: Fault) {
        let sender = self.tree[key].owner.sender();
        let entry = self.step.books.made();
        self.keep_dead(key, (sender, None), None, fault.clone(), entry);
        self.fail(key, fault);
    }

    /// Refuses an emission with a fault; `false` if the emission was a mistake of its sender.
    pub(super) fn refuse_call(
        &mut self,
        key: ThreadKey,
        origin: Origin,
        about: MessageId,
        fault: Fault,
        misroute: Option<Misroute>,
        entry: Entry,
    ) -> bool {
        self.step.books.faulted(entry);
        self.tree.event(key, &mut self.step, || EventKind::Faulted { fault: fault.clone(), misroute });
        let counts = faults::counts_against(&fault);
        self.note_refusal(key, &fault);
        self.fault_to(key, origin, about, None, fault);
        !counts
    }

    /// Answers an emission of a thread with a fault.
    pub(super) fn fault_to(
        &mut self,
        key: ThreadKey,
        origin: Origin,
        about: MessageId,
        label: Option<Arc<str>>,
        mut fault: Fault,
    ) {
        fault.in_reply_to = Some(about);
        let (id, _) = self.setup.key.derive(about, own_index::FAULT);
        let entry = self.step.books.made();
        let thread = &self.tree[key];
        match thread.owner {
            Owner::Client(client) => {
                let recipient = Recipient { client, root: thread.id, label, traceparent: None, place: None };
                self.leave_for(recipient, Sender::System, id, Reply::Fault(fault), entry);
            }
            Owner::None => self.keep_dead_reply(key, Sender::System, Reply::Fault(fault), entry),
            Owner::Listener(listener) => {
                let head = Head { id, in_reply_to: about, origin, from: Sender::System };
                self.answer_listener(key, listener, head, Reply::Fault(fault), entry);
            }
        }
    }

    /// Puts an answer to where a listener's thread expects it.
    pub(super) fn answer_listener(
        &mut self,
        key: ThreadKey,
        listener: ListenerId,
        head: Head,
        reply: Reply,
        entry: Entry,
    ) {
        let Head { id, in_reply_to, origin, from } = head;
        if let Origin::Fan { fan, index } = origin {
            match self.tree.fan_out(fan).map(|fan| &fan.kind) {
                None => return self.step.books.cancelled(entry),
                Some(FanOutKind::Awaited { .. }) => {
                    self.step.books.delivered(entry);
                    let from = self.setup.name_of(from);
                    self.remember_reply(key, listener, &from, in_reply_to, &reply);
                    let outcome = match reply {
                        Reply::Payload(payload) => Ok(Answer { from, payload }),
                        Reply::Fault(fault) => Err(fault),
                    };
                    return self.settle_call(fan, index, outcome);
                }
                Some(FanOutKind::Mailbox { .. }) => {}
            }
        }
        let content = match reply {
            Reply::Fault(fault) => Content::Body(Body::Fault(fault)),
            Reply::Payload(payload) => self.judge.returned(listener, payload),
        };
        let share = self.tree.count(key, content.size());
        let in_reply_to = Some(in_reply_to);
        self.enqueue(key, Queued { in_reply_to, answers: origin, ..Queued::new(id, from, content, share, entry) });
    }

    /// An awaited answer never enters the mailbox, but it belongs to the history.
    fn remember_reply(&mut self, key: ThreadKey, listener: ListenerId, from: &Name, call: MessageId, reply: &Reply) {
        if self.setup.blueprint.contract(listener).context {
            let payload = match reply {
                Reply::Payload(payload) => payload.payload().clone(),
                Reply::Fault(fault) => protocol::write_fault(fault),
            };
            self.tree.remember(key, (from.clone(), payload), About::Answers(call), &mut self.step);
        }
    }

    /// Puts a message into a mailbox.
    pub(super) fn enqueue(&mut self, key: ThreadKey, message: Queued) {
        self.tree.put(key, message, &mut self.step);
        self.make_ready(key);
    }

    /// Sends an answer to a client.
    pub(super) fn leave_for(&mut self, to: Recipient, from: Sender, id: MessageId, reply: Reply, entry: Entry) {
        let from = match (&reply, from) {
            (_, Sender::Client(_)) => Name::system(),
            (_, sender) => self.setup.name_of(sender),
        };
        let (payload, proof, fault) = match reply {
            Reply::Payload(proof) => (proof.payload().clone(), Some(proof), None),
            Reply::Fault(mut fault) => {
                // Ids inside mean nothing outside: there, `in-reply-to` of the envelope says it.
                fault.in_reply_to = None;
                (protocol::write_fault(&fault), None, Some(fault))
            }
        };
        let client = &self.setup.blueprint.principal(to.client).name;
        let meta = Meta {
            from: from.clone(),
            to: Some(client.clone()),
            thread: to.root,
            id,
            in_reply_to: to.label.as_deref().map(str::to_owned),
            deadline: None,
            traceparent: to.traceparent.as_deref().map(str::to_owned),
        };
        let envelope = write_envelope(&meta, &payload);
        self.step.books.delivered(entry);
        let code = fault.as_ref().map(|fault| fault.code);
        self.step.out.root_event(to.root, || EventKind::Left {
            message: id,
            in_reply_to: to.label.clone(),
            payload: payload.root().clone(),
            fault: code,
        });
        let (root, in_reply_to) = (to.root, to.label);
        // A core writes nothing of partitions that it doesn't serve.
        let is_written = self.step.out.writes() && self.setup.partitions.contains(Partition::of(root));
        let number = if is_written { self.step.out.next_number() } else { 0 };
        if is_written {
            self.step.out.write(|| {
                Op::Leave(EgressRecord {
                    number,
                    client: client.clone(),
                    root,
                    from: from.clone(),
                    in_reply_to: in_reply_to.clone(),
                    envelope: envelope.clone(),
                    fault: fault.clone(),
                    payload: payload.bytes().clone(),
                })
            });
        }
        let (client, place) = (to.client, to.place);
        let egress = Egress { number, client, root, from, in_reply_to, envelope, fault, payload, proof };
        self.step.out.emit(Output::Egress { egress, place });
    }

    pub(super) fn keep_dead_reply(&mut self, key: ThreadKey, from: Sender, reply: Reply, entry: Entry) {
        let (payload, reason) = match reply {
            Reply::Payload(payload) => (Some(payload.payload().clone()), faults::unasked_reply()),
            Reply::Fault(fault) => (None, fault),
        };
        self.keep_dead(key, (from, None), payload, reason, entry);
    }

    /// Keeps an undeliverable message on a thread as a dead letter, with its sender and its addressee.
    pub(super) fn keep_dead(
        &mut self,
        key: ThreadKey,
        (from, to): (Sender, Option<Name>),
        payload: Option<Canonical>,
        reason: Fault,
        entry: Entry,
    ) {
        let qname = payload.as_ref().map(|payload| payload.root().clone());
        self.tree.event(key, &mut self.step, || EventKind::DeadLetter { payload: qname, reason: reason.code });
        let conversation = self.tree.get(key).map(|thread| self.tree[thread.root].id);
        let place = LetterPlace { conversation, path: self.tree.path(key) };
        let (from, place) = (self.setup.name_of(from), (self.tree.partition(key), place));
        self.step.books.dead(entry);
        self.tree.keep_dead((from, to), place, payload, reason, &mut self.step);
    }

    /// Keeps an undeliverable message that is on no thread as a dead letter, with its conversation if it was in one.
    pub(super) fn keep_dead_outside(
        &mut self,
        way: (Name, Option<Name>),
        (partition, conversation): (Partition, Option<ThreadId>),
        payload: Option<Canonical>,
        reason: Fault,
        entry: Entry,
    ) {
        self.step.books.dead(entry);
        let place = (partition, LetterPlace { conversation, path: ThreadPath::new(Vec::new()) });
        self.tree.keep_dead(way, place, payload, reason, &mut self.step);
    }
}
