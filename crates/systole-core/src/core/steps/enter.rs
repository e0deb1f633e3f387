//! The way of a message in: from an entrance to the mailbox of a thread.
//!
//! A client's message waits on the entrance queue (`inject`), is read and judged (`admit`), opens a child of its
//! conversation for each receiver (`open_calls`), and waits in its mailbox (`place`, `put`). A call of a listener comes in
//! at `place`.
//!
//! # Bounds
//! A thread that exceeds them fails.
//!
//! An emission makes one message for each of its indices: the request in the mailbox of a child, the answer
//! of the core, a continue, or the fault that refuses one of these. [`Core::room_for`] asks for the places of all
//! indices before an emission takes effect, also for what the core makes. Where there are none, the thread that emitted
//! fails, once, with one fault, and nothing more of its response takes effect. The bounds:
//!
//! - a thread holds `mailbox` open calls and messages; past it a call is refused with a fault, and such faults may
//!   take as many places again as one fan-out has;
//! - a conversation holds `conversation_threads` threads, `conversation_messages` messages and `conversation_bytes`
//!   bytes of them: in mailboxes and backlogs, delayed, and answers that handlers await;
//! - the organism holds `queue` messages and `queue_bytes` bytes; past it a call is refused with `overload`, and past
//!   twice as much a thread that emits anything but a reply or a continue fails with `overload`.
//!
//! Answers are never refused: each thread owes one answer at most, and its caller keeps a place for it from the moment
//! of the call. So a conversation holds at most one message for each of its threads beyond the bound. A reply that
//! finds no room for its bytes fails its thread, and the caller gets that fault in the same place.
//!
//! # Why this can't deadlock
//! Nothing waits for room: an emission that finds none ends its thread in the same step. A thread that ends frees what
//! it and the threads below it hold, and gives its caller an answer in a place that is kept. So each thread that waits
//! waits for a thread below it which is ready, runs, or waits itself; the leaves have messages or timeouts; and
//! every message that is dispatched frees its own place before its handler can ask for others. A conversation that is
//! full thus shrinks with each dispatch, or makes as many messages as it consumes, until it has room or is over.
//! A loop by `continue_with` consumes one message for each that it makes, so that it may run for ever.

use std::sync::Arc;

use systole_xml::ladder::{Canonical, Claims};
use systole_xml::schema::{Element, Validated};

use super::answer::{Recipient, Reply};
use super::{Core, own_index};
use crate::core::blueprint::{ClientId, ListenerId, Party, Version};
use crate::core::books::Entry;
use crate::core::conversation::Share;
use crate::core::directory::Home;
use crate::core::entrance::{Item, Phase};
use crate::core::event::{EventKind, Misroute};
use crate::core::exit::ExitPlace;
use crate::core::faults;
use crate::core::gauge::Permit;
use crate::core::io::{Arrival, AttachmentEnd, CoreId, CoreMessage, Injected, OrganismVersion, Output};
use crate::core::judge::{Asker, ParsedPayload, Refusal, Verdict, is_for_threads};
use crate::core::key::ThreadKey;
use crate::core::queued::{Content, Queued, ReplyTo, Sender};
use crate::core::read::{LABEL, ReadMessage, Unreadable, read_message};
use crate::core::tree::{Child, Owner, Root, Thread, WaitsFor};
use crate::journal::BudgetRecord;
use crate::protocol::MetaRequest;
use crate::vocab::{Amounts, Budget, Fault, FaultCode, MessageId, Name, Partition, ThreadId, Time, Traceparent, ns};

/// A message of a client that has been read.
struct Entered {
    client: ClientId,
    root: ThreadId,
    remote: bool,
    /// The id of the message, and that of the thread that it opens.
    ids: (MessageId, ThreadId),
    claims: Claims,
    label: Option<Arc<str>>,
    /// The caller's place in a trace.
    traceparent: Option<Traceparent>,
    payload: Result<Canonical, Unreadable>,
    /// The bytes before their repair, for operators.
    repaired: Option<(Arc<str>, usize)>,
    /// The place on the entrance queue, until the thread that it opens has it.
    permit: Option<Permit>,
    /// The place of its answer in the client's exit, until its conversation or its answer has it.
    place: Option<ExitPlace>,
}

/// A call that is about to open a thread.
pub(super) struct Call {
    pub parent: ThreadKey,
    pub target: ListenerId,
    pub payload: Validated<Element>,
    pub reply_to: ReplyTo,
    pub ids: (MessageId, ThreadId),
    pub from: Sender,
    pub label: Option<Arc<str>>,
    pub traceparent: Option<Traceparent>,
    pub deadline: Time,
    /// The budget that the message gives its thread.
    pub budget: Option<Box<Budget>>,
    pub spawned: bool,
    /// The place among the messages that wait, if it has one already.
    pub permit: Option<Permit>,
}

impl Core {
    /// Puts a message of a client on the entrance queue.
    pub(super) fn inject(&mut self, message: Injected) {
        let entry = self.step.books.injected();
        if self.setup.blueprint.client(message.client).is_none() {
            if let Some(attachment) = message.attachment {
                self.step.out.take(attachment, AttachmentEnd::Dropped);
            }
            let place = (self.setup.first_partition(), None);
            return self.dead_letter_outside((Name::system(), None), place, None, faults::unknown_client(), entry);
        }
        let principal = Some(message.client).into();
        let item = Item::Injected(message, entry);
        match self.entrance.phase == Phase::Stopped {
            true => self.abandon(item, &faults::cancelled()),
            false => self.entrance.push(principal, item),
        }
    }

    /// Takes one message of a client up the ladder and into its conversation.
    pub(super) fn admit(&mut self, message: Injected, entry: Entry) {
        let Injected { client, root, remote, last, message, permit, attachment, place } = message;
        let read = match message {
            _ if permit.is_in_reserve && !self.entrance.rate_limit.take(client, self.step.clock.steady()) => {
                Err(faults::overload().into())
            }
            Arrival::Raw(raw) => {
                let OrganismVersion { blueprint, catalog, .. } = &self.present;
                read_message(&raw, client, blueprint, catalog)
            }
            Arrival::Read(read) => *read,
        };
        let claimed = read.as_ref().ok().and_then(|read| read.claims.thread.as_deref()?.parse().ok());
        let root = match self.conversation_for(client, claimed, root) {
            Ok(root) => root,
            Err(core) => {
                let message = Arrival::Read(Box::new(read));
                let message = Injected { client, root, remote, last, message, permit, attachment, place };
                return self.hand_on(message, core, entry);
            }
        };
        let ids = self.entrance.next_ids(root);
        let (claims, payload, repaired, proof) = match read {
            Ok(ReadMessage { claims, payload, repaired, proof }) => (claims, Ok(payload), repaired, proof),
            Err(unreadable) => (Claims::default(), Err(unreadable), None, None),
        };
        let label = claims.id.as_deref().filter(|label| label.len() <= LABEL).map(Arc::from);
        // A message without a caller elsewhere belongs to that of its conversation.
        let of_conversation = || self.tree[*self.tree.roots.get(&root)?].traceparent();
        let traceparent = claims.traceparent.as_deref().and_then(Traceparent::parse).or_else(of_conversation);
        let permit = Some(permit);
        let entered =
            Entered { client, root, remote, ids, claims, label, traceparent, payload, repaired, permit, place };
        self.entry_events(&entered);
        let verdict = self.judge_entered(&entered, proof);
        self.let_in(entered, verdict, entry);
        self.conclude_entry(client, root, last);
        if let Some(attachment) = attachment {
            self.step.out.take(attachment, AttachmentEnd::Effective);
        }
    }

    /// The conversation of a client that a message belongs to: the one that it names, if it is
    /// the client's own, else the one that the entrance gave it. An error is the core of its partition.
    fn conversation_for(
        &mut self,
        client: ClientId,
        claimed: Option<ThreadId>,
        given: ThreadId,
    ) -> Result<ThreadId, Option<CoreId>> {
        let Home { root, core, is_taken } = self.tree.directory.conversation_for(client, claimed, given);
        if core != Some(self.setup.core) {
            return Err(core);
        }
        // Ids that entrances give are fresh. One that isn't must not open the conversation of another client.
        Ok(if is_taken { self.setup.first_partition().place(self.entrance.stray_ids().1) } else { root })
    }

    /// Hands a message on to the core of its conversation, or refuses it while no core serves that.
    fn hand_on(&mut self, message: Injected, core: Option<CoreId>, entry: Entry) {
        match core {
            Some(core) => {
                self.step.books.forwarded(entry);
                self.step.out.send(core, CoreMessage::Injected(Box::new(message)));
            }
            None => self.abandon(Item::Injected(message, entry), &faults::moving()),
        }
    }

    fn entry_events(&mut self, entered: &Entered) {
        let Ok(payload) = &entered.payload else { return };
        let client = &self.setup.blueprint[entered.client].name;
        let claimed = || Some(&*entered.claims.from).filter(|&from| !from.is_empty() && from != client.as_str());
        self.step.out.root_event((entered.root, entered.traceparent), self.step.clock.now, || EventKind::Injected {
            message: entered.ids.0,
            from: client.clone(),
            claimed: claimed().map(str::to_owned),
        });
        if !payload.repairs().is_empty() {
            let (repairs, message) = (|| payload.repairs().to_vec(), entered.ids.0);
            let (text, bytes) = entered.repaired.clone().unwrap_or_default();
            self.step.out.root_event((entered.root, entered.traceparent), self.step.clock.now, || {
                EventKind::Repaired { by: client.clone(), repairs: repairs(), message, text, bytes }
            });
        }
    }

    fn judge_entered(&mut self, entered: &Entered, proof: Option<Validated<Element>>) -> Result<Verdict, Fault> {
        let payload = entered.payload.as_ref().map_err(|unreadable| unreadable.fault.clone())?;
        may_enter(entered, payload)?;
        let caller = Some(Party::Client(entered.client));
        let mut judge = self.payloads.judge(self.version_of(entered.root));
        let sound = proof.map_or_else(|| ParsedPayload::Unproved(payload.clone()), |proof| judge.trusted(proof));
        Ok(judge.call(entered.to().as_ref(), caller, sound))
    }

    /// The version that a conversation of a client keeps; the present one if it is not open yet.
    fn version_of(&self, conversation: ThreadId) -> Version {
        self.tree.roots.get(&conversation).map_or(self.tree.version, |&root| self.version(root))
    }

    fn let_in(&mut self, mut entered: Entered, verdict: Result<Verdict, Fault>, entry: Entry) {
        let about = entered.ids.0;
        match verdict {
            Err(fault) => {
                let misroute = entered.payload.as_ref().err().and_then(|unreadable| unreadable.misroute.clone());
                let payload = entered.payload.as_ref().ok().cloned();
                self.refuse_entry(&mut entered, about, fault, payload, misroute, entry);
            }
            Ok(Verdict::Call { first, others, payload }) => self.open_calls(entered, first, others, payload, entry),
            Ok(Verdict::Core { request, .. }) => match self.ask_as_client(&entered, request) {
                Ok(answer) => self.tell_client(&mut entered, answer, entry),
                Err(fault) => self.refuse_entry(&mut entered, about, fault, None, None, entry),
            },
            Ok(Verdict::Refused(Refusal { payload, fault, misroute, .. })) => {
                let calls = &self.setup.blueprint[entered.client].calls;
                let fault = match &payload {
                    Some(payload) if misroute.is_some() => faults::with_near(fault, payload.root(), calls),
                    _ => fault,
                };
                self.refuse_entry(&mut entered, about, fault, payload, misroute, entry);
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
                let fault =
                    payload.as_ref().map_or_else(faults::unasked_reply, |payload| faults::route(payload.root()));
                self.refuse_entry(&mut entered, about, fault, payload, None, entry);
            }
        }
    }

    /// Opens a child of the conversation's root for each receiver.
    fn open_calls(
        &mut self,
        mut entered: Entered,
        first: ListenerId,
        others: Vec<ListenerId>,
        payload: Validated<Element>,
        entry: Entry,
    ) {
        let about = entered.ids.0;
        let parent = match self.client_root(entered.root, entered.client, entered.traceparent) {
            Ok(parent) => parent,
            Err(fault) => return self.refuse_entry(&mut entered, about, fault, None, None, entry),
        };
        let mut entry = Some(entry);
        for (copy, target) in (0..).zip(std::iter::once(first).chain(others)) {
            let ids = if copy == 0 { entered.ids } else { self.entrance.next_ids(entered.root) };
            let entry = entry.take().unwrap_or_else(|| self.step.books.made());
            let call = Call {
                parent,
                target,
                payload: payload.clone(),
                reply_to: ReplyTo::Single,
                ids,
                from: Sender::Client(entered.client),
                label: entered.label.clone(),
                traceparent: entered.traceparent,
                deadline: entered.claims.deadline.unwrap_or(Time::MAX),
                budget: entered.claims.budget.clone(),
                spawned: false,
                permit: entered.permit.take(),
            };
            match self.place(call, entry) {
                // The copies of a broadcast have answers of their own, which no entrance could foresee.
                Ok(_) => self.keep_place(parent, entered.place.take()),
                Err((fault, entry)) => self.refuse_entry(&mut entered, ids.0, fault, None, None, entry),
            }
        }
    }

    /// Keeps the place for the answer of a child that a client's message has opened.
    fn keep_place(&mut self, root: ThreadKey, place: Option<ExitPlace>) {
        let state =
            self.tree.threads.get_mut(root).and_then(|thread| thread.extra.get_or_insert_default().root.as_mut());
        let (Some(state), Some(place)) = (state, place) else { return };
        match &mut state.places {
            Some(places) => places.join(place),
            none => *none = Some(place),
        }
    }

    /// The root of a client's conversation, opened if it isn't there.
    fn client_root(
        &mut self,
        root: ThreadId,
        client: ClientId,
        traceparent: Option<Traceparent>,
    ) -> Result<ThreadKey, Fault> {
        if let Some(key) = self.tree.roots.get(&root).copied() {
            return Ok(key);
        }
        self.room_in_organism()?;
        let budget = self.root_budget(Owner::Client(client));
        let deadline = self.end_of(budget.as_deref());
        let opening = Root { id: root, owner: Owner::Client(client), traceparent, boot: false, deadline };
        let key = self.tree.open_root(opening, &mut self.step);
        self.open_account(key, budget);
        Ok(key)
    }

    /// Opens the thread of a call and puts the request into its mailbox.
    pub(super) fn place(&mut self, call: Call, entry: Entry) -> Result<ThreadKey, (Fault, Entry)> {
        let Call {
            parent, target, payload, reply_to, ids, from, label, traceparent, deadline, spawned, permit, ..
        } = call;
        let budget = self.child_budget(target, call.budget);
        let room = self.room_for_child(parent).and_then(|()| self.permit(permit, &payload));
        let placed = room.and_then(|permit| Ok((permit, self.payloads.decode(target, payload)?)));
        let (permit, body) = match placed {
            Ok(placed) => placed,
            Err(fault) => return Err((fault, entry)),
        };
        if let Err(fault) = self.charge_call(parent, 1) {
            return Err((fault, entry));
        }
        let deadline = deadline.min(self.end_of(budget.as_deref()));
        let child = Child { listener: target, ids, reply_to, label, traceparent, deadline, spawned };
        let key = self.tree.open_child(parent, child, &mut self.step);
        self.open_account(key, budget);
        let share = Share::new(self.tree.conversation(key), permit);
        self.put(key, Queued::new(ids.0, from, Content::Body(body), share, entry));
        Ok(key)
    }

    /// Puts a call on a spawned thread; it starts when the one before it is answered.
    pub(super) fn place_on(&mut self, key: ThreadKey, call: Call, entry: Entry) -> Result<(), (Fault, Entry)> {
        let Call { parent, target, payload, reply_to, ids, from, permit, .. } = call;
        let room = self.room_for_call(parent).and_then(|()| self.room_in_mailbox(key));
        let room = room.and_then(|()| self.permit(permit, &payload));
        let placed = room.and_then(|permit| Ok((permit, self.payloads.decode(target, payload)?)));
        let (permit, body) = match placed {
            Ok(placed) => placed,
            Err(fault) => return Err((fault, entry)),
        };
        if let Err(fault) = self.charge_call(parent, 0) {
            return Err((fault, entry));
        }
        let share = Share::new(self.tree.conversation(key), permit);
        let message = Queued::new(ids.0, from, Content::Body(body), share, entry);
        self.tree.put(key, message, WaitsFor::Call(reply_to), &mut self.step);
        self.next_call(key);
        Ok(())
    }

    /// The place of a payload among the messages that wait: the one that it has, or a new one.
    fn permit(&self, permit: Option<Permit>, payload: &Validated<Element>) -> Result<Permit, Fault> {
        let admit = || self.tree.gauge.admit(payload.payload().bytes().len()).map_err(|_| faults::overload());
        permit.map_or_else(admit, Ok)
    }

    /// Puts a message into a mailbox.
    pub(super) fn put(&mut self, key: ThreadKey, message: Queued) {
        self.tree.put(key, message, WaitsFor::Turn, &mut self.step);
        self.make_ready(key);
    }

    fn tell_client(&mut self, entered: &mut Entered, answer: Canonical, entry: Entry) {
        self.step.books.delivered(entry);
        let entry = self.step.books.made();
        let (id, _) = self.setup.key.derive(entered.ids.0, own_index::ANSWER);
        let (from, reply) = match self.payloads.validate(self.version_of(entered.root), answer) {
            Ok(payload) => (Sender::Core, Reply::Payload(payload)),
            Err(error) => (Sender::System, Reply::Fault(faults::internal(&error))),
        };
        self.send_to_client(entered.recipient(), from, id, reply, entry);
    }

    /// Answers a request of a client.
    fn ask_as_client(&mut self, entered: &Entered, request: MetaRequest) -> Result<Canonical, Fault> {
        let judge = self.payloads.judge(self.version_of(entered.root));
        let client = &judge.blueprint[entered.client];
        let asker = Asker { calls: &client.calls, replies: &[], admin: client.admin, remote: entered.remote };
        judge.knowledge(&asker, request).map(|answer| answer.write())
    }

    /// Answers a client's message with a fault.
    fn refuse_entry(
        &mut self,
        entered: &mut Entered,
        about: MessageId,
        fault: Fault,
        payload: Option<Canonical>,
        misroute: Option<Misroute>,
        entry: Entry,
    ) {
        self.step.books.faulted(entry);
        let answer = self.step.books.made();
        self.step.out.root_event((entered.root, entered.traceparent), self.step.clock.now, || EventKind::Faulted {
            fault: fault.clone(),
            misroute,
        });
        if fault.code == FaultCode::Route {
            let qname = payload.as_ref().map(|payload| payload.root().clone());
            self.step.out.root_event((entered.root, entered.traceparent), self.step.clock.now, || {
                EventKind::DeadLetter { payload: qname, reason: fault.code }
            });
            let dead = self.step.books.made();
            let from = self.setup.blueprint[entered.client].name.clone();
            let place = (Partition::of(entered.root), Some(entered.root));
            self.dead_letter_outside((from, entered.to()), place, payload, fault.clone(), dead);
        }
        let (id, _) = self.setup.key.derive(about, own_index::FAULT);
        self.send_to_client(entered.recipient(), Sender::System, id, Reply::Fault(fault), answer);
    }

    /// The effect of a message on its conversation, for any fate of the message. A conversation that was never opened
    /// is closed: nothing more will leave it.
    fn conclude_entry(&mut self, client: ClientId, root: ThreadId, last: bool) {
        let Some(key) = self.tree.roots.get(&root).copied() else {
            return self.step.out.emit(Output::Closed { client, root });
        };
        if let Some(idle) = self.tree[key].extra.get_or_insert_default().timer.take() {
            self.step.clock.cancel(idle);
        }
        if last {
            self.mark_left(key);
        }
        self.tree.touch(key);
    }

    /// The budget of a root, if it has one: that of the organism, narrowed by that of its client.
    pub(super) fn root_budget(&self, owner: Owner) -> Option<Box<Budget>> {
        let blueprint = &self.setup.blueprint;
        match owner {
            Owner::Client(client) => narrowed(&blueprint.budget, &blueprint[client].budget),
            Owner::Listener(_) | Owner::None => narrowed(&blueprint.budget, &Budget::NONE),
        }
    }

    /// The budget of a thread of a listener, if it has one: that of its contract, narrowed by that of the message that
    /// opens it.
    pub(super) fn child_budget(&self, listener: ListenerId, of_message: Option<Box<Budget>>) -> Option<Box<Budget>> {
        narrowed(&self.setup.blueprint[listener].budget, of_message.as_deref().unwrap_or(&Budget::NONE))
    }

    /// The end of a thread that opens now, as its budget bounds it.
    pub(super) fn end_of(&self, budget: Option<&Budget>) -> Time {
        budget.and_then(|budget| budget.time).map_or(Time::MAX, |time| self.step.clock.now.after(time))
    }

    /// Opens the account of a thread that has just opened, if it has a budget.
    pub(super) fn open_account(&mut self, key: ThreadKey, budget: Option<Box<Budget>>) {
        let Some(budget) = budget.map(|budget| budget.time(None)).filter(|budget| !budget.is_none()) else {
            return;
        };
        let above = self.account(key);
        let record = BudgetRecord { thread: self.tree[key].sequence, budget, spent: Amounts::default() };
        self.budgets.open(key, record, above, Some(&mut self.step));
    }

    /// Charges a call of a thread, which opens so many threads.
    pub(super) fn charge_call(&mut self, caller: ThreadKey, threads: u64) -> Result<(), Fault> {
        match self.account(caller) {
            Some(account) => {
                let amounts = Amounts { calls: 1, threads, ..Amounts::default() };
                self.budgets.charge(account, amounts, &mut self.step)
            }
            None => Ok(()),
        }
    }

    /// The account to which a use of a thread is charged.
    pub(super) fn account(&self, key: ThreadKey) -> Option<ThreadKey> {
        if self.budgets.is_empty() {
            return None;
        }
        self.budgets.nearest(std::iter::successors(Some(key), |&key| self.tree.threads.get(key)?.parent))
    }
}

/// Room for messages and threads.
impl Core {
    /// Checks that an emission of a thread may take effect; the fault ends the thread.
    pub(super) fn room_for(&self, key: ThreadKey, verdict: &Verdict) -> Result<(), Fault> {
        let (messages, threads) = match verdict {
            // An emission that ends a thread needs no room.
            Verdict::Reply(_) | Verdict::CloseThread { .. } => return Ok(()),
            Verdict::Call { others, .. } => (1 + others.len(), 1 + others.len()),
            Verdict::Spawn { .. } => (verdict.width(), 1),
            Verdict::Continue { .. } | Verdict::Addressed { .. } | Verdict::Core { .. } => (1, 0),
            Verdict::Refused(refusal) => (refusal.width.max(1), 0),
        };
        if !matches!(verdict, Verdict::Continue { .. }) && self.tree.gauge.is_flooded() {
            return Err(faults::overload());
        }
        self.room_over_mailbox(key, messages)?;
        self.room_in_conversation(key, messages, threads)
    }

    /// Checks that so many messages fit into the mailbox of a thread and the room for refusals beyond it.
    fn room_over_mailbox(&self, key: ThreadKey, messages: usize) -> Result<(), Fault> {
        let limits = &self.setup.blueprint.limits;
        match reserved(&self.tree[key]) + messages > limits.mailbox.saturating_add(limits.fanout) {
            true => Err(mailbox_full(limits.mailbox)),
            false => Ok(()),
        }
    }

    /// Checks that the conversation of a thread may hold so many more messages and threads.
    pub(super) fn room_in_conversation(&self, key: ThreadKey, messages: usize, threads: usize) -> Result<(), Fault> {
        let limits = &self.setup.blueprint.limits;
        let root = &self.tree[self.tree[key].root];
        let Some(state) = root.root_state() else { return Ok(()) };
        if threads > 0 && state.live_threads as usize + threads > limits.conversation_threads {
            return Err(faults::limit(format_args!("a conversation may have {} threads", limits.conversation_threads)));
        }
        let conversation = state.conversation.as_ref();
        let held = conversation.map_or(0, |conversation| conversation.messages());
        if messages > 0 && held + messages > limits.conversation_messages {
            let limit = limits.conversation_messages;
            return Err(faults::limit(format_args!("a conversation may hold {limit} messages at once")));
        }
        let (bytes, limit) = (conversation.map_or(0, |conversation| conversation.bytes()), limits.conversation_bytes);
        if bytes >= limit {
            return Err(faults::limit(format_args!("a conversation may hold messages of {limit} bytes at once")));
        }
        Ok(())
    }

    /// Checks that a thread may make one more call.
    pub(super) fn room_for_call(&self, parent: ThreadKey) -> Result<(), Fault> {
        let limits = &self.setup.blueprint.limits;
        let thread = &self.tree[parent];
        if u32::from(thread.depth) >= limits.thread_depth {
            return Err(faults::limit(format_args!(
                "calls can be {} deep, and this would be deeper",
                limits.thread_depth
            )));
        }
        self.room_in_mailbox(parent)
    }

    /// Checks that one more message may come to a thread, or be promised to it.
    pub(super) fn room_in_mailbox(&self, key: ThreadKey) -> Result<(), Fault> {
        let limit = self.setup.blueprint.limits.mailbox;
        if reserved(&self.tree[key]) >= limit {
            return Err(mailbox_full(limit));
        }
        Ok(())
    }

    /// Checks that a thread may open one more child.
    pub(super) fn room_for_child(&self, parent: ThreadKey) -> Result<(), Fault> {
        self.room_for_call(parent)?;
        self.room_in_conversation(parent, 1, 1)?;
        self.room_in_organism()
    }

    /// Checks that the organism may have one more thread.
    pub(super) fn room_in_organism(&self) -> Result<(), Fault> {
        let limit = self.setup.blueprint.limits.threads;
        if self.tree.directory.threads() >= limit {
            return Err(faults::limit(format_args!("the organism may have {limit} threads")));
        }
        Ok(())
    }
}

impl Entered {
    /// The recipient of an answer, with the place of the message's answer if that isn't taken.
    fn recipient(&mut self) -> Recipient {
        Recipient {
            client: self.client,
            root: self.root,
            label: self.label.clone(),
            traceparent: self.traceparent,
            place: self.place.take(),
        }
    }

    /// The listener that it names. A text that is no name is routed like any other unknown one.
    fn to(&self) -> Option<Name> {
        self.claims.to.as_deref().map(|to| Name::parse(to).unwrap_or_else(|_| Name::root()))
    }
}

/// Refuses messages that may not enter, regardless of their target.
fn may_enter(entered: &Entered, payload: &Canonical) -> Result<(), Fault> {
    if entered.permit.as_ref().is_some_and(|permit| permit.is_in_reserve) && payload.root().namespace() != ns::META {
        return Err(faults::overload());
    }
    if entered.claims.id.as_deref().is_some_and(|label| label.len() > LABEL) {
        return Err(faults::limit(format_args!("the id of a message may have {LABEL} bytes")));
    }
    if is_for_threads(payload.root()) {
        return Err(faults::route(payload.root()));
    }
    Ok(())
}

/// The smaller amounts of both, if either bounds anything. In a box, since mostly there are none, and a call holds them.
fn narrowed(budget: &Budget, by: &Budget) -> Option<Box<Budget>> {
    if budget.is_none() && by.is_none() { None } else { Some(Box::new(budget.narrowed(*by))) }
}

/// Slots in the mailbox of a thread that are taken: by messages, also delayed ones and calls that wait on it, and by promised
/// answers.
fn reserved(thread: &Thread) -> usize {
    let queued = thread.mailbox.as_ref().map_or(0, |mailbox| mailbox.len());
    let beside = thread
        .extra
        .as_ref()
        .map_or(0, |extra| extra.continues.len() + extra.spawned.as_ref().map_or(0, |backlog| backlog.len()));
    thread.children.open as usize + queued + beside
}

pub(super) fn mailbox_full(limit: usize) -> Fault {
    faults::limit(format_args!("a thread may have {limit} open calls and messages together"))
}
