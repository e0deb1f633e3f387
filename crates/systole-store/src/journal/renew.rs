//! Renewal of records: a fork has numbers and ids that nothing else has.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use systole_core::journal::{
    FanId, FanOutcome, FanRecord, Link, MessageRecord, MessageState, NoteRecord, Number, Op, Owner, RememberedRecord,
    ReplyTo, Seen, SubmissionRecord, ThreadRecord, numbers_after,
};
use systole_core::vocab::{IdKey, MessageId, Name, ThreadId, Time};

use super::budget::renewed;
use super::open_rows::OpenRows;
use crate::sqlite::FileProblem;

/// New numbers and ids by old ones.
pub(super) struct Renewal {
    key: IdKey,
    root: ThreadId,
    /// New numbers by old ones, in the same order.
    numbers: BTreeMap<Number, Number>,
    threads: HashMap<ThreadId, ThreadId>,
    messages: HashMap<MessageId, MessageId>,
    /// The last number that was assigned.
    last: Number,
    /// Delay of everything that is due at a time.
    later: Duration,
    /// The label of answers to a client over a network: the id of its message.
    label: Option<Arc<str>>,
}

impl Renewal {
    /// Assigns the numbers of a start that nothing else has.
    pub(super) fn new(key: IdKey, epoch: u32, moment: &OpenRows, later: Duration) -> Result<Self, FileProblem> {
        let first = moment.threads.first().ok_or_else(torn)?;
        let mut last = numbers_after(epoch);
        let (_, root) = key.derive_entry(first.id, last);
        let mut numbers = BTreeMap::new();
        for number in numbers_of(moment) {
            last += 1;
            numbers.insert(number, last);
        }
        let mut renewal =
            Self { key, root, numbers, threads: HashMap::new(), messages: HashMap::new(), last, later, label: None };
        for thread in &moment.threads {
            let id = match thread.number == first.number {
                true => root,
                false => renewal.key.derive_entry(root, renewal.number(thread.number)?).1,
            };
            renewal.threads.insert(thread.id, id);
        }
        for message in &moment.messages {
            let (id, _) = renewal.key.derive_entry(root, renewal.number(message.number)?);
            renewal.messages.insert(message.id, id);
        }
        Ok(renewal)
    }

    /// Returns the id of the new conversation.
    pub(super) fn root(&self) -> ThreadId {
        self.root
    }

    /// Makes the operations that create the conversation for a client. `submitted`: as a message of a client over a
    /// network, whose id is that of the conversation.
    pub(super) fn ops(&mut self, moment: OpenRows, owner: &Name, submitted: bool) -> Result<Vec<Op>, FileProblem> {
        let OpenRows { threads, budgets, messages, fans, notes, remembered } = moment;
        let before = threads.first().map(|root| root.owner.clone());
        let mut ops = Vec::new();
        if submitted {
            let id = MessageId::from_uuid(*self.root.as_uuid());
            self.label = Some(id.to_string().into());
            ops.push(Op::Submitted(SubmissionRecord { id, client: owner.clone(), root: self.root, key: None }));
        }
        for thread in threads {
            ops.push(Op::Open(self.thread(thread, owner)?));
        }
        for budget in budgets {
            ops.push(renewed(budget, self.number(budget.thread)?));
        }
        for fan in fans {
            ops.push(Op::Fan(self.fan(fan)?));
        }
        for message in messages {
            let mut message = self.message(message)?;
            if before == Some(Owner::Client(message.from.clone())) {
                message.from = owner.clone();
            }
            ops.push(Op::Put(message));
        }
        for note in notes {
            ops.push(Op::Note(self.note(note)?));
        }
        for (entry, _) in remembered {
            let (number, thread) = (self.number(entry.number)?, self.number(entry.thread)?);
            let link = match entry.link {
                Link::Calls(calls) => Link::Calls(calls.into_iter().map(|id| self.id(id)).collect()),
                link @ (Link::None | Link::Answers(_)) => link,
            };
            ops.push(Op::Remember(RememberedRecord { number, thread, link, ..entry }));
        }
        Ok(ops)
    }

    fn thread(&mut self, thread: ThreadRecord, owner: &Name) -> Result<ThreadRecord, FileProblem> {
        Ok(ThreadRecord {
            number: self.number(thread.number)?,
            id: self.threads.get(&thread.id).copied().ok_or_else(torn)?,
            parent: thread.parent.map(|parent| self.number(parent)).transpose()?,
            root: self.number(thread.root)?,
            owner: if thread.parent.is_none() { Owner::Client(owner.clone()) } else { thread.owner },
            opened_by: self.id(thread.opened_by),
            reply_to: self.reply_to(thread.reply_to),
            deadline: self.time(thread.deadline),
            // The client doesn't hold the conversation: nothing else is sent into it, so it ends with its threads.
            left: thread.parent.is_none(),
            label: match &self.label {
                Some(label) if thread.parent == Some(thread.root) => Some(label.clone()),
                _ => thread.label.clone(),
            },
            ..thread
        })
    }

    fn message(&mut self, message: MessageRecord) -> Result<MessageRecord, FileProblem> {
        Ok(MessageRecord {
            number: self.number(message.number)?,
            place: self.number(message.place)?,
            thread: self.number(message.thread)?,
            id: self.id(message.id),
            in_reply_to: message.in_reply_to.map(|id| self.id(id)),
            answers: self.reply_to(message.answers),
            state: match message.state {
                MessageState::Queued | MessageState::Backlog(_) => MessageState::Queued,
                MessageState::Delayed(due) => MessageState::Delayed(self.time(due)),
            },
            attempts: 0,
            ..message
        })
    }

    fn note(&self, note: NoteRecord) -> Result<NoteRecord, FileProblem> {
        let value = match (note.index, note.value.parse::<Seen>()) {
            (NoteRecord::CONTEXT, Ok(seen)) => {
                // Entries that the context has forgotten since have no new number, but later entries have.
                let number = self.numbers.range(seen.number..).next().map_or(Number::MAX, |(_, number)| *number);
                Seen { number, ..seen }.to_string().into()
            }
            _ => note.value,
        };
        Ok(NoteRecord { message: self.number(note.message)?, value, ..note })
    }

    fn fan(&mut self, mut fan: FanRecord) -> Result<FanRecord, FileProblem> {
        if let Some(call) = &mut fan.call {
            call.until = call.until.map(|until| self.time(until));
            if let FanOutcome::Decided { order, .. } = &mut call.outcome {
                *order = self.number(*order)?;
            }
        }
        Ok(FanRecord {
            id: FanId { message: self.number(fan.id.message)?, ..fan.id },
            thread: self.number(fan.thread)?,
            source: self.id(fan.source),
            ..fan
        })
    }

    fn number(&self, number: Number) -> Result<Number, FileProblem> {
        self.numbers.get(&number).copied().ok_or_else(torn)
    }

    /// Renews an id, the same wherever it occurs; ids of ended rows are renewed, too.
    fn id(&mut self, id: MessageId) -> MessageId {
        let Self { key, root, last, messages, .. } = self;
        *messages.entry(id).or_insert_with(|| {
            *last += 1;
            key.derive_entry(*root, *last).0
        })
    }

    /// Renews the destination of an answer; no handler awaits the answer to a call of a fan-out that has ended.
    fn reply_to(&self, reply_to: ReplyTo) -> ReplyTo {
        match reply_to {
            ReplyTo::None | ReplyTo::Single => reply_to,
            ReplyTo::Fan(FanId { message, call }, index) => match self.numbers.get(&message) {
                Some(&message) => ReplyTo::Fan(FanId { message, call }, index),
                None => ReplyTo::None,
            },
        }
    }

    fn time(&self, time: Time) -> Time {
        if time == Time::MAX { time } else { time.after(self.later) }
    }
}

fn torn() -> FileProblem {
    FileProblem::damaged("a conversation refers to a missing row")
}

/// Collects all numbers of a conversation, in order.
fn numbers_of(moment: &OpenRows) -> Vec<Number> {
    let OpenRows { threads, messages, fans, remembered, .. } = moment;
    let mut numbers: Vec<_> = threads.iter().map(|thread| thread.number).collect();
    numbers.extend(messages.iter().flat_map(|message| [message.number, message.place]));
    numbers.extend(remembered.iter().map(|(entry, _)| entry.number));
    for fan in fans {
        numbers.push(fan.id.message);
        if let Some(FanOutcome::Decided { order, .. }) = fan.call.as_ref().map(|call| &call.outcome) {
            numbers.push(*order);
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
