//! Answers on their way up: to a mailbox, to a handler that waits, to a client, to the dead letters.

use std::sync::Arc;

use systole_xml::ladder::{Canonical, Element, Meta, Validated, write_envelope};

use super::blueprint::{ClientId, ListenerId};
use super::catch_panic::{Value, catch_panic};
use super::event::{Event, EventKind};
use super::fan_out::{FanOutKind, protocol_index};
use super::faults;
use super::io::{Answer, Body, Egress, Output, Remembered};
use super::key::ThreadKey;
use super::machine::Core;
use super::recover::stored;
use super::thread::{Content, Origin, Owner, Queued, Sender, Thread};
use super::write_ahead::Waits;
use crate::protocol;
use crate::vocab::{Fault, MessageId, Name, ThreadId, ThreadPath};

/// What travels up.
pub(super) enum Reply {
    Payload(Validated<Element>),
    Fault(Fault),
}

/// Where an answer to a listener comes from, and what it answers.
pub(super) struct Head {
    pub id: MessageId,
    pub in_reply_to: MessageId,
    pub origin: Origin,
    pub from: Sender,
}

/// Who gets an answer that leaves the organism.
pub(super) struct Recipient {
    pub client: ClientId,
    pub root: ThreadId,
    pub label: Option<Arc<str>>,
    pub traceparent: Option<Arc<str>>,
}

impl Core {
    /// Gives the thread's caller its only answer; then the thread is over.
    pub(super) fn answer(&mut self, key: ThreadKey, id: MessageId, reply: Reply) {
        let thread = &mut self.threads[key];
        let origin = std::mem::replace(&mut thread.origin, Origin::None);
        let (opened_by, parent, sender) = (thread.opened_by, thread.parent, sender_of(thread));
        self.log_owes(key);
        let Some(parent) = parent else { return self.bury_reply(key, sender, reply) };
        match self.threads[parent].owner {
            Owner::Client(client) => {
                let thread = &self.threads[key];
                let recipient = Recipient {
                    client,
                    root: self.threads[parent].id,
                    label: thread.label().cloned(),
                    traceparent: thread.traceparent().cloned(),
                };
                self.leave_for(recipient, sender, id, reply);
            }
            Owner::Nobody => self.bury_reply(key, sender, reply),
            Owner::Listener(_) if origin == Origin::None => self.bury_reply(key, sender, reply),
            Owner::Listener(listener) => {
                let head = Head { id, in_reply_to: opened_by, origin, from: sender };
                self.answer_listener(parent, listener, head, reply);
            }
        }
        self.answered(key, parent, origin);
    }

    /// Ends a thread with a fault in the name of its listener. The broken rule, if there is one,
    /// stays here: the caller need not know the contract that it belongs to.
    pub(super) fn fail(&mut self, key: ThreadKey, mut fault: Fault) {
        let opened_by = self.threads[key].opened_by;
        let (id, _) = self.key.derive(opened_by, protocol_index::FAULT);
        fault.in_reply_to = Some(opened_by);
        fault.rule = None;
        self.counts.made += 1;
        self.event(key, || EventKind::Faulted { fault: fault.clone(), misroute: None });
        self.answer(key, id, Reply::Fault(fault));
    }

    /// Ends a thread as [`Core::fail`] does, with a rule that operators find among the dead letters.
    pub(super) fn fail_shown(&mut self, key: ThreadKey, fault: Fault) {
        let sender = sender_of(&self.threads[key]);
        self.counts.made += 1;
        self.bury(key, (sender, None), None, fault.clone());
        self.fail(key, fault);
    }

    /// Refuses something that a thread said: the fault is the answer to that call.
    pub(super) fn fault_to(
        &mut self,
        key: ThreadKey,
        origin: Origin,
        about: MessageId,
        label: Option<Arc<str>>,
        mut fault: Fault,
    ) {
        fault.in_reply_to = Some(about);
        let (id, _) = self.key.derive(about, protocol_index::FAULT);
        self.counts.made += 1;
        let thread = &self.threads[key];
        match thread.owner {
            Owner::Client(client) => {
                let recipient = Recipient { client, root: thread.id, label, traceparent: None };
                self.leave_for(recipient, Sender::System, id, Reply::Fault(fault));
            }
            Owner::Nobody => self.bury_reply(key, Sender::System, Reply::Fault(fault)),
            Owner::Listener(listener) => {
                let head = Head { id, in_reply_to: about, origin, from: Sender::System };
                self.answer_listener(key, listener, head, Reply::Fault(fault));
            }
        }
    }

    /// Puts an answer where a listener's thread expects it.
    pub(super) fn answer_listener(&mut self, key: ThreadKey, listener: ListenerId, head: Head, reply: Reply) {
        let Head { id, in_reply_to, origin, from } = head;
        if let Origin::Fan { fan, index } = origin {
            match self.fans.get(fan).map(|fan| &fan.kind) {
                None => return self.counts.cancelled += 1,
                Some(FanOutKind::Awaited { .. }) => {
                    self.counts.delivered += 1;
                    let from = self.sender_name(from);
                    self.remember_reply(key, listener, &from, &reply);
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
            Reply::Payload(payload) => self.returned(listener, payload),
        };
        let permit = self.gauge.count(content.size());
        let share = self.share(key, permit);
        let in_reply_to = Some(in_reply_to);
        self.enqueue(key, Queued { in_reply_to, answers: origin, ..Queued::new(id, from, content, share) });
    }

    /// An awaited answer never enters the mailbox, but it belongs to the history.
    fn remember_reply(&mut self, key: ThreadKey, listener: ListenerId, from: &Name, reply: &Reply) {
        if self.blueprint.contract(listener).context {
            let payload = match reply {
                Reply::Payload(payload) => payload.payload().clone(),
                Reply::Fault(fault) => protocol::write_fault(fault),
            };
            self.remember(key, Remembered { from: from.clone(), payload });
        }
    }

    /// An answer as the listener takes it, or the end of a thread that doesn't.
    fn returned(&self, listener: ListenerId, payload: Validated<Element>) -> Content {
        let qname = payload.payload().root();
        if !self.blueprint.contract(listener).returns.contains(qname) {
            return Content::Fatal(faults::unreturned(qname));
        }
        match self.decode(listener, payload) {
            Ok(body) => Content::Body(body),
            Err(fault) => Content::Body(Body::Fault(fault)),
        }
    }

    /// Decodes a payload for a listener. A panic of its type is the listener's failure.
    pub(super) fn decode(&self, listener: ListenerId, payload: Validated<Element>) -> Result<Body, Fault> {
        let Some(decode) = self.decoders.get(listener, payload.payload().root()) else {
            return Err(faults::undecodable(&"no decoder is registered for it"));
        };
        let decoded = catch_panic(|| decode(&payload)).map_err(|_| faults::panicked())?;
        let value = Value::new(decoded.map_err(|error| faults::undecodable(&error))?);
        Ok(Body::Payload { payload, value })
    }

    /// A payload that the pump wrote itself, as a listener takes it.
    pub(super) fn own_payload(&mut self, listener: ListenerId, payload: Canonical) -> Result<Body, Fault> {
        let payload = self.validator.validate(payload).map_err(|error| faults::internal(&error))?;
        self.decode(listener, payload)
    }

    pub(super) fn enqueue(&mut self, key: ThreadKey, mut message: Queued) {
        self.log_put(key, &mut message, Waits::Turn);
        self.threads[key].mailbox.push(message);
        self.queued += 1;
        self.make_ready(key);
    }

    /// Something leaves for a client.
    pub(super) fn leave_for(&mut self, to: Recipient, from: Sender, id: MessageId, reply: Reply) {
        let from = match (&reply, from) {
            (_, Sender::Client(_)) => Name::system(),
            (_, sender) => self.sender_name(sender),
        };
        let (payload, proof, fault) = match reply {
            Reply::Payload(proof) => (proof.payload().clone(), Some(proof), None),
            Reply::Fault(mut fault) => {
                // Ids inside mean nothing outside: there, `in-reply-to` of the envelope says it.
                fault.in_reply_to = None;
                (protocol::write_fault(&fault), None, Some(fault))
            }
        };
        let meta = Meta {
            from: from.clone(),
            to: Some(self.blueprint.principal(to.client).name.clone()),
            thread: to.root,
            id,
            in_reply_to: to.label.as_deref().map(str::to_owned),
            deadline: None,
            traceparent: to.traceparent.as_deref().map(str::to_owned),
        };
        let envelope = write_envelope(&meta, &payload);
        self.counts.delivered += 1;
        let code = fault.as_ref().map(|fault| fault.code);
        self.root_event(to.root, || EventKind::Left { payload: payload.root().clone(), fault: code });
        let (client, root) = (to.client, to.root);
        let (number, in_reply_to) = (0, to.label);
        let mut egress = Egress { number, client, root, from, in_reply_to, envelope, fault, payload, proof };
        egress.number = self.log_egress(&egress);
        self.outputs.push_back(Output::Egress(egress));
    }

    pub(super) fn event(&mut self, key: ThreadKey, kind: impl FnOnce() -> EventKind) {
        // What a durable core that has ended leaves is not over.
        if self.events
            && !self.leaves()
            && let Some(thread) = self.threads.get(key)
        {
            let root = self.threads.get(thread.root).unwrap_or(thread).id;
            let event = Event { root, path: self.path(key), kind: kind() };
            self.outputs.push_back(Output::Event(event));
        }
    }

    /// Something happened at the root of a conversation, which need not be open.
    pub(super) fn root_event(&mut self, root: ThreadId, kind: impl FnOnce() -> EventKind) {
        if self.events {
            let path = ThreadPath::new(Vec::new());
            self.outputs.push_back(Output::Event(Event { root, path, kind: kind() }));
        }
    }
}

impl Content {
    pub(super) fn payload(self) -> Option<Canonical> {
        match self {
            Self::Body(Body::Payload { payload, .. }) => Some(payload.payload().clone()),
            Self::Stored(payload) => stored(payload).ok(),
            Self::Body(Body::Fault(_)) | Self::Fatal(_) => None,
        }
    }

    /// Bytes that it holds.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Body(Body::Payload { payload, .. }) => payload.payload().bytes().len(),
            Self::Stored(payload) => payload.len(),
            Self::Body(Body::Fault(fault)) | Self::Fatal(fault) => fault.message.len(),
        }
    }
}

fn sender_of(thread: &Thread) -> Sender {
    match thread.owner {
        Owner::Listener(listener) => Sender::Listener(listener),
        Owner::Client(client) => Sender::Client(client),
        Owner::Nobody => Sender::System,
    }
}
