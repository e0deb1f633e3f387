//! The start from a journal: its records become threads, mailboxes and timers again.

use std::collections::{HashMap, HashSet};

use slotmap::Key;
use systole_xml::ladder::{Meta, write_envelope};
use systole_xml::schema::{Element, Validated};
use uuid::Uuid;

use super::Core;
use crate::core::blueprint::Party;
use crate::core::contract::OnRestart;
use crate::core::conversation::AwaitedAnswers;
use crate::core::faults;
use crate::core::invocations::{Made, MadeState};
use crate::core::io::{Answer, Body, CallId, Egress, Output, Place, Precedence, Remembered, Settled};
use crate::core::key::{FanOutKey, InvocationId, ThreadKey};
use crate::core::outcomes::Outcomes;
use crate::core::queued::{Attempts, Content, Origin, Queued, Sender};
use crate::core::records::{join_of, stored};
use crate::core::tree::{FanOut, FanOutKind, Owner, Turned};
use crate::journal::{
    self, AnswerRecord, BodyRecord, CallRecord, EgressRecord, FanId, FanRecord, Link, MailState, MessageRecord,
    MessageState, NoteRecord, Number, Op, OrdinalRecord, Recovered, RememberedRecord, SettledRecord, ThreadRecord,
};
use crate::protocol;
use crate::vocab::{Fault, MessageId, Name, ThreadId};

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
    /// Recovers the conversations of this core from the journal.
    ///
    /// Every message that was not done is queued again, in the order in which it came, over all cores
    /// (`core::turns::gather`). What is below `<boot>` is over: each start boots anew.
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
            ..
        } = recovered;
        let mut recovery = Recovery::default();
        for letter in letters {
            self.tree.recover_letter(letter, &mut self.step);
        }
        let mut origins = Vec::new();
        for thread in threads {
            origins.push((thread.number, thread.origin));
            self.recover_thread(thread, &mut recovery);
        }
        for OrdinalRecord { parent, listener, last } in ordinals {
            let listener = self.setup.blueprint.party(listener.as_str());
            if let (Some(&parent), Some(Party::Listener(listener))) = (recovery.threads.get(&parent), listener) {
                self.tree.recover_ordinals(parent, listener, last);
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
        for (number, origin) in origins {
            let origin = recovery.origin(origin);
            if let Some(&key) = recovery.threads.get(&number).filter(|_| origin != Origin::None) {
                self.tree.recover_origin(key, origin);
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
                self.tree.recover_context(key, number, Remembered { from, payload, place }, calls);
            }
        }
        // A message that stands in a mailbox had a slot, which it gets before those that waited for one: they may have come
        // first, at another core. Numbers of mail are smaller than those of messages, which begin with an epoch.
        let mail = mail.into_iter().filter(|mail| mail.status.state == MailState::Waiting);
        let held: HashMap<MessageId, Number> = mail.map(|mail| (mail.id, mail.seq)).collect();
        let mut arrivals = Vec::with_capacity(messages.len());
        for note in notes {
            let replay = self.invocations.recall(note.message);
            match note.index {
                NoteRecord::CONTEXT => replay.remembered = note.value.parse().ok(),
                NoteRecord::BEGAN => replay.began = note.value.parse().ok(),
                _ => replay.notes.push(note),
            }
        }
        for record in messages {
            let began = || self.invocations.began(record.number).map(Precedence::Began);
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
                self.turns.arrives(at);
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
            self.redrive_marked(self.tree.letter_id(letter), root);
        }
    }

    fn recover_thread(&mut self, record: ThreadRecord, recovery: &mut Recovery) {
        let party = |name: &Name| self.setup.blueprint.party(name.as_str());
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
        let key = self.tree.recover_thread(record, owner, parent.flatten(), &mut self.step);
        recovery.threads.insert(number, key);
    }

    fn is_over(&self, record: &ThreadRecord, owner: Option<Owner>, recovery: &Recovery) -> bool {
        let Some(parent) = record.parent else { return false };
        let below_boot = recovery.threads.get(&parent).is_some_and(|&parent| self.tree[parent].is_boot());
        let kept = matches!(owner, Some(Owner::Listener(id)) if self.setup.blueprint.contract(id).on_restart == OnRestart::Reattach);
        recovery.over.contains(&parent) || below_boot && !kept
    }

    fn recover_fan(&mut self, record: FanRecord, recovery: &mut Recovery) {
        let FanRecord { id, thread, source, total, delivered, counted_off, call } = record;
        let Some(&owner) = recovery.threads.get(&thread) else { return };
        let Some(CallRecord { requests, join, until, settled, outcome }) = call else {
            let kind = FanOutKind::Mailbox { delivered, counted_off };
            let key = self.tree.recover_fan_out(FanOut { id, owner, source, total, kind });
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
                let fan = self.tree.recover_fan_out(FanOut { id, owner, source, total, kind });
                self.tree.expire_at(fan, until, &mut self.step);
                recovery.fans.insert(id, fan);
                MadeState::Open(fan)
            }
            journal::FanOutcome::Decided { order, result } => {
                self.invocations.recall(id.message).decided.insert(order, CallId(call));
                MadeState::Decided(result.map(|settled| self.recover_settled(settled)))
            }
            journal::FanOutcome::Dropped => MadeState::Dropped,
        };
        let replay = self.invocations.recall(id.message);
        replay.emitted += u64::from(total);
        replay.calls.insert(call, Made { requests, state });
    }

    fn recover_settled(&mut self, settled: Vec<SettledRecord>) -> Vec<Settled> {
        let settled = settled.into_iter();
        settled.map(|one| Settled { index: one.index, outcome: self.recover_answer(one.outcome) }).collect()
    }

    fn recover_answer(&mut self, outcome: Result<AnswerRecord, Fault>) -> Result<Answer, Fault> {
        let AnswerRecord { from, payload } = outcome?;
        let payload: Validated<Element> = self.judge.prove_stored(payload)?;
        Ok(Answer { from, payload })
    }

    /// Puts a message where it waited.
    fn recover_message(&mut self, record: MessageRecord, crashed: bool, recovery: &Recovery) {
        let MessageRecord { number, thread, id, in_reply_to, answers, state, attempts, .. } = record;
        let Some(&key) = recovery.threads.get(&thread) else {
            if !recovery.over.contains(&thread) {
                self.keep_dead_record(record, faults::unregistered());
            }
            return;
        };
        let from = self.sender_named(&record.from);
        if from == Sender::System && self.tree.is_below_boot(key) && matches!(record.body, BodyRecord::Payload(_)) {
            return self.boot_again(key, number, id);
        }
        let content = match record.body {
            BodyRecord::Payload(payload) => Content::Stored(payload),
            BodyRecord::Fault(fault) => Content::Body(Body::Fault(fault)),
            BodyRecord::Fatal(fault) => Content::Fatal(fault),
        };
        let share = self.tree.count(key, content.size());
        // The first message may have been running.
        let suspect = crashed && state == MessageState::Queued && self.tree[key].mailbox.len() == 0;
        let attempts = Attempts { lost: u8::try_from(attempts).unwrap_or(u8::MAX), is_suspect: suspect };
        let answers = recovery.origin(answers);
        let entry = self.step.books.recovered();
        let message = Queued { number, attempts, in_reply_to, answers, ..Queued::new(id, from, content, share, entry) };
        let turn = match state {
            MessageState::Queued => Turned::Queued,
            MessageState::Delayed(due) => Turned::Delayed(due),
            MessageState::Backlog(origin) => Turned::Backlog(recovery.origin(origin)),
        };
        self.tree.recover_message(key, message, turn, &mut self.step);
    }

    /// Sends `<boot>` again to a thread that had it in an earlier start, under a new id: calls of this start have other
    /// ids than those before.
    fn boot_again(&mut self, key: ThreadKey, number: Number, before: MessageId) {
        let entry = self.step.books.recovered();
        let index = self.step.out.next_number();
        let (id, _) = self.setup.key.derive(before, index);
        let body = self.tree[key].listener().map(|listener| self.boot_body(listener));
        let Some(Ok(body)) = body else { return self.step.books.cancelled(entry) };
        let share = self.tree.count(key, 0);
        let message = Queued { number, ..Queued::new(id, Sender::System, Content::Body(body), share, entry) };
        self.tree.recover_message(key, message, Turned::Queued, &mut self.step);
    }

    /// Cancels the awaited calls of parties that are asked again: they may answer anything, so the calls of their last
    /// answer do not count. The notes of such a handler stay.
    fn cancel_calls_of_asked(&mut self, recovery: &Recovery) {
        let mut asked: Vec<_> = recovery.threads.values().copied().collect();
        asked.retain(|&key| {
            let listener = self.tree.get(key).and_then(|thread| thread.listener());
            listener.is_some_and(|id| self.setup.blueprint.contract(id).on_restart == OnRestart::AskAgain)
        });
        asked.sort_unstable();
        for key in asked {
            let first = self.tree.get(key).and_then(|thread| thread.mailbox.front()).map(|message| message.number);
            let open = first.map(|message| self.invocations.forget_calls(message));
            open.into_iter().flatten().for_each(|fan| self.drop_fan_out(fan));
        }
    }

    /// Ends a thread whose listener is no longer registered, or whose client: its parent gets a fault. A client that is
    /// registered again later finds the fault among its answers.
    fn give_up_thread(&mut self, record: &ThreadRecord, lost: &HashMap<Number, (Name, ThreadId)>, recovery: &Recovery) {
        if let Some((client, root)) = record.parent.and_then(|parent| lost.get(&parent))
            && record.origin != journal::Origin::None
        {
            self.leave_unregistered(client, *root, record);
        }
        self.step.out.write(|| Op::Close { thread: record.number });
        let origin = recovery.origin(record.origin);
        let parent = record.parent.and_then(|parent| recovery.threads.get(&parent)).copied();
        if let Some(parent) = parent.filter(|&parent| origin != Origin::None && self.tree.contains(parent)) {
            let label = record.label.clone();
            self.fault_to(parent, origin, record.opened_by, label, faults::unregistered());
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
        let Some(Party::Client(client)) = self.setup.blueprint.party(client.as_str()) else { return };
        let Ok(payload) = stored(payload) else { return };
        let proof = match fault {
            Some(_) => None,
            None => self.judge.validate(payload.clone()).ok(),
        };
        let egress = Egress { number, client, root, from, in_reply_to, envelope, fault, payload, proof };
        self.step.out.emit(Output::Egress { egress, place: None });
    }

    fn keep_dead_record(&mut self, record: MessageRecord, reason: Fault) {
        let payload = match record.body {
            BodyRecord::Payload(payload) => stored(payload).ok(),
            BodyRecord::Fault(_) | BodyRecord::Fatal(_) => None,
        };
        let entry = self.step.books.recovered();
        self.keep_dead_outside((record.from, None), (self.setup.first_partition(), None), payload, reason, entry);
    }

    fn sender_named(&self, name: &Name) -> Sender {
        match self.setup.blueprint.party(name.as_str()) {
            Some(Party::Listener(id)) => Sender::Listener(id),
            Some(Party::Client(id)) => Sender::Client(id),
            None if *name == Name::core() => Sender::Core,
            None => Sender::System,
        }
    }
}

impl Recovery {
    /// An origin; that of a fan-out which is over leads nowhere.
    fn origin(&self, origin: journal::Origin) -> Origin {
        match origin {
            journal::Origin::None => Origin::None,
            journal::Origin::Single => Origin::Single,
            journal::Origin::Fan(fan, index) => {
                self.fans.get(&fan).map_or(Origin::None, |&fan| Origin::Fan { fan, index })
            }
        }
    }
}
