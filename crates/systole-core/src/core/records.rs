//! Changes as the journal has them.

use systole_xml::schema::Draft;

use super::fan_out::FanOut;
use super::io::{Attachment, Emission, Join, Remembered, Settled};
use super::key::{FanOutKey, InvocationId, ThreadKey};
use super::machine::Core;
use super::replay::InvocationLog;
use super::thread::{Content, Origin, Owner, Queued};
use crate::journal::{
    self, AnswerRecord, BodyRecord, CallRecord, EgressRecord, FanId, FanRecord, LetterRecord, MessageRecord,
    MessageState, Number, Op, RememberedRecord, Request, SettledRecord, ThreadRecord,
};
use crate::vocab::{Fault, Time};

impl Core {
    fn log(&mut self, op: impl FnOnce(&Self) -> Op) {
        if self.out.writes() {
            let op = op(self);
            self.out.write(|| op);
        }
    }

    /// A thread has opened.
    pub(super) fn log_open(&mut self, key: ThreadKey) {
        self.log(|core| Op::Open(core.thread_record(key)));
    }

    /// A spawned thread owes something else than before. One that is not spawned closes at once.
    pub(super) fn log_owes(&mut self, key: ThreadKey) {
        let Some(thread) = self.threads.get(key).filter(|thread| thread.is_spawned()) else { return };
        let (number, opened_by, origin) = (thread.sequence, thread.opened_by, thread.origin);
        self.log(|core| Op::Owes { thread: number, opened_by, origin: core.origin_record(origin) });
    }

    /// A message waits. It takes the last place of its mailbox.
    pub(super) fn log_put(&mut self, key: ThreadKey, message: &mut Queued, state: Waits) {
        if !self.out.writes() {
            return;
        }
        let place = self.out.next_number();
        if message.number == 0 {
            message.number = place;
        }
        let message = &*message;
        self.log(|core| {
            Op::Put(MessageRecord {
                number: message.number,
                place,
                thread: core.threads[key].sequence,
                id: message.id,
                from: core.setup.name_of(message.from),
                in_reply_to: message.in_reply_to,
                answers: core.origin_record(message.answers),
                state: match state {
                    Waits::Turn => MessageState::Queued,
                    Waits::Moment(at) => MessageState::Delayed(at),
                    Waits::Call(origin) => MessageState::Backlog(core.origin_record(origin)),
                },
                body: match &message.content {
                    Content::Body(super::io::Body::Payload { payload, .. }) => {
                        BodyRecord::Payload(payload.payload().bytes().clone())
                    }
                    Content::Stored(payload) => BodyRecord::Payload(payload.clone()),
                    Content::Body(super::io::Body::Fault(fault)) => BodyRecord::Fault(fault.clone()),
                    Content::Fatal(fault) => BodyRecord::Fatal(fault.clone()),
                },
                attempts: u32::from(message.attempts.unwrap_or(0)),
            })
        });
    }

    /// A message was consumed, and with it the answer of a fan-out that it was.
    pub(super) fn log_done(&mut self, message: Number, answered: Option<(FanId, u32)>) {
        if message == 0 {
            return;
        }
        self.out.write(|| Op::Done { message });
        if let Some((fan, count)) = answered {
            self.out.write(|| Op::Delivered { fan, count });
        }
    }

    /// The message of a handler that has ended was consumed.
    pub(super) fn log_consumed(&mut self, log: Option<&mut InvocationLog>) {
        if let Some(log) = log {
            self.log_done(log.number, log.answered);
            self.out.take(log.attachment.take(), true);
        }
    }

    /// A handler that attached something is over, also where its message is not consumed any more.
    pub(super) fn log_attached(&mut self, log: Option<Box<InvocationLog>>) {
        self.out.take(log.and_then(|log| log.attachment), true);
    }

    /// A handler attaches changes to its end. One that is over already has them written at once.
    pub(super) fn attach(&mut self, task: InvocationId, attachment: Attachment) {
        match self.tasks.get_mut(task).and_then(|task| task.log.as_mut()) {
            Some(log) => log.attachment = Some(attachment),
            None => self.out.take(Some(attachment), true),
        }
    }

    /// A message was discarded, though its thread stays.
    pub(super) fn log_cancelled(&mut self, message: Number) {
        if message != 0 {
            self.out.write(|| Op::Cancelled { message });
        }
    }

    /// A spawned thread is emptied between two calls.
    pub(super) fn log_cleared(&mut self, key: ThreadKey) {
        if !self.out.writes() {
            return;
        }
        let thread = &self.threads[key];
        let task = thread.task.and_then(|task| self.tasks.get(task)).map_or(0, |task| task.number());
        let continues = thread.extra.iter().flat_map(|extra| &extra.continues);
        let continues = continues.filter_map(|timer| self.clock.continued(*timer)).map(|message| message.number);
        let waiting = thread.mailbox.iter().map(|message| message.number).chain(continues).chain([task]);
        let waiting: Vec<_> = waiting.collect();
        waiting.into_iter().for_each(|number| self.log_cancelled(number));
    }

    /// Calls were made together.
    pub(super) fn log_fan(&mut self, key: FanOutKey, call: impl FnOnce() -> Option<CallRecord>) {
        self.log(|core| {
            let FanOut { id, owner, source, total, .. } = &core.fans[key];
            Op::Fan(FanRecord {
                id: *id,
                thread: core.threads[*owner].sequence,
                source: *source,
                total: *total,
                delivered: 0,
                counted_off: 0,
                call: call(),
            })
        });
    }

    /// The context of a thread remembers a message; `before`: what is older it has forgotten.
    pub(super) fn log_remembered(&mut self, key: ThreadKey, number: Number, message: &Remembered, before: Number) {
        self.log(|core| {
            let (from, payload) = (message.from.clone(), message.payload.bytes().clone());
            Op::Remember(RememberedRecord { number, thread: core.threads[key].sequence, from, payload })
        });
        self.log_forgotten(key, before);
    }

    /// The context of a thread has forgotten what is older than a number.
    pub(super) fn log_forgotten(&mut self, key: ThreadKey, before: Number) {
        if before > 0 {
            self.log(|core| Op::Forget { thread: core.threads[key].sequence, before });
        }
    }

    /// Something waits for a client; its number, if it is written.
    pub(super) fn log_egress(&mut self, egress: &super::io::Egress) -> Number {
        if !self.out.writes() {
            return 0;
        }
        let number = self.out.next_number();
        self.log(|core| {
            Op::Leave(EgressRecord {
                number,
                client: core.setup.blueprint.principal(egress.client).name.clone(),
                root: egress.root,
                from: egress.from.clone(),
                in_reply_to: egress.in_reply_to.clone(),
                envelope: egress.envelope.clone(),
                fault: egress.fault.clone(),
                payload: egress.payload.bytes().clone(),
            })
        });
        number
    }

    pub(super) fn log_letter(&mut self, letter: &super::dead_letters::DeadLetter) {
        self.out.write(|| {
            Op::Bury(LetterRecord {
                number: letter.id.number(),
                at: letter.at,
                from: letter.from.clone(),
                to: letter.to.clone(),
                path: letter.path.clone(),
                payload: letter.payload.as_ref().map(|payload| (payload.root().clone(), payload.bytes().clone())),
                reason: letter.reason.clone(),
            })
        });
    }

    fn thread_record(&self, key: ThreadKey) -> ThreadRecord {
        let thread = &self.threads[key];
        let parent = thread.parent.map(|parent| self.threads[parent].sequence);
        let root = thread.extra.as_ref().and_then(|extra| extra.root.as_ref());
        ThreadRecord {
            number: thread.sequence,
            id: thread.id,
            parent,
            root: self.threads[thread.root].sequence,
            owner: match thread.owner {
                Owner::Listener(listener) => journal::Owner::Listener(self.setup.blueprint.contract(listener).name.clone()),
                Owner::Client(client) => journal::Owner::Client(self.setup.blueprint.principal(client).name.clone()),
                Owner::Nobody if root.is_some_and(|root| root.boot) => journal::Owner::Boot,
                Owner::Nobody => journal::Owner::Nobody,
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

    /// An origin by a name that lasts. The group of a call that is over is nobody's any more.
    fn origin_record(&self, origin: Origin) -> journal::Origin {
        match origin {
            Origin::None => journal::Origin::None,
            Origin::Single => journal::Origin::Single,
            Origin::Fan { fan, index } => match self.fans.get(fan) {
                Some(fan) => journal::Origin::Fan(fan.id, index),
                None => journal::Origin::None,
            },
        }
    }
}

/// What a message that is written down waits for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Waits {
    Turn,
    Moment(Time),
    Call(Origin),
}

/// What a handler asks, as far as a re-run must repeat it.
pub(super) fn requests_record(requests: &[Emission]) -> Vec<Request> {
    requests.iter().map(request_record).collect()
}

fn request_record(request: &Emission) -> Request {
    let (text, digest) = match &request.payload {
        Draft::Canonical(payload) => (excerpt(payload.as_str()), blake3::hash(payload.bytes())),
        Draft::Proved(payload) => {
            let payload = payload.payload();
            (excerpt(payload.as_str()), blake3::hash(payload.bytes()))
        }
        Draft::Unencodable(error) => written(error),
        Draft::NoEnvelope(error) => written(error),
    };
    Request { to: request.to.clone(), thread: request.thread, text, digest: digest.into() }
}

fn written(error: &dyn std::fmt::Display) -> (String, blake3::Hash) {
    let text = error.to_string();
    (excerpt(&text), blake3::hash(text.as_bytes()))
}

fn excerpt(text: &str) -> String {
    /// Bytes of a request that are kept, to be shown if a re-run asks something else.
    const EXCERPT: usize = 1024;
    let end = (0..=EXCERPT.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text[..end.unwrap_or(0)].to_owned()
}

/// How a group of calls ends, as a word.
pub(super) fn join_word(join: Join) -> String {
    match join {
        Join::All => "all".to_owned(),
        Join::First => "first".to_owned(),
        Join::Settled => "settled".to_owned(),
        Join::Quorum(n) => n.to_string(),
    }
}

/// The join that a word says; `All` for one that says none.
pub(super) fn join_of(word: &str) -> Join {
    match word {
        "first" => Join::First,
        "settled" => Join::Settled,
        word => word.parse().map_or(Join::All, Join::Quorum),
    }
}

pub(super) fn settled_record(settled: &Settled) -> SettledRecord {
    let outcome = match &settled.outcome {
        Ok(answer) => Ok(AnswerRecord { from: answer.from.clone(), payload: answer.payload.payload().bytes().clone() }),
        Err(fault) => Err(fault.clone()),
    };
    SettledRecord { index: settled.index, outcome }
}

pub(super) fn result_record(result: &Result<Vec<Settled>, Fault>) -> Result<Vec<SettledRecord>, Fault> {
    match result {
        Ok(settled) => Ok(settled.iter().map(settled_record).collect()),
        Err(fault) => Err(fault.clone()),
    }
}
