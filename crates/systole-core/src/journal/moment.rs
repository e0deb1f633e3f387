//! Moments: a conversation at a time in its past, which opens again as a new one.
//!
//! Everything in it gets a number and an id that nothing else has; whatever was due at a time is due as much later as the
//! new conversation is younger.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::{
    BudgetRecord, FanId, FanOutcome, FanRecord, Link, MessageRecord, MessageState, NoteRecord, Number, Op, Owner,
    RememberedRecord, ReplyTo, Seen, SubmissionRecord, ThreadRecord,
};
use crate::vocab::{Amounts, IdKey, MessageId, Name, ThreadId, Time};

/// A conversation at a time in its past.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// The time.
    pub at: Time,
    /// The client that gets the answers of the new conversation.
    pub owner: Name,
    /// True if that client sends its messages over a network: the answers are those to the message whose id is that of the
    /// new conversation.
    pub submitted: bool,
    /// The open threads in order of number, the root first.
    pub threads: Vec<ThreadRecord>,
    /// Their budgets.
    pub budgets: Vec<BudgetRecord>,
    /// The messages that were not done, in order of place.
    pub messages: Vec<MessageRecord>,
    /// The fan-outs.
    pub fans: Vec<FanRecord>,
    /// The notes of those messages.
    pub notes: Vec<NoteRecord>,
    /// The entries of contexts.
    pub remembered: Vec<RememberedRecord>,
}

/// A conversation refers to a record that it lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a conversation refers to a missing record")]
pub struct Torn;

impl Moment {
    /// Makes the operations that open it again as the conversation `root`, at a time. `next` gives numbers that rise.
    ///
    /// # Errors
    /// [`Torn`] if records that it needs are missing.
    pub fn renew(
        self,
        key: &IdKey,
        root: ThreadId,
        next: &mut dyn FnMut() -> Number,
        now: Time,
    ) -> Result<Vec<Op>, Torn> {
        Renewal::new(key, root, next, &self, now)?.ops(self)
    }
}

/// New numbers and ids by old ones.
struct Renewal<'a> {
    key: &'a IdKey,
    root: ThreadId,
    /// New numbers by old ones, in the same order.
    numbers: BTreeMap<Number, Number>,
    threads: HashMap<ThreadId, ThreadId>,
    messages: HashMap<MessageId, MessageId>,
    next: &'a mut dyn FnMut() -> Number,
    /// Delay of everything that is due at a time.
    later: Duration,
    /// The label of answers to a client over a network: the id of its message.
    label: Option<Arc<str>>,
}

impl<'a> Renewal<'a> {
    fn new(
        key: &'a IdKey,
        root: ThreadId,
        next: &'a mut dyn FnMut() -> Number,
        moment: &Moment,
        now: Time,
    ) -> Result<Self, Torn> {
        let first = moment.threads.first().ok_or(Torn)?;
        let numbers = numbers_of(moment).into_iter().map(|number| (number, next())).collect();
        let later = now.since(moment.at);
        let mut renewal =
            Self { key, root, numbers, threads: HashMap::new(), messages: HashMap::new(), next, later, label: None };
        for thread in &moment.threads {
            let id = match thread.number == first.number {
                true => root,
                false => key.derive_entry(root, renewal.number(thread.number)?).1,
            };
            renewal.threads.insert(thread.id, id);
        }
        for message in &moment.messages {
            let (id, _) = key.derive_entry(root, renewal.number(message.number)?);
            renewal.messages.insert(message.id, id);
        }
        Ok(renewal)
    }

    fn ops(mut self, moment: Moment) -> Result<Vec<Op>, Torn> {
        let Moment { at: _, owner, submitted, threads, budgets, messages, fans, notes, remembered } = moment;
        let before = threads.first().map(|root| root.owner.clone());
        let mut ops = Vec::new();
        if submitted {
            let id = MessageId::from_uuid(*self.root.as_uuid());
            self.label = Some(id.to_string().into());
            ops.push(Op::Submitted(SubmissionRecord { id, client: owner.clone(), root: self.root, key: None }));
        }
        for thread in threads {
            ops.push(Op::Open(self.thread(thread, &owner)?));
        }
        for budget in budgets {
            // What the conversation spent before is not the new one's.
            let thread = self.number(budget.thread)?;
            ops.push(Op::Budget(BudgetRecord { thread, spent: Amounts::default(), ..budget }));
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
        // A message of the new conversation has not begun, so none of them stands before those that have.
        for note in notes.into_iter().filter(|note| note.index != NoteRecord::BEGAN) {
            ops.push(Op::Note(self.note(note)?));
        }
        for entry in remembered {
            let (number, thread) = (self.number(entry.number)?, self.number(entry.thread)?);
            let link = match entry.link {
                Link::Calls(calls) => Link::Calls(calls.into_iter().map(|id| self.id(id)).collect()),
                link @ (Link::None | Link::Answers(_)) => link,
            };
            ops.push(Op::Remember(RememberedRecord { number, thread, link, ..entry }));
        }
        Ok(ops)
    }

    fn thread(&mut self, thread: ThreadRecord, owner: &Name) -> Result<ThreadRecord, Torn> {
        Ok(ThreadRecord {
            number: self.number(thread.number)?,
            id: self.threads.get(&thread.id).copied().ok_or(Torn)?,
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

    fn message(&mut self, message: MessageRecord) -> Result<MessageRecord, Torn> {
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

    fn note(&self, note: NoteRecord) -> Result<NoteRecord, Torn> {
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

    fn fan(&mut self, mut fan: FanRecord) -> Result<FanRecord, Torn> {
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

    fn number(&self, number: Number) -> Result<Number, Torn> {
        self.numbers.get(&number).copied().ok_or(Torn)
    }

    /// Renews an id, the same wherever it occurs; ids of ended rows are renewed, too.
    fn id(&mut self, id: MessageId) -> MessageId {
        let Self { key, root, next, messages, .. } = self;
        *messages.entry(id).or_insert_with(|| key.derive_entry(*root, next()).0)
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

/// Collects all numbers of a conversation, in order.
fn numbers_of(moment: &Moment) -> Vec<Number> {
    let Moment { threads, messages, fans, remembered, .. } = moment;
    let mut numbers: Vec<_> = threads.iter().map(|thread| thread.number).collect();
    numbers.extend(messages.iter().flat_map(|message| [message.number, message.place]));
    numbers.extend(remembered.iter().map(|entry| entry.number));
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
