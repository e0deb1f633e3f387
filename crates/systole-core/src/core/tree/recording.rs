//! The records of threads, messages and fan-outs.

use super::{FanOut, Owner, Tree};
use crate::core::dead_letters::DeadLetter;
use crate::core::io::{Body, Remembered};
use crate::core::key::{FanOutKey, ThreadKey};
use crate::core::queued::Content;
use crate::core::queued::{Origin, Queued};
use crate::core::setup::StepContext;
use crate::journal::{
    self, BodyRecord, CallRecord, FanRecord, LetterPlace, LetterRecord, Link, MessageRecord, MessageState, Number, Op,
    RememberedRecord, ThreadRecord,
};
use crate::vocab::{MessageId, Time};

/// The event that a recorded message waits for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Waits {
    Turn,
    Moment(Time),
    Call(Origin),
}

impl Tree {
    /// Writes that a thread opened.
    pub(super) fn write_open(&self, key: ThreadKey, step: &mut StepContext) {
        step.out.write(|| Op::Open(self.thread_record(key)));
    }

    /// Writes that a spawned thread owes something else than before. One that is not spawned closes at once.
    pub(super) fn write_owes(&self, key: ThreadKey, step: &mut StepContext) {
        let Some(thread) = self.threads.get(key).filter(|thread| thread.is_spawned()) else { return };
        let (number, opened_by, origin) = (thread.sequence, thread.opened_by, thread.origin);
        step.out.write(|| Op::Owes { thread: number, opened_by, origin: self.origin_record(origin) });
    }

    /// Writes that a message waits. It takes the last place of its mailbox.
    pub(super) fn write_put(&self, key: ThreadKey, message: &mut Queued, waits: Waits, step: &mut StepContext) {
        if !step.out.writes() {
            return;
        }
        let place = step.out.next_number();
        if message.number == 0 {
            message.number = place;
        }
        let message = &*message;
        step.out.write(|| {
            Op::Put(MessageRecord {
                number: message.number,
                place,
                thread: self.threads[key].sequence,
                id: message.id,
                from: self.setup.name_of(message.from),
                in_reply_to: message.in_reply_to,
                answers: self.origin_record(message.answers),
                state: match waits {
                    Waits::Turn => MessageState::Queued,
                    Waits::Moment(at) => MessageState::Delayed(at),
                    Waits::Call(origin) => MessageState::Backlog(self.origin_record(origin)),
                },
                body: match &message.content {
                    Content::Body(Body::Payload { payload, .. }) => {
                        BodyRecord::Payload(payload.payload().bytes().clone())
                    }
                    Content::Stored(payload) => BodyRecord::Payload(payload.clone()),
                    Content::Body(Body::Fault(fault)) => BodyRecord::Fault(fault.clone()),
                    Content::Fatal(fault) => BodyRecord::Fatal(fault.clone()),
                },
                attempts: u32::from(message.attempts.lost),
            })
        });
    }

    /// Writes that calls were made together.
    pub(super) fn write_fan_out(
        &self,
        key: FanOutKey,
        call: impl FnOnce() -> Option<CallRecord>,
        step: &mut StepContext,
    ) {
        let FanOut { id, owner, source, total, .. } = self.fan_outs[key];
        step.out.write(|| {
            let thread = self.threads[owner].sequence;
            Op::Fan(FanRecord { id, thread, source, total, delivered: 0, counted_off: 0, call: call() })
        });
    }

    fn thread_record(&self, key: ThreadKey) -> ThreadRecord {
        let thread = &self.threads[key];
        let parent = thread.parent.map(|parent| self.threads[parent].sequence);
        let root = thread.extra.as_ref().and_then(|extra| extra.root.as_ref());
        let blueprint = &self.setup.blueprint;
        ThreadRecord {
            number: thread.sequence,
            id: thread.id,
            parent,
            root: self.threads[thread.root].sequence,
            owner: match thread.owner {
                Owner::Listener(listener) => journal::Owner::Listener(blueprint.contract(listener).name.clone()),
                Owner::Client(client) => journal::Owner::Client(blueprint.principal(client).name.clone()),
                Owner::None if root.is_some_and(|root| root.boot) => journal::Owner::Boot,
                Owner::None => journal::Owner::None,
            },
            ordinal: thread.ordinal,
            depth: thread.depth,
            opened_by: thread.opened_by,
            origin: self.origin_record(thread.origin),
            deadline: thread.deadline,
            own_deadline: thread.parent.is_some() && thread.extra.as_ref().is_some_and(|extra| extra.timer.is_some()),
            spawned: thread.is_spawned(),
            left: root.is_some_and(|root| root.left),
            label: thread.label().cloned(),
            traceparent: thread.traceparent().cloned(),
        }
    }

    /// The record of an origin, by a name that lasts. The group of a call that has ended has no name.
    fn origin_record(&self, origin: Origin) -> journal::Origin {
        match origin {
            Origin::None => journal::Origin::None,
            Origin::Single => journal::Origin::Single,
            Origin::Fan { fan, index } => match self.fan_outs.get(fan) {
                Some(fan) => journal::Origin::Fan(fan.id, index),
                None => journal::Origin::None,
            },
        }
    }
}

/// The operation by which the context of a thread remembers a message.
pub(super) fn remembered(number: Number, thread: Number, message: &Remembered, calls: &[MessageId]) -> Op {
    let (from, payload, place) = (message.from.clone(), message.payload.bytes().clone(), message.place.number);
    let link = match message.place.answers {
        Some(call) => Link::Answers(call),
        None if calls.is_empty() => Link::None,
        None => Link::Calls(calls.to_vec()),
    };
    Op::Remember(RememberedRecord { number, thread, place, link, from, payload })
}

/// The operation that keeps a dead letter.
pub(super) fn letter(letter: &DeadLetter) -> Op {
    Op::Letter(LetterRecord {
        number: letter.id.number(),
        partition: letter.partition,
        at: letter.at,
        from: letter.from.clone(),
        to: letter.to.clone(),
        place: LetterPlace { conversation: letter.conversation, path: letter.path.clone() },
        payload: letter.payload.as_ref().map(|payload| (payload.root().clone(), payload.bytes().clone())),
        reason: letter.reason.clone(),
    })
}
