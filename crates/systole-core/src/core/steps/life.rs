//! The life of the organism: `<boot>`, the start from a journal, dead letters that come in again, and the end.
//!
//! # Dead letters
//! A redriven letter is judged from the start, as if its sender emitted it now: by the sender's contract of
//! today, to the listener that it named. It does not go back to the conversation that it came
//! from: its caller has had the one answer that was due. It opens a tree below a root of
//! its own instead, which has no owner, as that of boot has none: answers to it are
//! dead letters. So is the letter itself, with the new reason and a new number, if it is refused
//! again. What its sender may not call is not redriven at all: a reply, which no thread waits for any
//! more, and a question to the core.

use std::collections::{HashMap, HashSet};

use slotmap::Key;
use systole_xml::ladder::{Canonical, Meta, write_envelope};
use systole_xml::schema::{Element, Validated};
use uuid::Uuid;

use super::answer::{Recipient, Reply};
use super::enter::Call;
use super::{Core, own_index};
use crate::core::blueprint::{ListenerId, Party, Principal, Version};
use crate::core::books::Entry;
use crate::core::clock::Timer;
use crate::core::contract::{Contract, OnRestart};
use crate::core::conversation::AwaitedAnswers;
use crate::core::dead_letters::{DeadLetter, DeadLetterError, DeadLetterId};
use crate::core::entrance::{AskedAct, Item, Phase, Redriven, Response};
use crate::core::event::EventKind;
use crate::core::faults;
use crate::core::invocations::{EarlierGroup, GroupState};
use crate::core::io::{
    Answer, AttachmentEnd, Body, CallId, DraftEnd, Egress, Emission, HandlerOutcome, Injected, OperationError,
    OrganismVersion, Output, Place, Precedence, Remembered, Settled,
};
use crate::core::judge::{ParsedPayload, Verdict};
use crate::core::key::{FanOutKey, InvocationId, ThreadKey};
use crate::core::outcomes::Outcomes;
use crate::core::queued::{Attempts, Content, Queued, ReplyTo, Sender};
use crate::core::records::{join_of, stored};
use crate::core::setup::Setup;
use crate::core::slots::Slots;
use crate::core::tree::{Child, FanOut, FanOutKind, Owner, Root, Thread, WaitsFor};
use crate::journal::{
    AnswerRecord, BodyRecord, BudgetRecord, CallRecord, EgressRecord, FanId, FanRecord, LetterPlace, LetterRecord,
    Link, MailState, MessageRecord, MessageState, NoteRecord, Number, Op, OrdinalRecord, PausedRecord, Recovered,
    RememberedRecord, SettledRecord, ThreadRecord,
};
use crate::protocol::{Boot, refused_qname};
use crate::vocab::{Fault, MessageId, Name, Partition, ThreadId, Time, Traceparent};
use crate::{journal, protocol};

/// The recovered records, and their keys in the tree.
#[derive(Default)]
struct Recovery {
    threads: HashMap<Number, ThreadKey>,
    fans: HashMap<FanId, FanOutKey>,
    /// Threads below an earlier `<boot>` that are not taken up.
    over: HashSet<Number>,
    /// Threads whose listener or client is no longer registered, or that were below such a thread.
    lost: Vec<ThreadRecord>,
}

impl Core {
    /// Sends `<boot>` to each listener that accepts it, on threads below a root without an owner.
    pub(super) fn send_boot(&mut self, root: ThreadId) {
        let qname = protocol::boot_qname();
        let booting = self.tree.in_order(|_| true).into_iter().filter(|&key| self.is_booting(key));
        let resumed: HashSet<_> = booting.filter_map(|key| self.tree[key].listener()).collect();
        let mut listeners: Vec<ListenerId> = self.present.blueprint.accepting(&qname).to_vec();
        listeners.retain(|listener| !resumed.contains(listener));
        if listeners.is_empty() {
            return;
        }
        let opening = Root { id: root, owner: Owner::None, traceparent: None, boot: true, deadline: Time::MAX };
        let parent = self.tree.open_root(opening, &mut self.step);
        for (index, listener) in (1..).zip(listeners) {
            let entry = self.step.books.made();
            let ids = self.setup.key.derive_entry(root, index);
            match self.boot_payload(listener) {
                Ok(body) => {
                    let key = self.tree.open_child(parent, Child::new(listener, ids), &mut self.step);
                    let share = self.tree.count(key, 0);
                    self.put(key, Queued::new(ids.0, Sender::System, Content::Body(body), share, entry));
                }
                Err(fault) => self.dead_letter(parent, (Sender::System, None), None, fault, entry),
            }
        }
        self.tree.touch(parent);
    }

    /// The payload of `<boot>` at this start.
    pub(super) fn boot_payload(&mut self, listener: ListenerId) -> Result<Body, Fault> {
        let boot = Boot {
            organism: self.setup.blueprint.organism.clone(),
            started: self.setup.started,
            listeners: self.present.blueprint.listeners().count(),
        };
        self.payloads.own_payload(self.tree.version, listener, boot.write())
    }

    /// Recovers the conversations of this core from the journal.
    ///
    /// Every message that was not done is queued again, in the order in which it came, over all cores
    /// (`core::steps::turn`). What is below `<boot>` is over: each start boots anew.
    /// Only a listener that [reattaches](OnRestart::Reattach) has its thread again.
    pub(super) fn recover(&mut self, recovered: Recovered) {
        let Recovered {
            crashed,
            threads,
            ordinals,
            budgets,
            fans,
            messages,
            notes,
            remembered,
            egress,
            letters,
            redrive,
            mail,
            paused,
            ..
        } = recovered;
        let mut recovery = Recovery::default();
        for PausedRecord { listener, .. } in paused {
            // A listener that is no longer registered has nothing to pause.
            let listeners: Vec<_> = self.setup.blueprint.named(&listener).collect();
            listeners.into_iter().for_each(|listener| self.listener_paused(listener, true));
        }
        for letter in letters {
            self.recover_letter(letter);
        }
        let mut owed = Vec::new();
        for thread in threads {
            owed.push((thread.number, thread.reply_to));
            self.recover_thread(thread, &mut recovery);
        }
        for OrdinalRecord { parent, listener, last } in ordinals {
            let listener = self.present.blueprint.party(listener.as_str());
            if let (Some(&parent), Some(Party::Listener(listener))) = (recovery.threads.get(&parent), listener) {
                self.tree[parent].reserve_ordinals(listener, last);
            }
        }
        for budget in budgets {
            if let Some(&key) = recovery.threads.get(&budget.thread) {
                self.recover_account(key, budget);
            }
        }
        for fan in fans {
            self.recover_fan(fan, &mut recovery);
        }
        for (number, reply_to) in owed {
            let reply_to = recovery.reply_to(reply_to);
            if let Some(&key) = recovery.threads.get(&number).filter(|_| reply_to != ReplyTo::None) {
                self.tree[key].reply_to = reply_to;
                if let Some(parent) = self.tree[key].parent {
                    self.tree[parent].children.open += 1;
                }
            }
        }
        for RememberedRecord { number, thread, place, link, from, payload } in remembered {
            if let (Some(&key), Ok(payload)) = (recovery.threads.get(&thread), stored(payload)) {
                let (answers, calls) = match link {
                    Link::None => (None, Vec::new()),
                    Link::Calls(calls) => (None, calls),
                    Link::Answers(call) => (Some(call), Vec::new()),
                };
                let place = Place { number: place, answers };
                self.tree.remember_again(key, (number, Remembered { from, payload, place }, calls));
            }
        }
        // A message that stands in a mailbox had a slot, which it gets before those that waited for one: they may have come
        // first, at another core. Numbers of mail are smaller than those of messages, which begin with an epoch.
        let mail = mail.into_iter().filter(|mail| mail.status.state == MailState::Waiting);
        let held: HashMap<MessageId, Number> = mail.map(|mail| (mail.id, mail.seq)).collect();
        let mut arrivals = Vec::with_capacity(messages.len());
        for note in notes {
            let replay = self.invocations.replays.entry(note.message).or_default();
            match note.index {
                NoteRecord::CONTEXT => replay.remembered = note.value.parse().ok(),
                NoteRecord::BEGAN => replay.began = note.value.parse().ok(),
                _ => replay.notes.push(note),
            }
        }
        for record in messages {
            let began = || self.invocations.replays.get(&record.number)?.began.map(Precedence::Began);
            let at = held.get(&record.id).copied().map(Precedence::Delivered).or_else(began);
            arrivals.push((at.unwrap_or(Precedence::Waited(record.place)), record.thread));
            self.recover_message(record, crashed, &recovery);
        }
        arrivals.sort_by_key(|(at, _)| *at);
        self.cancel_calls_of_asked(&recovery);
        let given_up = std::mem::take(&mut recovery.lost);
        let roots = given_up.iter().filter_map(|record| match &record.owner {
            journal::Owner::Client(client) if record.parent.is_none() => {
                Some((record.number, (client.clone(), record.id)))
            }
            _ => None,
        });
        let roots = roots.collect();
        for record in &given_up {
            self.give_up_thread(record, &roots, &recovery);
        }
        for record in egress {
            self.recover_egress(record);
        }
        // Threads with messages wait for their turns as those came; the rest has nothing that could run.
        for (at, thread) in arrivals {
            if let Some(&key) = recovery.threads.get(&thread) {
                self.turns.precedence = at;
                self.tree.touch(key);
                self.settle_touched();
            }
        }
        self.all_recovered();
        let mut keys: Vec<_> = recovery.threads.into_iter().collect();
        keys.sort_unstable();
        keys.into_iter().for_each(|(_, key)| self.tree.touch(key));
        for letter in redrive {
            // The id of its root can't be guessed, and it is the same at each start.
            let (_, root) = self.setup.key.derive_entry(ThreadId::from_uuid(Uuid::from_u128(letter.into())), 0);
            self.redrive_marked(self.tree.dead.id_of(letter), root);
        }
    }

    /// Keeps a dead letter again.
    fn recover_letter(&mut self, record: LetterRecord) {
        let LetterRecord { number, partition, at, from, to, place, payload, reason } = record;
        let LetterPlace { conversation, path } = place;
        let payload = payload.and_then(|(_, payload)| stored(payload).ok());
        let id = self.tree.dead.id_of(number);
        let letter = DeadLetter { id, partition, at, from, to, conversation, path, payload, reason };
        self.push_letter(letter);
    }

    fn recover_thread(&mut self, record: ThreadRecord, recovery: &mut Recovery) {
        let party = |name: &Name| self.present.blueprint.party(name.as_str());
        let owner = match &record.owner {
            journal::Owner::Listener(name) => match party(name) {
                Some(Party::Listener(id)) => Some(Owner::Listener(id)),
                Some(Party::Client(_)) | None => None,
            },
            journal::Owner::Client(name) => match party(name) {
                Some(Party::Client(id)) => Some(Owner::Client(id)),
                Some(Party::Listener(_)) | None => None,
            },
            journal::Owner::None | journal::Owner::Boot => Some(Owner::None),
        };
        if self.is_over(&record, owner, recovery) {
            self.step.out.write(|| Op::Close { thread: record.number });
            recovery.over.insert(record.number);
            return;
        }
        let parent = record.parent.map(|parent| recovery.threads.get(&parent).copied());
        let (Some(owner), None | Some(Some(_))) = (owner, parent) else { return recovery.lost.push(record) };
        let number = record.number;
        let parent = parent.flatten().filter(|_| matches!(owner, Owner::Listener(_)));
        let key = self.tree.link_thread(
            parent,
            owner,
            Some(number),
            (record.opened_by, record.id),
            record.ordinal,
            &mut self.step,
        );
        // A conversation that an operator retries has no other record of the ordinals that are taken.
        if let (Some(parent), Owner::Listener(listener)) = (parent, owner) {
            self.tree[parent].reserve_ordinals(listener, record.ordinal);
        }
        if record.spawned {
            self.tree.spawned.insert(record.id, key);
        }
        let timer = record.own_deadline.then(|| self.step.clock.set(record.deadline, Timer::Deadline(key)));
        let thread = &mut self.tree[key];
        thread.deadline = record.deadline;
        if record.parent.is_none() {
            let root = thread.extra.get_or_insert_default().root.get_or_insert_default();
            (root.left, root.boot) = (record.left, record.owner == journal::Owner::Boot);
        }
        let traceparent = record.traceparent.as_deref().and_then(Traceparent::parse);
        if timer.is_some() || record.spawned || record.label.is_some() || traceparent.is_some() {
            let extra = thread.extra.get_or_insert_default();
            (extra.timer, extra.label, extra.traceparent) = (timer, record.label, traceparent);
            extra.spawned = record.spawned.then(Default::default);
        }
        recovery.threads.insert(number, key);
    }

    fn is_over(&self, record: &ThreadRecord, owner: Option<Owner>, recovery: &Recovery) -> bool {
        let Some(parent) = record.parent else { return false };
        let above = recovery.threads.get(&parent).and_then(|&parent| self.tree[parent].root_state());
        let below_boot = above.is_some_and(|root| root.boot);
        let kept =
            matches!(owner, Some(Owner::Listener(id)) if self.setup.blueprint[id].on_restart == OnRestart::Reattach);
        recovery.over.contains(&parent) || below_boot && !kept
    }

    fn recover_fan(&mut self, record: FanRecord, recovery: &mut Recovery) {
        let FanRecord { id, thread, source, total, delivered, counted_off, call } = record;
        let Some(&owner) = recovery.threads.get(&thread) else { return };
        let Some(CallRecord { requests, join, until, settled, outcome }) = call else {
            let kind = FanOutKind::Mailbox { delivered, counted_off };
            let key = self.tree.link_fan_out(FanOut { id, owner, source, total, kind }, None, &mut self.step);
            recovery.fans.insert(id, key);
            return;
        };
        let Some(call) = id.call else { return };
        let state = match outcome {
            journal::FanOutcome::Open => {
                let mut outcomes = Outcomes::new(total as usize);
                let mut held = AwaitedAnswers::new(self.tree.conversation(owner));
                for settled in settled {
                    if let Some(outcome) = outcomes.settle(settled.index, self.recover_answer(settled.outcome)) {
                        held.add_outcome(outcome);
                    }
                }
                let (invocation, join) = (InvocationId::null(), join_of(&join));
                let kind = FanOutKind::Awaited { invocation, call: CallId(call), join, outcomes, held, expires: None };
                let fan_out = FanOut { id, owner, source, total, kind };
                let fan = self.tree.link_fan_out(fan_out, until, &mut self.step);
                recovery.fans.insert(id, fan);
                GroupState::Open(fan)
            }
            journal::FanOutcome::Decided { order, result } => {
                self.invocations.replays.entry(id.message).or_default().decided.insert(order, CallId(call));
                GroupState::Decided(result.map(|settled| self.recover_settled(settled)))
            }
            journal::FanOutcome::Dropped => GroupState::Dropped,
        };
        let replay = self.invocations.replays.entry(id.message).or_default();
        replay.emitted += u64::from(total);
        replay.calls.insert(call, EarlierGroup { requests, state });
    }

    fn recover_settled(&mut self, settled: Vec<SettledRecord>) -> Vec<Settled> {
        let settled = settled.into_iter();
        settled.map(|one| Settled { index: one.index, outcome: self.recover_answer(one.outcome) }).collect()
    }

    fn recover_answer(&mut self, outcome: Result<AnswerRecord, Fault>) -> Result<Answer, Fault> {
        let AnswerRecord { from, payload } = outcome?;
        let payload: Validated<Element> = self.payloads.prove_stored(self.tree.version, payload)?;
        Ok(Answer { from, payload })
    }

    /// Puts a message where it waited.
    fn recover_message(&mut self, record: MessageRecord, crashed: bool, recovery: &Recovery) {
        let MessageRecord { number, thread, id, in_reply_to, answers, state, attempts, .. } = record;
        let Some(&key) = recovery.threads.get(&thread) else {
            if !recovery.over.contains(&thread) {
                self.dead_record(record, faults::unregistered());
            }
            return;
        };
        let from = self.sender_named(&record.from);
        if from == Sender::System && self.tree.has_no_caller(key) && matches!(record.body, BodyRecord::Payload(_)) {
            return self.send_boot_again(key, number, id);
        }
        let content = match record.body {
            BodyRecord::Payload(payload) => Content::Stored(payload),
            BodyRecord::Fault(fault) => Content::Body(Body::Fault(fault)),
            BodyRecord::Fatal(fault) => Content::Fatal(fault),
        };
        let share = self.tree.count(key, content.size());
        // The first message may have been running.
        let suspect = crashed && state == MessageState::Queued && self.tree[key].mailbox.is_none();
        let attempts = Attempts { lost: u8::try_from(attempts).unwrap_or(u8::MAX), is_suspect: suspect };
        let answers = recovery.reply_to(answers);
        let entry = self.step.books.recovered();
        let message = Queued { number, attempts, in_reply_to, answers, ..Queued::new(id, from, content, share, entry) };
        let waits = match state {
            MessageState::Queued => WaitsFor::Turn,
            MessageState::Delayed(due) => WaitsFor::Time(due),
            MessageState::Backlog(reply_to) => WaitsFor::Call(recovery.reply_to(reply_to)),
        };
        self.tree.put_back(key, message, waits, &mut self.step);
    }

    /// Sends `<boot>` again to a thread that had it in an earlier start, under a new id: calls of this start have other
    /// ids than those before.
    fn send_boot_again(&mut self, key: ThreadKey, number: Number, before: MessageId) {
        let entry = self.step.books.recovered();
        let index = self.step.out.next_number();
        let (id, _) = self.setup.key.derive(before, index);
        let body = self.tree[key].listener().map(|listener| self.boot_payload(listener));
        let Some(Ok(body)) = body else { return self.step.books.cancelled(entry) };
        let share = self.tree.count(key, 0);
        let message = Queued { number, ..Queued::new(id, Sender::System, Content::Body(body), share, entry) };
        self.tree.put_back(key, message, WaitsFor::Turn, &mut self.step);
    }

    /// Cancels the awaited calls of parties that are asked again: they may answer anything, so the calls of their last
    /// answer do not count. The notes of such a handler stay.
    fn cancel_calls_of_asked(&mut self, recovery: &Recovery) {
        let mut asked: Vec<_> = recovery.threads.values().copied().collect();
        asked.retain(|&key| {
            let listener = self.tree.threads.get(key).and_then(|thread| thread.listener());
            listener.is_some_and(|id| self.setup.blueprint[id].on_restart == OnRestart::AskAgain)
        });
        asked.sort_unstable();
        for key in asked {
            let first = self
                .tree
                .threads
                .get(key)
                .and_then(|thread| thread.mailbox.as_ref()?.front())
                .map(|message| message.number);
            let Some(replay) = first.and_then(|message| self.invocations.replays.get_mut(&message)) else { continue };
            replay.count_calls();
            replay.decided.clear();
            let mut groups: Vec<_> = replay.calls.drain().collect();
            groups.sort_unstable_by_key(|(call, _)| *call);
            for (_, group) in groups {
                if let GroupState::Open(fan) = group.state {
                    self.drop_fan_out(fan);
                }
            }
        }
    }

    /// Ends a thread whose listener is no longer registered, or whose client: its parent gets a fault. A client that is
    /// registered again later finds the fault among its answers.
    fn give_up_thread(&mut self, record: &ThreadRecord, lost: &HashMap<Number, (Name, ThreadId)>, recovery: &Recovery) {
        if let Some((client, root)) = record.parent.and_then(|parent| lost.get(&parent))
            && record.reply_to != journal::ReplyTo::None
        {
            self.leave_unregistered(client, *root, record);
        }
        self.step.out.write(|| Op::Close { thread: record.number });
        let reply_to = recovery.reply_to(record.reply_to);
        let parent = record.parent.and_then(|parent| recovery.threads.get(&parent)).copied();
        if let Some(parent) =
            parent.filter(|&parent| reply_to != ReplyTo::None && self.tree.threads.contains_key(parent))
        {
            let label = record.label.clone();
            self.fault_to(parent, reply_to, record.opened_by, label, faults::unregistered());
        }
    }

    /// Writes a fault as the answer to a request of a client that is not registered. It waits for a start at which the
    /// client is, as all its answers do.
    fn leave_unregistered(&mut self, client: &Name, root: ThreadId, record: &ThreadRecord) {
        let fault = faults::unregistered_client();
        let payload = protocol::write_fault(&fault);
        let meta = Meta {
            from: Name::system(),
            to: Some(client.clone()),
            thread: root,
            id: self.setup.key.derive(record.opened_by, 0).0,
            in_reply_to: record.label.as_deref().map(str::to_owned),
            deadline: None,
            traceparent: record.traceparent.as_deref().map(str::to_owned),
        };
        let envelope = write_envelope(&meta, &payload);
        let number = self.step.out.next_number();
        self.step.out.write(|| {
            Op::Leave(EgressRecord {
                number,
                client: client.clone(),
                root,
                from: Name::system(),
                in_reply_to: record.label.clone(),
                envelope,
                fault: Some(fault),
                payload: payload.bytes().clone(),
            })
        });
    }

    fn recover_egress(&mut self, record: EgressRecord) {
        let EgressRecord { number, client, root, from, in_reply_to, envelope, fault, payload } = record;
        // The message waits for a start at which the client is registered.
        let Some(Party::Client(client)) = self.present.blueprint.party(client.as_str()) else { return };
        let Ok(payload) = stored(payload) else { return };
        let proof = match fault {
            Some(_) => None,
            None => self.payloads.validate(self.tree.version, payload.clone()).ok(),
        };
        let egress = Egress { number, client, root, from, in_reply_to, envelope, fault, payload, proof };
        self.step.out.emit(Output::Egress { egress, place: None });
    }

    fn dead_record(&mut self, record: MessageRecord, reason: Fault) {
        let payload = match record.body {
            BodyRecord::Payload(payload) => stored(payload).ok(),
            BodyRecord::Fault(_) | BodyRecord::Fatal(_) => None,
        };
        let entry = self.step.books.recovered();
        self.dead_letter_outside((record.from, None), (self.setup.first_partition(), None), payload, reason, entry);
    }

    fn sender_named(&self, name: &Name) -> Sender {
        match self.present.blueprint.party(name.as_str()) {
            Some(Party::Listener(id)) => Sender::Listener(id),
            Some(Party::Client(id)) => Sender::Client(id),
            None if *name == Name::core() => Sender::Core,
            None => Sender::System,
        }
    }

    /// Opens the account of a recovered thread. Those of the threads above it are open.
    pub(super) fn recover_account(&mut self, key: ThreadKey, record: BudgetRecord) {
        let above = self.account(key);
        self.budgets.open(key, record, above, None);
    }

    /// Puts a dead letter on the entrance queue that was marked in the journal. One that can't be redriven loses its mark.
    pub(super) fn redrive_marked(&mut self, letter: DeadLetterId, root: ThreadId) {
        let result = self.redrive(letter, root, None);
        if let Err(DeadLetterError::NotACall { .. } | DeadLetterError::NoPayload) = result {
            self.step.out.write(|| Op::Unmark { letter: letter.number() });
        }
        if let Err(error) = result {
            self.step.out.emit(Output::NotRedriven { letter, error });
        }
    }

    /// Puts a dead letter on the entrance queue.
    pub(super) fn redrive(
        &mut self,
        id: DeadLetterId,
        root: ThreadId,
        asked: Option<AskedAct>,
    ) -> Result<(), DeadLetterError> {
        let letter = self.tree.dead.get(id).ok_or(DeadLetterError::Unknown)?;
        let payload = letter.payload.clone().filter(|payload| *payload.root() != refused_qname());
        let payload = payload.ok_or(DeadLetterError::NoPayload)?;
        self.present.blueprint.check_redrive(&letter.from, payload.root())?;
        if self.entrance.phase >= Phase::Draining {
            return Err(DeadLetterError::Closed);
        }
        let permit = self.tree.gauge.admit(payload.bytes().len())?;
        let DeadLetter { partition, conversation, from, to, .. } =
            self.tree.dead.take(id).ok_or(DeadLetterError::Unknown)?;
        let (number, root) = (id.number(), partition.place(root));
        let redriven = Redriven { from, to, payload, number, conversation, root, permit, asked };
        let entry = self.step.books.redriven();
        self.entrance.push(Principal::ORGANISM, Item::Redriven(redriven, entry));
        Ok(())
    }

    /// Judges a letter from the start.
    pub(super) fn reissue(&mut self, mut letter: Redriven, entry: Entry) {
        self.step.out.write(|| Op::LetterGone { letter: letter.number });
        if let Some((ticket, act)) = letter.asked.take() {
            act.into_iter().for_each(|act| self.step.out.write(|| Op::Acted(*act)));
            self.step.out.emit(Output::Operated { ticket, result: Ok(()) });
        }
        let caller = self.present.blueprint.party(letter.from.as_str());
        let sender = match caller {
            Some(Party::Listener(id)) => Sender::Listener(id),
            Some(Party::Client(id)) => Sender::Client(id),
            // Messages of the pump itself are for the thread that they were made for.
            None => Sender::System,
        };
        let mut judge = self.payloads.judge(self.tree.version);
        match judge.call(letter.to.as_ref(), caller, ParsedPayload::Unproved(letter.payload.clone())) {
            Verdict::Call { first, others, payload } => {
                self.open_again(letter, sender, (first, others), payload, entry);
            }
            Verdict::Refused(refusal) => self.dead_again(letter, refusal.fault, entry),
            Verdict::Reply(_)
            | Verdict::Continue { .. }
            | Verdict::Addressed { .. }
            | Verdict::CloseThread { .. }
            | Verdict::Core { .. }
            | Verdict::Spawn { .. } => {
                let fault = faults::route(letter.payload.root());
                self.dead_again(letter, fault, entry);
            }
        }
    }

    fn open_again(
        &mut self,
        letter: Redriven,
        from: Sender,
        (first, others): (ListenerId, Vec<ListenerId>),
        payload: Validated<Element>,
        entry: Entry,
    ) {
        if let Err(fault) = self.room_in_organism() {
            return self.dead_again(letter, fault, entry);
        }
        let Redriven { to, root, permit, .. } = letter;
        // The letter of a client has no more than a conversation of the client.
        let budget = self.root_budget(match from {
            Sender::Client(client) => Owner::Client(client),
            Sender::Listener(_) | Sender::System | Sender::Core => Owner::None,
        });
        let deadline = self.end_of(budget.as_deref());
        let opening = Root { id: root, owner: Owner::None, traceparent: None, boot: false, deadline };
        let parent = self.tree.open_root(opening, &mut self.step);
        self.open_account(parent, budget);
        let (mut permit, mut entry) = (Some(permit), Some(entry));
        for target in std::iter::once(first).chain(others) {
            let entry = entry.take().unwrap_or_else(|| self.step.books.made());
            let call = Call {
                parent,
                target,
                payload: payload.clone(),
                reply_to: ReplyTo::None,
                ids: self.entrance.next_ids(root),
                from,
                label: None,
                traceparent: None,
                deadline: Time::MAX,
                budget: None,
                spawned: false,
                permit: permit.take(),
            };
            if let Err((fault, entry)) = self.place(call, entry) {
                self.dead_letter(parent, (from, to.clone()), Some(payload.payload().clone()), fault, entry);
            }
        }
        self.tree.touch(parent);
    }

    /// Keeps a letter that is undeliverable once more.
    pub(super) fn dead_again(&mut self, letter: Redriven, reason: Fault, entry: Entry) {
        let Redriven { from, to, payload, conversation, root, .. } = letter;
        let (qname, code) = (payload.root(), reason.code);
        self.step.out.root_event((root, None), self.step.clock.now, || EventKind::DeadLetter {
            payload: Some(qname.clone()),
            reason: code,
        });
        self.dead_letter_outside((from, to), (Partition::of(root), conversation), Some(payload), reason, entry);
    }

    /// Forgets a dead letter.
    pub(super) fn discard_letter(&mut self, letter: DeadLetterId) -> Result<(), DeadLetterError> {
        self.tree.dead.take(letter).ok_or(DeadLetterError::Unknown)?;
        self.step.out.write(|| Op::LetterGone { letter: letter.number() });
        Ok(())
    }

    /// Learns a later version: its listeners have slots from now on.
    pub(super) fn learn_version(&mut self, version: OrganismVersion) {
        let blueprint = version.blueprint.clone();
        let before = &self.setup.blueprint;
        let is_paused = |name: &Name| before.named(name).any(|id| self.turns.slots[id.0 as usize].paused);
        let slots = |(_, one): (ListenerId, &Contract)| {
            let mut slots = Slots::new(one.concurrency);
            slots.paused = is_paused(&one.name);
            slots
        };
        let new: Vec<_> = blueprint.all_listeners().skip(self.turns.slots.len()).map(slots).collect();
        self.turns.slots.extend(new);
        self.payloads.add(&version);
        let Setup { core, cores, partitions, ref key, started, .. } = *self.setup;
        let key = key.clone();
        self.set_up(Setup { core, cores, partitions, blueprint, key, started });
    }

    /// Lets new conversations begin with a version. What `<boot>` began is no conversation that ends: it ends here, as at the end of
    /// the organism.
    pub(super) fn begin_version(&mut self, version: Version) {
        self.present = self.payloads.version(version);
        self.tree.version = version;
        for key in self.tree.in_order(|_| true) {
            if self.tree.threads.contains_key(key) && self.is_booting(key) {
                self.end_child(key);
            }
        }
    }

    /// Stops endless work: pending continues and boot handlers, except those that the next start takes up.
    /// A thread that has nothing but such a continue to wait for ends as `cancelled`, unless its silence is `idle`.
    pub(super) fn drain(&mut self) {
        self.entrance.phase = self.entrance.phase.max(Phase::Draining);
        for key in self.tree.in_order(|_| true) {
            if !self.tree.threads.contains_key(key) {
                continue;
            }
            if self.is_booting(key) {
                if !(self.step.out.writes() && self.reattaches(key)) {
                    self.end_child(key);
                }
            } else if !self.step.out.writes() && self.tree.cancel_delayed(key, &mut self.step) > 0 {
                self.tree[key].extra.get_or_insert_default().drained = true;
                self.tree.touch(key);
            }
        }
    }

    /// Ends every conversation: one fault each where an answer is owed, the rest to the dead letters.
    ///
    /// A durable core leaves them to its next start instead, and sends no faults.
    pub(super) fn stop(&mut self) {
        self.drain();
        self.settle_touched();
        self.entrance.phase = Phase::Stopped;
        if !self.step.out.writes() {
            return self.end_all(&faults::cancelled());
        }
        self.step.out.seal();
        for item in self.entrance.take_all() {
            self.leave_unwritten(item);
        }
        self.close_all();
    }

    /// Gives all conversations up, without effects: what is written is for the next owner of the partitions, and what is
    /// not did not happen. Messages that were not accepted stay on the entrance queue, to be handed on.
    pub(super) fn release(&mut self) {
        if !self.step.out.writes() {
            return;
        }
        self.tree.directory.withdraw(self.setup.core);
        self.step.out.seal();
        for item in self.entrance.take_all() {
            match item {
                Item::Injected(Injected { client, .. }, _) => self.entrance.push(Some(client).into(), item),
                item => self.leave_unwritten(item),
            }
        }
        self.close_all();
        self.tree.dead.clear();
    }

    /// Leaves an item of the entrance queue to the next owner of its partition. Messages that were not accepted are not in the journal.
    fn leave_unwritten(&mut self, item: Item) {
        match item {
            Item::Injected(..) | Item::Redriven(..) => self.abandon(item, &faults::cancelled()),
            Item::Response(response) => self.give_back(response.holdings),
            Item::Calls(_) | Item::Reattached(_) | Item::Left(_) | Item::Cancel(_) => {}
        }
    }

    fn close_all(&mut self) {
        for key in self.tree.in_order(is_root) {
            self.close(key);
        }
    }

    /// Ends the organism after a failure of the journal: clients that wait get a fault, and acknowledged messages wait
    /// for the next start.
    pub(super) fn unwritable(&mut self) {
        self.step.out.give_up();
        self.entrance.phase = Phase::Stopped;
        self.end_all(&faults::unwritable());
    }

    /// Drops all conversations after another owner took partitions over: what is written is that owner's, and what is not
    /// did not happen. Clients that wait get a fault.
    pub(super) fn fenced(&mut self) {
        self.tree.directory.withdraw(self.setup.core);
        let held = self.step.out.give_up();
        self.end_all(&faults::fenced());
        self.tree.dead.clear();
        for output in held {
            self.undo(output);
        }
    }

    /// Ends an output that waited for a step which will not be written. Slots move on as they would have.
    fn undo(&mut self, output: Output) {
        match output {
            Output::Start(start) => self.finished(start.invocation, HandlerOutcome::Aborted),
            Output::Egress { egress: Egress { client, root, in_reply_to: label, .. }, place } => {
                let about = self.entrance.stray_ids().0;
                let recipient = Recipient { client, root, label, traceparent: None, place };
                self.last_fault(recipient, about, &faults::fenced());
            }
            Output::Taken { ticket, .. } => self.step.out.taken(ticket, AttachmentEnd::Dropped),
            Output::Operated { ticket, .. } => {
                self.step.out.emit(Output::Operated { ticket, result: Err(OperationError::Fenced) });
            }
            // The end of its message will not be written, so the next owner runs it again.
            Output::Abort { invocation, .. } => self.step.out.emit(Output::Abort { invocation, moves: true }),
            Output::DraftOver { invocation, .. } => {
                self.step.out.emit(Output::DraftOver { invocation, end: DraftEnd::Retried });
            }
            Output::Closed { .. } | Output::Gone { .. } | Output::Core { .. } => self.step.out.emit(output),
            Output::Resume { .. }
            | Output::NotRedriven { .. }
            | Output::Append { .. }
            | Output::Noted { .. }
            | Output::Reserved { .. }
            | Output::Event(_) => {}
        }
    }

    fn end_all(&mut self, fault: &Fault) {
        for item in self.entrance.take_all() {
            self.abandon(item, fault);
        }
        for key in self.tree.in_order(is_root) {
            let thread = &self.tree[key];
            if let (Owner::Client(client), true) = (thread.owner, thread.children.open > 0) {
                let about = thread.opened_by;
                let recipient = Recipient { client, root: thread.id, label: None, traceparent: None, place: None };
                self.last_fault(recipient, about, fault);
            }
            self.dead_queued(key);
            self.close(key);
        }
    }

    /// Ends an item of the entrance queue that will not be processed.
    pub(super) fn abandon(&mut self, item: Item, fault: &Fault) {
        match item {
            Item::Injected(Injected { client, root, attachment, message, place, .. }, entry) => {
                let label = message.label();
                if let Some(attachment) = attachment {
                    self.step.out.take(attachment, AttachmentEnd::Dropped);
                }
                self.step.books.faulted(entry);
                let about = self.entrance.stray_ids().0;
                self.last_fault(Recipient { client, root, label, traceparent: None, place }, about, fault);
                if !self.tree.roots.contains_key(&root) {
                    self.step.out.emit(Output::Closed { client, root });
                }
            }
            Item::Response(Response { thread, holdings, outcome: HandlerOutcome::Emitted(emissions), .. }) => {
                self.give_back(holdings);
                self.dead_emissions(thread, emissions);
            }
            Item::Response(Response { thread, holdings, .. }) => {
                self.give_back(holdings);
                let entry = self.step.books.emitted(1).one();
                self.dead_emission(thread, None, None, entry);
            }
            Item::Calls(calls) => self.dead_emissions(calls.thread, calls.requests),
            Item::Reattached(..) => {}
            Item::Redriven(mut letter, entry) => {
                if let Some((ticket, _)) = letter.asked.take() {
                    let has_ended = self.entrance.phase == Phase::Stopped;
                    let error = if has_ended { OperationError::Closed } else { OperationError::Fenced };
                    self.step.out.emit(Output::Operated { ticket, result: Err(error) });
                }
                self.dead_again(letter, fault.clone(), entry);
            }
            Item::Left(root) | Item::Cancel(root) => self.step.out.emit(Output::Gone { root }),
        }
    }

    /// Moves the queued messages below a root to the dead letters.
    fn dead_queued(&mut self, root: ThreadKey) {
        let mut subtree = vec![root];
        let mut read = 0;
        while let Some(&key) = subtree.get(read) {
            read += 1;
            self.tree.children_of(key, &mut subtree);
            for message in self.tree.take_queued(key) {
                self.dead_message(key, message);
            }
        }
    }

    fn dead_message(&mut self, key: ThreadKey, message: Queued) {
        // A request is for the thread's listener; an answer is for the thread alone.
        let to = self.tree[key].listener().filter(|_| message.in_reply_to.is_none());
        let to = to.map(|listener| self.setup.blueprint[listener].name.clone());
        self.dead_letter(key, (message.from, to), message.content.payload(), faults::cancelled(), message.entry);
    }

    fn dead_emissions(&mut self, thread: ThreadKey, emissions: Vec<Emission>) {
        let mut entries = self.step.books.emitted(emissions.len());
        for emission in emissions {
            self.dead_emission(thread, emission.to, emission.payload.into_payload(), entries.one());
        }
        self.step.books.cancelled(entries);
    }

    fn dead_emission(&mut self, key: ThreadKey, to: Option<Name>, payload: Option<Canonical>, entry: Entry) {
        match self.tree.threads.get(key).and_then(|thread| thread.listener()) {
            Some(listener) => {
                self.dead_letter(key, (Sender::Listener(listener), to), payload, faults::cancelled(), entry)
            }
            None => self.step.books.cancelled(entry),
        }
    }

    fn last_fault(&mut self, recipient: Recipient, about: MessageId, fault: &Fault) {
        let (id, _) = self.setup.key.derive(about, own_index::FAULT);
        let entry = self.step.books.made();
        self.send_to_client(recipient, Sender::System, id, Reply::Fault(fault.clone()), entry);
    }
}

impl Recovery {
    /// A destination of the journal; that of a fan-out which is over leads nowhere.
    fn reply_to(&self, reply_to: journal::ReplyTo) -> ReplyTo {
        match reply_to {
            journal::ReplyTo::None => ReplyTo::None,
            journal::ReplyTo::Single => ReplyTo::Single,
            journal::ReplyTo::Fan(fan, index) => {
                self.fans.get(&fan).map_or(ReplyTo::None, |&fan| ReplyTo::Fan { fan, index })
            }
        }
    }
}

fn is_root(thread: &Thread) -> bool {
    thread.parent.is_none()
}
