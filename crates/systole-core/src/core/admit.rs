//! Messages at an entrance, taken from Queue 1.

use std::sync::Arc;

use systole_xml::ladder::{Canonical, Claims, Element, Envelope, Raw, Validated, climb};
use systole_xml::schema::{self, Catalog};

use super::answer::{Recipient, Reply};
use super::blueprint::{Blueprint, ClientId, ListenerId, Party};
use super::event::EventKind;
use super::fan_out::protocol_index;
use super::faults;
use super::gauge::Permit;
use super::io::{Attachment, Injected, Output, ShardId, ShardMessage};
use super::judge::{Refusal, Sound, Verdict};
use super::key::ThreadKey;
use super::machine::Core;
use super::meta::is_for_threads;
use super::misroute::Misroute;
use super::open::Call;
use super::thread::{Origin, Sender};
use crate::vocab::{Fault, FaultCode, MessageId, Name, ThreadId, Time, ns};

/// A message of a client that has been read.
pub(super) struct Entry {
    pub client: ClientId,
    pub root: ThreadId,
    remote: bool,
    last: bool,
    /// Its id, and that of the thread that it opens.
    pub ids: (MessageId, ThreadId),
    claims: Claims,
    label: Option<Arc<str>>,
    payload: Result<Canonical, Fault>,
    /// Its place on Queue 1, until the thread that it opens has it.
    permit: Option<Permit>,
    /// Operations that are written in the step that takes the message.
    pub attachment: Option<Attachment>,
}

/// Bytes of the label that a client may give a message: it is kept until the answer leaves.
pub(super) const LABEL: usize = 256;

/// Takes what a client sends up the ladder to its claims and its payload.
///
/// An entrance completes what the pump knows better than the client: an envelope may leave out `<meta>` or its `<from>`,
/// and a document may be a payload alone, if the client may call it or it is a request to the core. A root without a
/// namespace is the call that has its local name, as in what listeners write.
pub(super) fn read_message(
    raw: &Raw,
    client: ClientId,
    blueprint: &Blueprint,
    catalog: &Catalog,
) -> Result<(Claims, Canonical), Fault> {
    let (id, client) = (client, blueprint.principal(client));
    let document = climb(raw, &blueprint.limits.xml).map_err(|error| faults::malformed(&error))?;
    let complete = |payload| schema::guide(payload, client.calls.iter(), catalog);
    if document.root().namespace() == ns::ENVELOPE && document.root().local() == "message" {
        let envelope = Envelope::open_entered(document);
        let envelope =
            envelope.map_err(|error| faults::envelope(&error, &client.name, client.calls.iter(), catalog))?;
        let (claims, payload) = envelope.into_parts();
        return Ok((claims, complete(payload)));
    }
    let payload = complete(document);
    if blueprint.may_call(Party::Client(id), payload.root()) || payload.root().namespace() == ns::META {
        Ok((Claims::default(), payload))
    } else {
        Err(faults::no_message(&payload, client, catalog))
    }
}

impl Core {
    /// Takes one message of a client up the ladder and into its conversation.
    pub(super) fn admit(&mut self, message: Injected) {
        let Injected { client, root, remote, last, .. } = message;
        let is_lane = message.permit.is_lane();
        let read = if is_lane && !self.rate_limit.take(client, self.now) {
            Err(faults::overload())
        } else {
            read_message(&message.raw, client, &self.blueprint, &self.catalog)
        };
        let claimed = read.as_ref().ok().and_then(|(claims, _)| claims.thread.as_deref()?.parse().ok());
        let root = match self.conversation(client, claimed, root) {
            Ok(root) => root,
            Err(shard) => {
                self.counts.injected -= 1;
                return self.send(shard, ShardMessage::Injected(Box::new(message)));
            }
        };
        let ids = self.entry_id(root);
        let (claims, payload) = match read {
            Ok((claims, payload)) => (claims, Ok(payload)),
            Err(fault) => (Claims::default(), Err(fault)),
        };
        let label = claims.id.as_deref().filter(|label| label.len() <= LABEL).map(Arc::from);
        let (permit, attachment) = (Some(message.permit), message.attachment);
        let entry = Entry { client, root, remote, last, ids, claims, label, payload, permit, attachment };
        self.entry_events(&entry);
        self.enter(entry);
    }

    /// A message was taken in, or has its fault; or it is left. What is attached is written if it is kept.
    pub(super) fn taken(&mut self, attachment: Option<Attachment>, kept: bool) {
        let Some(Attachment { ops, ticket }) = attachment else { return };
        let kept = kept && !self.is_sealed();
        if kept {
            ops.into_iter().for_each(|op| self.log(|_| op));
        }
        self.outputs.push_back(Output::Taken { ticket, kept });
    }

    /// The conversation of a client that a message belongs to: the one that it names, if it is
    /// the client's own, else the one that the entrance gave it. An error is the shard of it.
    fn conversation(
        &mut self,
        client: ClientId,
        claimed: Option<ThreadId>,
        given: ThreadId,
    ) -> Result<ThreadId, ShardId> {
        for id in claimed.into_iter().chain([given]) {
            match self.directory.owned_by(id, client) {
                Some(shard) if shard == self.shard => return Ok(id),
                Some(shard) => return Err(shard),
                None => {}
            }
        }
        // Ids that entrances give are fresh. One that isn't must not open somebody else's door.
        let taken = self.directory.shard_of(given).is_some();
        Ok(if taken { self.entry_id(given).1 } else { given })
    }

    /// Lets a message into its conversation.
    fn enter(&mut self, mut entry: Entry) {
        let (client, root, last) = (entry.client, entry.root, entry.last);
        let verdict = self.judge_entry(&entry);
        let attachment = entry.attachment.take();
        self.let_in(entry, verdict);
        self.conclude_entry(client, root, last);
        self.taken(attachment, true);
    }

    fn judge_entry(&mut self, entry: &Entry) -> Result<Verdict, Fault> {
        let payload = entry.payload.as_ref().map_err(Clone::clone)?;
        may_enter(entry, payload)?;
        Ok(self.judge_call(entry.to().as_ref(), Some(Party::Client(entry.client)), Sound::Unproved(payload.clone())))
    }

    fn let_in(&mut self, entry: Entry, verdict: Result<Verdict, Fault>) {
        match verdict {
            Err(fault) => {
                let payload = entry.payload.as_ref().ok().cloned();
                self.refuse_entry(&entry, entry.ids.0, fault, payload, None);
            }
            Ok(Verdict::Call { first, others, payload }) => self.open_calls(entry, first, others, payload),
            Ok(Verdict::Core { request, .. }) => match self.ask_as_client(entry.client, entry.remote, request) {
                Ok(answer) => self.tell_client(&entry, answer),
                Err(fault) => self.refuse_entry(&entry, entry.ids.0, fault, None, None),
            },
            Ok(Verdict::Refused(Refusal { payload, fault, misroute, .. })) => {
                let calls = &self.blueprint.principal(entry.client).calls;
                let fault = match &payload {
                    Some(payload) if misroute.is_some() => faults::with_near(fault, payload.root(), calls),
                    _ => fault,
                };
                self.refuse_entry(&entry, entry.ids.0, fault, payload, misroute);
            }
            // A client has no thread that could reply, continue, or own another one.
            Ok(
                other @ (Verdict::Reply(_)
                | Verdict::Continue { .. }
                | Verdict::Addressed { .. }
                | Verdict::CloseThread { .. }
                | Verdict::Spawn { .. }),
            ) => {
                let payload = other.into_payload();
                let fault = payload.as_ref().map_or_else(faults::nobody_asked, |payload| faults::route(payload.root()));
                self.refuse_entry(&entry, entry.ids.0, fault, payload, None);
            }
        }
    }

    /// Opens a child of the conversation's root for each receiver.
    fn open_calls(
        &mut self,
        mut entry: Entry,
        first: ListenerId,
        others: Vec<ListenerId>,
        payload: Validated<Element>,
    ) {
        let parent = match self.client_root(entry.root, entry.client) {
            Ok(parent) => parent,
            Err(fault) => return self.refuse_entry(&entry, entry.ids.0, fault, None, None),
        };
        self.counts.made += others.len() as u64;
        for (copy, target) in (0..).zip(std::iter::once(first).chain(others)) {
            let ids = if copy == 0 { entry.ids } else { self.entry_id(entry.root) };
            let call = Call {
                parent,
                target,
                payload: payload.clone(),
                origin: Origin::Single,
                ids,
                from: Sender::Client(entry.client),
                label: entry.label.clone(),
                traceparent: entry.traceparent(),
                deadline: entry.claims.deadline.unwrap_or(Time::MAX),
                spawned: false,
                permit: entry.permit.take(),
            };
            if let Err(fault) = self.place(call) {
                self.refuse_entry(&entry, ids.0, fault, None, None);
            }
        }
    }

    fn tell_client(&mut self, entry: &Entry, answer: Canonical) {
        self.counts.delivered += 1;
        self.counts.made += 1;
        let (id, _) = self.key.derive(entry.ids.0, protocol_index::ANSWER);
        let (from, reply) = match self.validator.validate(answer) {
            Ok(payload) => (Sender::Core, Reply::Payload(payload)),
            Err(error) => (Sender::System, Reply::Fault(faults::internal(&error))),
        };
        self.leave_for(entry.recipient(), from, id, reply);
    }

    /// Answers a client's message with a fault.
    fn refuse_entry(
        &mut self,
        entry: &Entry,
        about: MessageId,
        fault: Fault,
        payload: Option<Canonical>,
        misroute: Option<Misroute>,
    ) {
        self.counts.faulted += 1;
        self.counts.made += 1;
        self.root_event(entry.root, || EventKind::Faulted { fault: fault.clone(), misroute });
        if fault.code == FaultCode::Route {
            let qname = payload.as_ref().map(|payload| payload.root().clone());
            self.root_event(entry.root, || EventKind::DeadLetter { payload: qname, reason: fault.code });
            self.counts.made += 1;
            self.bury_entry(entry.client, entry.to(), payload, fault.clone());
        }
        let (id, _) = self.key.derive(about, protocol_index::FAULT);
        self.leave_for(entry.recipient(), Sender::System, id, Reply::Fault(fault));
    }

    /// What a message does to its conversation, whatever became of the message. One that was
    /// never opened is closed: nothing more will leave it.
    fn conclude_entry(&mut self, client: ClientId, root: ThreadId, last: bool) {
        let Some(&key) = self.roots.get(&root) else {
            return self.outputs.push_back(Output::Closed { client, root });
        };
        self.touch_root(key);
        self.let_leave(key, last);
        self.settle(key);
    }

    fn let_leave(&mut self, key: ThreadKey, last: bool) {
        if last {
            self.mark_left(key);
        }
    }

    fn entry_events(&mut self, entry: &Entry) {
        let Ok(payload) = &entry.payload else { return };
        let blueprint = self.blueprint.clone();
        let client = &blueprint.principal(entry.client).name;
        let claimed = || Some(&*entry.claims.from).filter(|&from| !from.is_empty() && from != client.as_str());
        self.root_event(entry.root, || EventKind::Injected {
            message: entry.ids.0,
            from: client.clone(),
            claimed: claimed().map(str::to_owned),
        });
        if !payload.repairs().is_empty() {
            let repairs = || payload.repairs().to_vec();
            self.root_event(entry.root, || EventKind::Repaired { by: client.clone(), repairs: repairs() });
        }
    }
}

impl Entry {
    pub(super) fn recipient(&self) -> Recipient {
        Recipient { client: self.client, root: self.root, label: self.label.clone(), traceparent: self.traceparent() }
    }

    /// Whom it names. A text that is no name is nobody's name: routed like any other unknown one.
    fn to(&self) -> Option<Name> {
        self.claims.to.as_deref().map(|to| Name::parse(to).unwrap_or_else(|_| Name::root()))
    }

    /// A longer one is none (W3C Trace Context, section 3.2.2), and would be kept with the thread.
    fn traceparent(&self) -> Option<Arc<str>> {
        self.claims.traceparent.as_deref().filter(|text| text.len() <= LABEL).map(Arc::from)
    }
}

/// What keeps a message out before anybody asks whom it is for.
fn may_enter(entry: &Entry, payload: &Canonical) -> Result<(), Fault> {
    if entry.permit.as_ref().is_some_and(Permit::is_lane) && payload.root().namespace() != ns::META {
        return Err(faults::overload());
    }
    if entry.claims.id.as_deref().is_some_and(|label| label.len() > LABEL) {
        return Err(faults::limit(format_args!("the id of a message may have {LABEL} bytes")));
    }
    if is_for_threads(payload.root()) {
        return Err(faults::route(payload.root()));
    }
    Ok(())
}
