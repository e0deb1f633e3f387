//! The start from a journal: what it holds becomes threads, mailboxes and timers again.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use slotmap::Key;
use systole_xml::ladder::{Canonical, Element, Raw, Validated, climb};
use uuid::Uuid;

use super::blueprint::{ListenerId, Party};
use super::conversation::Pile;
use super::dead::DeadLetter;
use super::faults;
use super::io::{Answer, Body, CallId, Egress, Output, Remembered, Settled};
use super::join::{Fan, FanKind};
use super::key::{FanKey, TaskId, ThreadKey};
use super::log::join_of;
use super::machine::Core;
use super::outcomes::Outcomes;
use super::replay::{Made, MadeState, Replay, TaskLog};
use super::thread::{Backlog, Content, Origin, Owner, Queued, Sender};
use super::timer::Timer;
use crate::journal::{
    self, AnswerRecord, BodyRecord, CallRecord, EgressRecord, FanId, FanRecord, LetterRecord, MessageRecord,
    MessageState, NoteRecord, Number, Op, Recovered, RememberedRecord, SettledRecord, ThreadRecord,
};
use crate::vocab::{Fault, MessageId, Name, ThreadId, ThreadPath, XmlLimits};

/// Where the records of a journal are now.
#[derive(Default)]
struct Places {
    threads: HashMap<Number, ThreadKey>,
    fans: HashMap<FanId, FanKey>,
    /// Threads below an earlier `<boot>` that nobody takes up.
    over: HashSet<Number>,
    /// Threads whose listener or client is not registered any more, or that were below one of those.
    lost: Vec<ThreadRecord>,
}

impl Core {
    /// Takes up what the journal holds of the conversations of this shard.
    ///
    /// Every message that was not done is queued again, in the order in which it came, over all shards
    /// (`core::gather`). What is below `<boot>` is over: each start boots anew.
    /// Only a listener that [reattaches](super::contract::Contract::reattaches) has its thread again.
    pub(super) fn recover(&mut self, recovered: Recovered) {
        let Recovered { crashed, threads, fans, messages, notes, remembered, egress, letters, requeue, .. } = recovered;
        let mut places = Places::default();
        for letter in letters {
            self.recover_letter(letter);
        }
        let mut origins = Vec::new();
        for thread in threads {
            origins.push((thread.number, thread.origin));
            self.recover_thread(thread, &mut places);
        }
        for fan in fans {
            self.recover_fan(fan, &mut places);
        }
        for (number, origin) in origins {
            let origin = places.origin(origin);
            if let Some(&key) = places.threads.get(&number)
                && origin != Origin::None
            {
                let thread = &mut self.threads[key];
                thread.origin = origin;
                if let Some(parent) = thread.parent {
                    self.threads[parent].children.open += 1;
                }
            }
        }
        for entry in remembered {
            self.recover_context(entry, &places);
        }
        let mut arrivals = Vec::with_capacity(messages.len());
        for record in messages {
            arrivals.push((record.place, record.thread));
            self.recover_message(record, crashed, &places);
        }
        for note in notes {
            self.recover_note(note);
        }
        self.forget_calls_of_people(&places);
        for record in std::mem::take(&mut places.lost) {
            self.give_up_thread(&record, &places);
        }
        for record in egress {
            self.recover_egress(record);
        }
        // Whoever has a message stands in line as it came; the rest has nothing that could run.
        for (place, thread) in arrivals {
            if let Some(&key) = places.threads.get(&thread) {
                self.arrives(place);
                self.settle(key);
            }
        }
        self.all_recovered();
        let mut keys: Vec<_> = places.threads.into_iter().collect();
        keys.sort_unstable();
        for (_, key) in keys {
            self.settle(key);
        }
        for letter in requeue {
            // Nobody can guess the id of its root, and it is the same at each start.
            let (_, root) = self.key.derive_entry(ThreadId::from_uuid(Uuid::from_u128(letter.into())), 0);
            self.requeue_marked(self.dead.id_of(letter), root);
        }
    }

    fn recover_thread(&mut self, record: ThreadRecord, places: &mut Places) {
        let owner = match &record.owner {
            journal::Owner::Listener(name) => match self.blueprint.party(name.as_str()) {
                Some(Party::Listener(id)) => Some(Owner::Listener(id)),
                Some(Party::Client(_)) | None => None,
            },
            journal::Owner::Client(name) => match self.blueprint.party(name.as_str()) {
                Some(Party::Client(id)) => Some(Owner::Client(id)),
                Some(Party::Listener(_)) | None => None,
            },
            journal::Owner::Nobody | journal::Owner::Boot => Some(Owner::Nobody),
        };
        if self.is_over(&record, owner, places) {
            self.log(|_| Op::Close { thread: record.number });
            places.over.insert(record.number);
            return;
        }
        let parent = record.parent.map(|parent| places.threads.get(&parent).copied());
        let (Some(owner), None | Some(Some(_))) = (owner, parent) else { return places.lost.push(record) };
        let key = match (parent.flatten(), owner) {
            (Some(parent), Owner::Listener(listener)) => {
                self.threads[parent].reserve_ordinal(listener, record.ordinal);
                self.link_thread(parent, listener, record.number, (record.opened_by, record.id), record.ordinal)
            }
            _ => self.link_root(record.number, record.id, owner, record.opened_by),
        };
        if record.parent.is_none() {
            let root = self.threads[key].extra().root.get_or_insert_default();
            (root.left, root.boot) = (record.left, record.owner == journal::Owner::Boot);
        }
        if let Owner::Client(client) = owner {
            self.roots.insert(record.id, key);
            self.directory.insert(record.id, client, self.shard);
        }
        self.threads[key].deadline = record.deadline;
        if record.own_deadline {
            let timer = self.timers.set(record.deadline, Timer::Deadline(key));
            self.threads[key].extra().timer = Some(timer);
        }
        if record.spawned || record.label.is_some() || record.traceparent.is_some() {
            let extra = self.threads[key].extra();
            extra.label = record.label;
            extra.traceparent = record.traceparent;
            extra.spawned = record.spawned.then(Default::default);
        }
        if record.spawned {
            self.spawned.insert(record.id, key);
        }
        places.threads.insert(record.number, key);
    }

    fn is_over(&self, record: &ThreadRecord, owner: Option<Owner>, places: &Places) -> bool {
        let Some(parent) = record.parent else { return false };
        let root = places.threads.get(&parent).and_then(|&parent| self.threads[parent].extra.as_ref()?.root.as_ref());
        let kept = matches!(owner, Some(Owner::Listener(id)) if self.blueprint.contract(id).reattaches);
        places.over.contains(&parent) || root.is_some_and(|root| root.boot) && !kept
    }

    fn recover_fan(&mut self, record: FanRecord, places: &mut Places) {
        let FanRecord { id, thread, source, total, delivered, counted_off, call } = record;
        let Some(&owner) = places.threads.get(&thread) else { return };
        let Some(CallRecord { requests, join, until, settled, outcome }) = call else {
            let kind = FanKind::Mailbox { delivered, counted_off };
            places.fans.insert(id, self.open_fan(Fan { id, owner, source, total, kind }));
            return;
        };
        let Some(call) = id.call else { return };
        let state = match outcome {
            journal::Outcome::Open => {
                let mut outcomes = Outcomes::new(total as usize);
                let mut held = Pile::new(self.conversation_of(owner));
                for settled in settled {
                    if let Some(outcome) = outcomes.settle(settled.index, self.recover_answer(settled.outcome)) {
                        held.add_outcome(outcome);
                    }
                }
                let (task, call, join) = (TaskId::null(), CallId(call), join_of(&join));
                let kind = FanKind::Awaited { task, call, join, outcomes, held, expires: None };
                let fan = self.open_fan(Fan { id, owner, source, total, kind });
                self.expire_at(fan, until);
                places.fans.insert(id, fan);
                MadeState::Open(fan)
            }
            journal::Outcome::Decided { order, result } => {
                let replay = self.replays.entry(id.message).or_default();
                replay.decided.insert(order, CallId(call));
                MadeState::Decided(result.map(|settled| self.recover_settled(settled)))
            }
            journal::Outcome::Dropped => MadeState::Dropped,
        };
        let replay = self.replays.entry(id.message).or_default();
        replay.emitted += u64::from(total);
        replay.calls.insert(call, Made { requests, state });
    }

    fn recover_settled(&mut self, settled: Vec<SettledRecord>) -> Vec<Settled> {
        let settled = settled.into_iter();
        settled.map(|one| Settled { index: one.index, outcome: self.recover_answer(one.outcome) }).collect()
    }

    fn recover_answer(&mut self, outcome: Result<AnswerRecord, Fault>) -> Result<Answer, Fault> {
        let AnswerRecord { from, payload } = outcome?;
        Ok(Answer { from, payload: self.prove_stored(payload)? })
    }

    fn recover_context(&mut self, record: RememberedRecord, places: &Places) {
        let Some(&key) = places.threads.get(&record.thread) else { return };
        let Ok(payload) = stored(record.payload) else { return };
        let message = Remembered { from: record.from, payload };
        let Self { threads, blueprint, context, .. } = self;
        let history = threads[key].extra().history.get_or_insert_default();
        history.remember((record.number, message), &blueprint.limits, context);
    }

    /// Puts a message where it waited.
    fn recover_message(&mut self, record: MessageRecord, crashed: bool, places: &Places) {
        let MessageRecord { number, thread, id, in_reply_to, answers, state, attempts, .. } = record;
        let Some(&key) = places.threads.get(&thread) else {
            if !places.over.contains(&thread) {
                self.bury_record(record, faults::unregistered());
            }
            return;
        };
        let from = self.sender_named(&record.from);
        if from == Sender::System && self.is_below_boot(key) && matches!(record.body, BodyRecord::Payload(_)) {
            return self.boot_again(key, number, id);
        }
        let content = match record.body {
            BodyRecord::Payload(payload) => Content::Stored(payload),
            BodyRecord::Fault(fault) => Content::Body(Body::Fault(fault)),
            BodyRecord::Fatal(fault) => Content::Fatal(fault),
        };
        let permit = self.gauge.count(content.size());
        let share = self.share(key, permit);
        // Whoever stood first may have been running.
        let suspect = crashed && state == MessageState::Queued && self.threads[key].mailbox.len() == 0;
        let attempts = suspect.then(|| u8::try_from(attempts).unwrap_or(u8::MAX));
        let answers = places.origin(answers);
        let message = Queued { number, attempts, in_reply_to, answers, ..Queued::new(id, from, content, share) };
        self.counts.recovered += 1;
        match state {
            MessageState::Queued => {
                self.queued += 1;
                self.threads[key].mailbox.push(message);
            }
            MessageState::Delayed(due) => {
                let timer = self.timers.set(due, Timer::Continue(key, Box::new(message)));
                self.delayed += 1;
                self.threads[key].extra().continues.push(timer);
            }
            MessageState::Backlog(origin) => {
                self.queued += 1;
                let origin = places.origin(origin);
                if let Some(parent) = self.threads[key].parent.filter(|_| origin != Origin::None) {
                    self.threads[parent].children.open += 1;
                }
                self.threads[key].extra().spawned.get_or_insert_default().push_back(Backlog { message, origin });
            }
        }
    }

    /// `<boot>` comes to a thread that it had come to before, under an id of its own: what is called in this start has
    /// other ids than what was called before.
    fn boot_again(&mut self, key: ThreadKey, number: Number, before: MessageId) {
        self.counts.recovered += 1;
        let index = self.next_number();
        let (id, _) = self.key.derive(before, index);
        let body = self.threads[key].listener().map(|listener| self.boot_body(listener));
        let Some(Ok(body)) = body else { return self.counts.cancelled += 1 };
        let permit = self.gauge.count(0);
        let share = self.share(key, permit);
        let message = Queued { number, ..Queued::new(id, Sender::System, Content::Body(body), share) };
        self.queued += 1;
        self.threads[key].mailbox.push(message);
    }

    fn recover_note(&mut self, note: NoteRecord) {
        let replay = self.replays.entry(note.message).or_default();
        match note.index {
            NoteRecord::CONTEXT => replay.remembered = note.value.parse().ok(),
            _ => replay.notes.push(note),
        }
    }

    /// What a handler called before does not count, and is cancelled. What it noted stays: that it has done.
    fn forget_calls(&mut self, message: Number) {
        let Some(replay) = self.replays.get_mut(&message) else { return };
        let Replay { calls, notes, remembered, .. } = std::mem::take(replay);
        (replay.notes, replay.remembered) = (notes, remembered);
        let mut calls: Vec<_> = calls.into_iter().collect();
        calls.sort_unstable_by_key(|(call, _)| *call);
        for (_, made) in calls {
            if let MadeState::Open(fan) = made.state {
                self.drop_fan(fan);
            }
        }
    }

    /// A person who is asked again may answer anything: what was called at the last answer does not count.
    fn forget_calls_of_people(&mut self, places: &Places) {
        let mut people: Vec<_> = places.threads.values().copied().collect();
        people.retain(|&key| {
            let listener = self.threads.get(key).and_then(|thread| thread.listener());
            let contract = listener.map(|listener| self.blueprint.contract(listener));
            contract.is_some_and(|contract| contract.timeout.is_none() && !contract.reattaches)
        });
        people.sort_unstable();
        for key in people {
            let first = self.threads.get(key).and_then(|thread| thread.mailbox.front()).map(|message| message.number);
            if let Some(message) = first {
                self.forget_calls(message);
            }
        }
    }

    /// A thread that nobody works on any more: its parent is told.
    fn give_up_thread(&mut self, record: &ThreadRecord, places: &Places) {
        self.log(|_| Op::Close { thread: record.number });
        let origin = places.origin(record.origin);
        let parent = record.parent.and_then(|parent| places.threads.get(&parent)).copied();
        if let Some(parent) = parent.filter(|&parent| origin != Origin::None && self.threads.contains_key(parent)) {
            let label = record.label.clone();
            self.fault_to(parent, origin, record.opened_by, label, faults::unregistered());
        }
    }

    fn recover_letter(&mut self, record: LetterRecord) {
        let LetterRecord { number, at, from, to, path, payload, reason } = record;
        let payload = payload.and_then(|(_, payload)| stored(payload).ok());
        let id = self.dead.id_of(number);
        for letter in self.dead.push(DeadLetter { id, at, from, to, path, payload, reason }) {
            self.log(|_| Op::Unbury { letter: letter.number() });
        }
    }

    fn recover_egress(&mut self, record: EgressRecord) {
        let EgressRecord { number, client, root, from, in_reply_to, envelope, fault, payload } = record;
        // It waits for a start at which the client is there.
        let Some(Party::Client(client)) = self.blueprint.party(client.as_str()) else { return };
        let Ok(payload) = stored(payload) else { return };
        let proof = match fault {
            Some(_) => None,
            None => self.validator.validate(payload.clone()).ok(),
        };
        let egress = Egress { number, client, root, from, in_reply_to, envelope, fault, payload, proof };
        self.outputs.push_back(Output::Egress(egress));
    }

    fn bury_record(&mut self, record: MessageRecord, reason: Fault) {
        let payload = match record.body {
            BodyRecord::Payload(payload) => stored(payload).ok(),
            BodyRecord::Fault(_) | BodyRecord::Fatal(_) => None,
        };
        self.counts.recovered += 1;
        self.keep((record.from, None), ThreadPath::new(Vec::new()), payload, reason);
    }

    fn sender_named(&self, name: &Name) -> Sender {
        match self.blueprint.party(name.as_str()) {
            Some(Party::Listener(id)) => Sender::Listener(id),
            Some(Party::Client(id)) => Sender::Client(id),
            None if *name == Name::core() => Sender::Core,
            None => Sender::System,
        }
    }

    /// A payload out of the journal, as its listener takes it. Schemas may have changed since it was written.
    pub(super) fn restore(&mut self, listener: ListenerId, payload: Bytes) -> Result<Body, Fault> {
        let payload = self.prove_stored(payload)?;
        self.decode(listener, payload)
    }

    fn prove_stored(&mut self, payload: Bytes) -> Result<Validated<Element>, Fault> {
        let payload = stored(payload)?;
        self.validator.validate(payload.clone()).map_err(|error| faults::payload(payload.root(), &error, &self.catalog))
    }

    /// Whether a message may run once more, after a crash in which it may have been running.
    pub(super) fn count_attempt(
        &mut self,
        listener: ListenerId,
        number: Number,
        attempts: Option<u8>,
    ) -> Result<Option<u8>, Fault> {
        // Whoever waits for a person does not bring the process down.
        let Some(attempts) = attempts.filter(|_| self.blueprint.contract(listener).timeout.is_some()) else {
            return Ok(None);
        };
        if u32::from(attempts) >= self.blueprint.limits.max_attempts {
            return Err(faults::too_many_attempts(u32::from(attempts)));
        }
        self.log(|_| Op::Attempt { message: number, attempts: u32::from(attempts) + 1 });
        Ok(Some(attempts + 1))
    }

    /// Tells a task what the journal says of its message; gives back what its handler noted before.
    pub(super) fn attach_log(
        &mut self,
        task: TaskId,
        number: Number,
        attempts: Option<u8>,
        answered: Option<(FanId, u32)>,
    ) -> Vec<NoteRecord> {
        if number == 0 {
            return Vec::new();
        }
        let mut replay = self.replays.remove(&number).unwrap_or_default();
        if self.tasks.get(task).is_some_and(|task| self.blueprint.contract(task.listener).reattaches) {
            replay.reattach();
        }
        let notes = std::mem::take(&mut replay.notes);
        for made in replay.calls.values() {
            if let MadeState::Open(fan) = made.state
                && let Some(FanKind::Awaited { task: owner, .. }) = self.fans.get_mut(fan).map(|fan| &mut fan.kind)
            {
                *owner = task;
            }
        }
        if let Some(task) = self.tasks.get_mut(task) {
            task.emitted = replay.emitted;
            task.log = Some(Box::new(TaskLog { number, attempts, answered, replay, attachment: None }));
        }
        notes
    }
}

impl Places {
    /// An origin; that of a fan-out which is over is nobody's.
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

/// Canonical bytes out of the journal.
pub(super) fn stored(payload: Bytes) -> Result<Canonical, Fault> {
    climb(&Raw::new(payload), &XmlLimits::UNLIMITED).map_err(|error| faults::malformed(&error))
}
