//! Answers on their way up, to a mailbox, to a handler that waits, to a client or to the dead letters; and the end of
//! threads, which have given their answer, are silent, or are cancelled.

use std::rc::Rc;
use std::sync::Arc;

use systole_xml::ladder::{Canonical, Meta, write_envelope};
use systole_xml::schema::{Element, Validated};
use uuid::Uuid;

use super::{Core, own_index};
use crate::core::blueprint::{ClientId, ListenerId};
use crate::core::books::Entry;
use crate::core::clock::Timer;
use crate::core::contract::Silence;
use crate::core::dead_letters::{DeadLetter, DeadLetterId};
use crate::core::event::EventKind;
use crate::core::exit::ExitPlace;
use crate::core::faults;
use crate::core::io::{Answer, Body, CoreMessage, Egress, Output};
use crate::core::key::{FanOutKey, ThreadKey};
use crate::core::queued::{Content, Queued, ReplyTo, Sender};
use crate::core::setup::StepContext;
use crate::core::tree::{About, CountedOff, FanOutKind, Owner, Turn};
use crate::journal::{EgressRecord, LetterPlace, Number, Op};
use crate::protocol;
use crate::vocab::{Fault, MessageId, Name, Partition, ThreadId, ThreadPath, Traceparent};

/// An answer: a payload or a fault.
pub(super) enum Reply {
    Payload(Validated<Element>),
    Fault(Fault),
}

/// The head of an answer to a listener.
pub(super) struct Head {
    pub id: MessageId,
    pub in_reply_to: MessageId,
    pub reply_to: ReplyTo,
    pub from: Sender,
}

/// The client that gets an answer which leaves the organism.
pub(super) struct Recipient {
    pub client: ClientId,
    pub root: ThreadId,
    pub label: Option<Arc<str>>,
    pub traceparent: Option<Traceparent>,
    /// The place of the answer in the client's exit, if its entrance reserved one.
    pub place: Option<ExitPlace>,
}

impl Core {
    /// Settles the threads that the step has touched, and those that this touches in turn.
    pub(super) fn settle_touched(&mut self) {
        while let Some(key) = self.tree.touched.pop_front() {
            self.settle(key);
        }
    }

    /// Checks whether a thread has work left; without any, it is silent.
    fn settle(&mut self, key: ThreadKey) {
        let Some(thread) = self.tree.threads.get(key) else { return };
        let continues = thread.extra.as_ref().is_some_and(|extra| !extra.continues.is_empty());
        let waits = thread.unjudged > 0 || thread.children.open > 0 || thread.mailbox.is_some() || continues;
        if thread.invocation.is_some() || waits {
            return self.make_ready(key);
        }
        match thread.owner {
            // The children of a root without an owner owe nothing, so the root isn't busy with them.
            Owner::None if thread.children.first.is_none() => self.close(key),
            Owner::None => {}
            Owner::Client(_) => {
                let extra = self.tree[key].extra.get_or_insert_default();
                let Some(root) = &mut extra.root else { return };
                root.conversation.take_if(|conversation| Rc::strong_count(conversation) == 1);
                if root.left {
                    return self.close(key);
                }
                let clock = &mut self.step.clock;
                let due = clock.now.after(self.setup.blueprint.limits.root_idle);
                extra.timer.get_or_insert_with(|| clock.set(due, Timer::Idle(key)));
            }
            Owner::Listener(_) if thread.is_spawned() && thread.reply_to == ReplyTo::None => {}
            Owner::Listener(_) if self.tree.has_no_caller(key) => self.end_child(key),
            Owner::Listener(listener) => match self.setup.blueprint[listener].silence {
                Silence::Error if thread.extra.as_ref().is_some_and(|extra| extra.drained) => {
                    self.fail(key, faults::cancelled())
                }
                Silence::Error => {
                    let fault = self.budgets.refusal(key).cloned();
                    self.fail(key, fault.unwrap_or_else(faults::silent));
                }
                Silence::Idle => {
                    let owed = self.tree.take_owed(key, &mut self.step);
                    let Some(parent) = owed.parent else { return };
                    self.count_off(parent, owed.reply_to, owed.opened_by);
                    self.answered(key, parent, owed.reply_to);
                }
            },
        }
    }

    /// Gives the thread's caller its only answer; then the thread is over.
    pub(super) fn answer(&mut self, key: ThreadKey, id: MessageId, reply: Reply, entry: Entry) {
        let sender = Sender::from(self.tree[key].owner);
        let owed = self.tree.take_owed(key, &mut self.step);
        let Some(parent) = owed.parent else { return self.dead_reply(key, sender, reply, entry) };
        match self.tree[parent].owner {
            Owner::Client(client) => {
                let place = self.tree.take_place(parent);
                let extra = self.tree[key].extra.as_ref();
                let (label, traceparent) =
                    extra.map_or_else(Default::default, |extra| (extra.label.clone(), extra.traceparent));
                let recipient = Recipient { client, root: self.tree[parent].id, label, traceparent, place };
                self.send_to_client(recipient, sender, id, reply, entry);
            }
            Owner::Listener(listener) if owed.reply_to != ReplyTo::None => {
                let head = Head { id, in_reply_to: owed.opened_by, reply_to: owed.reply_to, from: sender };
                self.answer_listener(parent, listener, head, reply, entry);
            }
            Owner::None | Owner::Listener(_) => self.dead_reply(key, sender, reply, entry),
        }
        self.answered(key, parent, owed.reply_to);
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
        let sender = Sender::from(self.tree[key].owner);
        let entry = self.step.books.made();
        self.dead_letter(key, (sender, None), None, fault.clone(), entry);
        self.fail(key, fault);
    }

    /// Answers an emission of a thread with a fault.
    pub(super) fn fault_to(
        &mut self,
        key: ThreadKey,
        reply_to: ReplyTo,
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
                self.send_to_client(recipient, Sender::System, id, Reply::Fault(fault), entry);
            }
            Owner::None => self.dead_reply(key, Sender::System, Reply::Fault(fault), entry),
            Owner::Listener(listener) => {
                let head = Head { id, in_reply_to: about, reply_to, from: Sender::System };
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
        let Head { id, in_reply_to, reply_to, from } = head;
        if let ReplyTo::Fan { fan, index } = reply_to {
            match self.tree.fan_outs.get(fan).map(|fan| &fan.kind) {
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
            Reply::Payload(payload) => self.payloads.returned(listener, &self.setup.blueprint[listener], payload),
        };
        let share = self.tree.count(key, content.size());
        let in_reply_to = Some(in_reply_to);
        self.put(key, Queued { in_reply_to, answers: reply_to, ..Queued::new(id, from, content, share, entry) });
    }

    /// An awaited answer never enters the mailbox, but it belongs to the history.
    fn remember_reply(&mut self, key: ThreadKey, listener: ListenerId, from: &Name, call: MessageId, reply: &Reply) {
        if self.setup.blueprint[listener].context {
            let payload = match reply {
                Reply::Payload(payload) => payload.payload().clone(),
                Reply::Fault(fault) => protocol::write_fault(fault),
            };
            self.tree.remember(key, (from.clone(), payload), About::Answers(call), &mut self.step);
        }
    }

    /// Sends an answer to a client.
    pub(super) fn send_to_client(&mut self, to: Recipient, from: Sender, id: MessageId, reply: Reply, entry: Entry) {
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
        let client = &self.setup.blueprint[to.client].name;
        let meta = Meta {
            from: from.clone(),
            to: Some(client.clone()),
            thread: to.root,
            id,
            in_reply_to: to.label.as_deref().map(str::to_owned),
            deadline: None,
            traceparent: to.traceparent.map(|traceparent| traceparent.to_string()),
        };
        let envelope = write_envelope(&meta, &payload);
        self.step.books.delivered(entry);
        let code = fault.as_ref().map(|fault| fault.code);
        self.step.out.root_event((to.root, to.traceparent), self.step.clock.now, || EventKind::Left {
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

    /// The thread has given its answer: it closes, or a spawned one takes its next call.
    pub(super) fn answered(&mut self, key: ThreadKey, parent: ThreadKey, reply_to: ReplyTo) {
        let goes_on = self.end_call(key);
        self.tree.count_off_answer(parent, reply_to);
        if goes_on {
            self.next_call(key);
        }
    }

    /// Ends the work of a thread for its call: the thread closes, or a spawned thread is emptied. Returns whether it goes on.
    fn end_call(&mut self, key: ThreadKey) -> bool {
        let Some(thread) = self.tree.threads.get(key) else { return false };
        let goes_on = thread.is_spawned();
        match goes_on {
            true => self.clear(key),
            false => self.close(key),
        }
        goes_on
    }

    /// Starts the next call of a spawned thread that owes nothing.
    pub(super) fn next_call(&mut self, key: ThreadKey) {
        if self.tree.next_call(key, &mut self.step) {
            self.make_ready(key);
        }
    }

    /// Closes a child that owes nothing.
    pub(super) fn end_child(&mut self, key: ThreadKey) {
        let (parent, reply_to) = (self.tree[key].parent, self.tree[key].reply_to);
        self.close(key);
        if let Some(parent) = parent {
            self.tree.count_off_answer(parent, reply_to);
        }
    }

    /// A call ends without an answer and without a fault.
    pub(super) fn count_off(&mut self, owner: ThreadKey, reply_to: ReplyTo, opened_by: MessageId) {
        match reply_to {
            ReplyTo::None => {}
            ReplyTo::Single => self.fan_out_ended(owner, 1, opened_by),
            ReplyTo::Fan { fan, index } => match self.tree.count_off(fan, &mut self.step) {
                CountedOff::Awaited(silent) => self.settle_call(fan, index, Err(silent)),
                CountedOff::Over { total, source } => self.fan_out_ended(owner, total, source),
                CountedOff::Open => {}
            },
        }
    }

    /// Reports to a listener whose contract asks for it that no further answer comes.
    fn fan_out_ended(&mut self, owner: ThreadKey, total: u32, source: MessageId) {
        let Some(listener) = self.tree[owner].listener() else { return };
        if !self.setup.blueprint[listener].returns.contains(&protocol::fan_out_ended_qname()) {
            return;
        }
        let (id, _) = self.setup.key.derive(source, own_index::FAN_OUT_ENDED);
        let entry = self.step.books.made();
        match self.payloads.own_payload(self.version(owner), listener, protocol::write_fan_out_ended(total)) {
            Ok(body) => {
                let share = self.tree.count(owner, 0);
                self.put(owner, Queued::new(id, Sender::Core, Content::Body(body), share, entry));
            }
            Err(fault) => {
                self.step.books.faulted(entry);
                self.fault_to(owner, ReplyTo::None, id, None, fault);
            }
        }
    }

    /// Closes a thread and everything below it. Its caller gets no answer: that is left to the caller of this.
    pub(super) fn close(&mut self, top: ThreadKey) {
        if self.tree[top].children.first.is_none() {
            return self.close_one(top);
        }
        // Those below first: each can still name its path and its root.
        let mut subtree = vec![top];
        let mut read = 0;
        while let Some(&key) = subtree.get(read) {
            self.tree.children_of(key, &mut subtree);
            read += 1;
        }
        subtree.into_iter().rev().for_each(|key| self.close_one(key));
    }

    /// Closes a spawned thread at the wish of its owner. The calls that it owes answers to are
    /// counted off: the owner knows best why none will come.
    pub(super) fn close_spawned(&mut self, owner: ThreadKey, child: ThreadKey) {
        let Some(thread) = self.tree.threads.get(child) else { return };
        let backlog = thread.extra.iter().filter_map(|extra| extra.spawned.as_ref()).flatten();
        let waiting = backlog.map(|call| (call.reply_to, call.message.id));
        let owed = std::iter::once((thread.reply_to, thread.opened_by)).chain(waiting);
        let owed: Vec<_> = owed.filter(|(reply_to, _)| *reply_to != ReplyTo::None).collect();
        self.close(child);
        for (reply_to, call) in owed {
            self.tree.count_off_answer(owner, reply_to);
            self.count_off(owner, reply_to, call);
        }
    }

    /// Empties a spawned thread between two calls; its backlog and its context stay.
    fn clear(&mut self, key: ThreadKey) {
        let mut below = Vec::new();
        self.tree.children_of(key, &mut below);
        below.into_iter().for_each(|child| self.close(child));
        let invocation = self.tree[key].invocation.and_then(|id| self.invocations.all.get(id));
        let handled = invocation.map_or(0, |invocation| invocation.number());
        self.write_cleared(key, handled);
        self.abort_handler(key);
        self.tree.discard(key, &mut self.step);
        let thread = &mut self.tree[key];
        (thread.children.open, thread.invalid) = (0, 0);
        self.budgets.forget_refusals(key);
    }

    /// Writes that a spawned thread is emptied between two calls; `handled`: the number of the message in flight.
    fn write_cleared(&mut self, key: ThreadKey, handled: Number) {
        if !self.step.out.writes() {
            return;
        }
        let StepContext { clock, out, .. } = &mut self.step;
        let thread = &self.tree[key];
        let continues = thread.extra.iter().flat_map(|extra| &extra.continues);
        let continues = continues.filter_map(|timer| clock.continued(*timer)).map(|message| message.number);
        let waiting = thread
            .mailbox
            .iter()
            .flat_map(|mailbox| mailbox.iter())
            .map(|message| message.number)
            .chain(continues)
            .chain([handled]);
        waiting.filter(|&message| message != 0).for_each(|message| out.write(|| Op::Cancelled { message }));
    }

    fn close_one(&mut self, key: ThreadKey) {
        self.abort_handler(key);
        self.close_account(key);
        self.tree.remove(key, &mut self.step);
    }

    /// Cancels the handler of a thread, or its wait for a turn.
    fn abort_handler(&mut self, key: ThreadKey) {
        if self.tree[key].turn != Turn::None {
            self.leave_turn(key);
        }
        if let Some(invocation) = self.tree[key].invocation.take() {
            self.invocations.abort(invocation, &mut self.step);
            // The account closes before the handler has ended.
            self.budgets.forfeit(invocation, &mut self.step);
        }
    }

    /// Closes the account of a thread that closes.
    pub(super) fn close_account(&mut self, key: ThreadKey) {
        if self.budgets.is_empty() {
            return;
        }
        if let Some(account) = self.budgets.close(key) {
            let (budget, spent) = (account.budget, account.spent);
            self.tree.event(key, &mut self.step, || EventKind::Spent { budget, spent });
        }
    }

    /// Cancels the open children that belong to a group of calls.
    pub(super) fn cancel_calls(&mut self, owner: ThreadKey, fan: FanOutKey) {
        let mut next = self.tree[owner].children.first;
        while let Some(key) = next {
            next = self.tree[key].children.next;
            self.tree.cancel_backlog(key, fan, &mut self.step);
            let reply_to = self.tree[key].reply_to;
            if matches!(reply_to, ReplyTo::Fan { fan: other, .. } if other == fan) {
                self.tree.take_owed(key, &mut self.step);
                self.end_call(key);
                self.tree.count_off_answer(owner, reply_to);
                self.next_call(key);
            }
        }
    }

    /// The client of a conversation has left.
    pub(super) fn leave(&mut self, root: ThreadId) {
        let Some(key) = self.tree.roots.get(&root).copied() else { return self.step.out.emit(Output::Gone { root }) };
        self.mark_left(key);
        self.tree.touch(key);
    }

    /// A client sends nothing else into a root.
    pub(super) fn mark_left(&mut self, key: ThreadKey) {
        let thread = &mut self.tree[key];
        let number = thread.sequence;
        if let Some(state) = &mut thread.extra.get_or_insert_default().root {
            state.left = true;
            self.step.out.write(|| Op::Left { thread: number });
        }
    }

    /// Closes a conversation at the wish of its client.
    pub(super) fn cancel_conversation(&mut self, root: ThreadId) {
        if let Some(key) = self.tree.roots.get(&root).copied() {
            self.close(key);
        }
    }

    pub(super) fn dead_reply(&mut self, key: ThreadKey, from: Sender, reply: Reply, entry: Entry) {
        let (payload, reason) = match reply {
            Reply::Payload(payload) => (Some(payload.payload().clone()), faults::unasked_reply()),
            Reply::Fault(fault) => (None, fault),
        };
        self.dead_letter(key, (from, None), payload, reason, entry);
    }

    /// Keeps an undeliverable message on a thread as a dead letter, with its sender and its addressee.
    pub(super) fn dead_letter(
        &mut self,
        key: ThreadKey,
        (from, to): (Sender, Option<Name>),
        payload: Option<Canonical>,
        reason: Fault,
        entry: Entry,
    ) {
        let qname = payload.as_ref().map(|payload| payload.root().clone());
        self.tree.event(key, &mut self.step, || EventKind::DeadLetter { payload: qname, reason: reason.code });
        let root = self.tree.threads.get(key).and_then(|thread| self.tree.threads.get(thread.root));
        let partition = match root {
            Some(root) if root.root_state().is_some_and(|root| root.boot) => Partition::BOOT,
            Some(root) => Partition::of(root.id),
            None => self.setup.first_partition(),
        };
        let place = LetterPlace { conversation: root.map(|root| root.id), path: self.tree.path(key) };
        self.keep_letter((self.setup.name_of(from), to), (partition, place), payload, reason, entry);
    }

    /// Keeps an undeliverable message that is on no thread as a dead letter, with its conversation if it was in one.
    pub(super) fn dead_letter_outside(
        &mut self,
        way: (Name, Option<Name>),
        (partition, conversation): (Partition, Option<ThreadId>),
        payload: Option<Canonical>,
        reason: Fault,
        entry: Entry,
    ) {
        let place = (partition, LetterPlace { conversation, path: ThreadPath::new(Vec::new()) });
        self.keep_letter(way, place, payload, reason, entry);
    }

    fn keep_letter(
        &mut self,
        (from, to): (Name, Option<Name>),
        (partition, place): (Partition, LetterPlace),
        payload: Option<Canonical>,
        reason: Fault,
        entry: Entry,
    ) {
        let StepContext { clock, books, out } = &mut self.step;
        books.dead(entry);
        let id = match out.writes() {
            true => self.tree.dead.id_of(out.next_number()),
            false => self.tree.dead.next_id(),
        };
        let LetterPlace { conversation, path } = place;
        let letter = DeadLetter { id, partition, at: clock.now, from, to, conversation, path, payload, reason };
        out.write(|| Op::Letter(letter.record()));
        self.push_letter(letter);
    }

    /// Keeps a letter; the cores of those that it pushes out drop them.
    pub(super) fn push_letter(&mut self, letter: DeadLetter) {
        for letter in self.tree.dead.push(letter) {
            match letter.core() == self.setup.core {
                true => self.drop_letter(letter),
                false => self.step.out.send(letter.core(), CoreMessage::LetterPushedOut { letter }),
            }
        }
    }

    /// Drops a letter that others pushed out, unless it is gone; operators learn of it.
    pub(super) fn drop_letter(&mut self, letter: DeadLetterId) {
        let Some(pushed_out) = self.tree.dead.drop_letter(letter) else { return };
        let StepContext { clock, out, .. } = &mut self.step;
        let number = letter.number();
        out.write(|| Op::LetterGone { letter: number });
        let root = pushed_out.conversation.unwrap_or_else(|| ThreadId::from_uuid(Uuid::nil()));
        let (payload, reason) = (pushed_out.payload.map(|payload| payload.root().clone()), pushed_out.reason.code);
        out.root_event((root, None), clock.now, || EventKind::LetterDropped { number, payload, reason });
    }
}
