//! Records of the journal, put back into the tree.

use super::thread::Backlog;
use super::{FanOut, Owner, Tree};
use crate::core::blueprint::ListenerId;
use crate::core::clock::Timer;
use crate::core::dead_letters::{DeadLetter, DeadLetterId};
use crate::core::io::Remembered;
use crate::core::key::{FanOutKey, ThreadKey};
use crate::core::queued::{Origin, Queued};
use crate::core::records::stored;
use crate::core::setup::StepContext;
use crate::journal::{self, LetterPlace, LetterRecord, Number, ThreadRecord};
use crate::protocol::summary_qname;
use crate::vocab::{MessageId, Name, Time};

/// The time at which a recovered message has its turn.
#[derive(Debug, Clone, Copy)]
pub(in crate::core) enum Turned {
    /// After the messages before it in the mailbox.
    Queued,
    /// Not before that time.
    Delayed(Time),
    /// After the answer to the call before it on a spawned thread; its own answer goes there.
    Backlog(Origin),
}

impl Tree {
    /// Puts a thread back below its parent; a root has none.
    pub(in crate::core) fn recover_thread(
        &mut self,
        record: ThreadRecord,
        owner: Owner,
        parent: Option<ThreadKey>,
        step: &mut StepContext,
    ) -> ThreadKey {
        let key = match (parent, owner) {
            (Some(parent), Owner::Listener(listener)) => {
                self.link_thread(parent, listener, record.number, (record.opened_by, record.id), record.ordinal)
            }
            _ => self.link_root(record.number, record.id, owner, record.opened_by),
        };
        if record.parent.is_none() {
            let root = self.threads[key].extra().root.get_or_insert_default();
            (root.left, root.boot) = (record.left, record.owner == journal::Owner::Boot);
        }
        if let Owner::Client(client) = owner {
            self.enter_root(record.id, client, key);
        }
        let thread = &mut self.threads[key];
        thread.deadline = record.deadline;
        if record.own_deadline {
            thread.extra().timer = Some(step.clock.set(record.deadline, Timer::Deadline(key)));
        }
        if record.spawned || record.label.is_some() || record.traceparent.is_some() {
            let extra = thread.extra();
            (extra.label, extra.traceparent) = (record.label, record.traceparent);
            extra.spawned = record.spawned.then(Default::default);
        }
        if record.spawned {
            self.spawned.insert(record.id, key);
        }
        key
    }

    /// Reserves the ordinals of the children that a thread had of a listener, open or ended, up to the last one.
    pub(in crate::core) fn recover_ordinals(&mut self, parent: ThreadKey, listener: ListenerId, last: u32) {
        self.threads[parent].reserve_ordinals(listener, last);
    }

    /// Lets a recovered thread owe its answer again.
    pub(in crate::core) fn recover_origin(&mut self, key: ThreadKey, origin: Origin) {
        let thread = &mut self.threads[key];
        thread.origin = origin;
        if let Some(parent) = thread.parent {
            self.threads[parent].children.open += 1;
        }
    }

    /// Puts a fan-out back.
    pub(in crate::core) fn recover_fan_out(&mut self, fan_out: FanOut) -> FanOutKey {
        self.link_fan_out(fan_out)
    }

    /// Lets the context of a thread remember a message again.
    pub(in crate::core) fn recover_context(
        &mut self,
        key: ThreadKey,
        number: Number,
        mut message: Remembered,
        calls: Vec<MessageId>,
    ) {
        let Self { threads, setup, context, .. } = self;
        let bounds = super::bounds_of(&threads[key], setup);
        let history = threads[key].extra().history.get_or_insert_default();
        if message.from == Name::core() && *message.payload.root() == summary_qname() {
            history.summarize(number, message, context);
            return;
        }
        if message.place.number == 0 {
            message.place = history.next_place(None);
        }
        history.remember((number, message, calls), bounds, context);
    }

    /// Puts a message back where it waited.
    pub(in crate::core) fn recover_message(
        &mut self,
        key: ThreadKey,
        message: Queued,
        turn: Turned,
        step: &mut StepContext,
    ) {
        match turn {
            Turned::Queued => {
                self.queued += 1;
                self.threads[key].mailbox.push(message);
            }
            Turned::Delayed(due) => self.set_delay(key, message, due, step),
            Turned::Backlog(origin) => {
                self.queued += 1;
                if let Some(parent) = self.threads[key].parent.filter(|_| origin != Origin::None) {
                    self.threads[parent].children.open += 1;
                }
                let backlog = self.threads[key].extra().spawned.get_or_insert_default();
                backlog.push_back(Backlog { message, origin });
            }
        }
    }

    /// Lets a message wait until a moment.
    pub(super) fn set_delay(&mut self, key: ThreadKey, message: Queued, due: Time, step: &mut StepContext) {
        let timer = step.clock.set(due, Timer::Continue(key, Box::new(message)));
        self.delayed += 1;
        self.threads[key].extra().continues.push(timer);
    }

    /// Keeps a dead letter again.
    pub(in crate::core) fn recover_letter(&mut self, record: LetterRecord, step: &mut StepContext) {
        let LetterRecord { number, partition, at, from, to, place, payload, reason } = record;
        let LetterPlace { conversation, path } = place;
        let payload = payload.and_then(|(_, payload)| stored(payload).ok());
        let id = self.letter_id(number);
        let letter = DeadLetter { id, partition, at, from, to, conversation, path, payload, reason };
        self.keep_letter(letter, step);
    }

    /// The id of the dead letter with that number in the journal.
    pub(in crate::core) fn letter_id(&self, number: Number) -> DeadLetterId {
        self.dead.id_of(number)
    }
}
