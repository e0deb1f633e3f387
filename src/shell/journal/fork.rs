//! A conversation that begins anew from a recorded point.
//!
//! The fork is what a crash right behind the step of a message would have left of its conversation, under new ids and
//! numbers: what was open then is open again, and handlers run from their beginning with the answers that they had been
//! given by then. The message itself waits as it came, or says something else. What came later is not taken.

use bytes::Bytes;
use rusqlite::ToSql;
use systole_core::journal::{
    BodyRecord, FanId, MessageRecord, MessageState, Owner, RememberedRecord, Step, ThreadRecord,
};
use systole_core::vocab::{IdKey, MessageId, Name, QName, ThreadId, Time, XmlLimits};
use systole_xml::ladder::{Element, LadderError, Raw, Validated, climb};

use super::SqliteJournal;
use super::apply::Apply;
use super::error::StoreError;
use super::fan::SettledRow;
use super::meta::Meta;
use super::moment::Moment;
use super::reader::JournalReader;
use super::renew::Renewal;
use super::retain::horizon;
use crate::shell::clock::Clock;
use crate::shell::sqlite::Problem;

/// What is to be forked, and how.
#[derive(Debug)]
pub struct Fork {
    /// The conversation, or a thread in it.
    pub conversation: ThreadId,
    /// A message of it, or an answer to an awaited call.
    pub at: MessageId,
    /// What that says instead: a payload of the same name.
    pub edit: Option<Validated<Element>>,
    /// The client that the fork belongs to, if not the one of the conversation.
    pub owner: Option<Name>,
}

/// Why a conversation can't be forked.
#[derive(thiserror::Error)]
pub enum ForkError {
    /// The journal can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such conversation.
    #[error("there is no thread {0}: `systole thread list` shows what is kept")]
    NoThread(ThreadId),
    /// There is no such message.
    #[error(
        "there is no message {at}: `systole thread show {conversation}` shows those that are kept; retention deletes others"
    )]
    NoMessage {
        /// The message.
        at: MessageId,
        /// The conversation.
        conversation: ThreadId,
    },
    /// It was said elsewhere.
    #[error("message {at} is not of this conversation, but of {found}: name that one, or another message")]
    Elsewhere {
        /// The message.
        at: MessageId,
        /// The conversation that it is of.
        found: ThreadId,
    },
    /// Not everything is there that was there then.
    #[error("retention has deleted some of what was there when message {0} came: name a later one")]
    Forgotten(MessageId),
    /// What is kept of it is no XML.
    #[error("message {at} can't be read: {error}")]
    Unreadable {
        /// The message.
        at: MessageId,
        /// Why.
        error: LadderError,
    },
    /// Nobody was given it.
    #[error("message {0} was discarded when it came: name another one")]
    Discarded(MessageId),
    /// A root of `<boot>`.
    #[error("each start boots anew, so nothing of that conversation could be taken up")]
    Boot,
    /// A root that belongs to nobody.
    #[error("the conversation belongs to nobody who would get its answers: name a client, `--as NAME`")]
    Nobody,
    /// A spawned thread was open.
    #[error("thread {0} was spawned, and what it owed at that moment is not kept: name a message that came before it")]
    Spawned(ThreadId),
    /// It has no payload.
    #[error("message {0} is a fault, which no payload can take the place of: name the message that it answers")]
    Fault(MessageId),
    /// The edit is something else.
    #[error("message {at} is a {expected}, and can't become a {found}: give another {expected}")]
    OtherPayload {
        /// The message.
        at: MessageId,
        /// What it is.
        expected: QName,
        /// What was given.
        found: QName,
    },
}

systole_core::vocab::debug_is_display!(ForkError);

impl SqliteJournal {
    /// Writes a new conversation that the next start takes up; its id.
    ///
    /// It counts as a start, since its records have the numbers of one.
    ///
    /// # Errors
    /// [`ForkError`]: nothing is written.
    pub fn fork(&mut self, fork: &Fork) -> Result<ThreadId, ForkError> {
        let reader = JournalReader::join(&self.file)?.begin()?;
        let (moment, at) = fork.read(&reader)?;
        drop(reader);
        let owner = fork.owner(&moment)?;
        let now = Clock::real().now();
        let mut id = fork.conversation;
        self.transaction(|journal| {
            let Self { db, meta, known, sums, retain, .. } = journal;
            let epoch = meta.next_epoch()?;
            let mut renewal = Renewal::new(IdKey::new(meta.key), epoch, &moment, now.since(at))?;
            id = renewal.root();
            let step = Step { ops: renewal.ops(moment, &owner)?, at: now };
            let mut apply = Apply::after(retain.now(), db, meta.total, known, sums);
            apply.step(&step)?;
            Ok(Meta { epoch, total: apply.total, ..meta.clone() })
        })?;
        Ok(id)
    }
}

impl Fork {
    /// The conversation as it is to be, and when the message came.
    fn read(&self, reader: &JournalReader) -> Result<(Moment, Time), ForkError> {
        let threads = reader.conversation(self.conversation)?;
        let root = threads.first().ok_or(ForkError::NoThread(self.conversation))?.record.root;
        let point = reader.told(Point::find(reader, self.at))?;
        let point = point.ok_or(ForkError::NoMessage { at: self.at, conversation: self.conversation })?;
        let forgotten = || ForkError::Forgotten(self.at);
        if point.at < reader.told(horizon(&reader.db, &mut reader.sums()))? {
            return Err(forgotten());
        }
        let found = reader.told(root_of(reader, &point.message))?.ok_or_else(forgotten)?;
        if found.number != root {
            return Err(ForkError::Elsewhere { at: self.at, found: found.id });
        }
        self.check(&point)?;
        let edit = |row: &mut SettledRow| {
            if let (Some(edit), Ok(answer)) = (&self.edit, &mut row.settled.outcome)
                && point.answer == Some((row.fan, row.place))
            {
                answer.payload = edit.payload().bytes().clone();
            }
        };
        let mut moment = reader.told(Moment::read(reader, root, point.at, edit))?;
        let message = moment.messages.iter_mut().find(|message| message.number == point.message.number);
        let message = message.ok_or(ForkError::Discarded(self.at))?;
        if point.answer.is_none() {
            message.state = MessageState::Queued;
            if let Some(edit) = &self.edit {
                message.body = BodyRecord::Payload(edit.payload().bytes().clone());
            }
        }
        if let Some(edit) = &self.edit {
            let thread = message.thread;
            let same =
                |entry: &RememberedRecord| entry.thread == thread && Some(&entry.payload) == point.payload.as_ref();
            for (entry, _) in moment.remembered.iter_mut().filter(|(entry, at)| *at == point.at && same(entry)) {
                entry.payload = edit.payload().bytes().clone();
            }
        }
        if let Some(spawned) = moment.threads.iter().find(|thread| thread.spawned) {
            return Err(ForkError::Spawned(spawned.id));
        }
        Ok((moment, Time::from_nanos(point.at.cast_unsigned())))
    }

    /// Whether the message can say something else.
    fn check(&self, point: &Point) -> Result<(), ForkError> {
        let Some(edit) = &self.edit else { return Ok(()) };
        let payload = point.payload.clone().ok_or(ForkError::Fault(self.at))?;
        let payload = climb(&Raw::new(payload), &XmlLimits::UNLIMITED)
            .map_err(|error| ForkError::Unreadable { at: self.at, error })?;
        let expected = payload.root().clone();
        let found = edit.payload().root().clone();
        if expected == found { Ok(()) } else { Err(ForkError::OtherPayload { at: self.at, expected, found }) }
    }

    fn owner(&self, moment: &Moment) -> Result<Name, ForkError> {
        match (moment.threads.first().map(|root| &root.owner), &self.owner) {
            (Some(Owner::Boot), _) => Err(ForkError::Boot),
            (Some(_), Some(name)) | (Some(Owner::Client(name)), None) => Ok(name.clone()),
            (Some(Owner::Nobody | Owner::Listener(_)) | None, _) => Err(ForkError::Nobody),
        }
    }
}

/// Where the message is.
struct Point {
    /// When it came.
    at: i64,
    /// The message, or the one whose handler was given it as the answer to a call.
    message: MessageRecord,
    /// Which answer it is, by its group of calls and its place there.
    answer: Option<(FanId, u32)>,
    /// What it says, unless it is a fault.
    payload: Option<Bytes>,
}

impl Point {
    fn find(reader: &JournalReader, id: MessageId) -> Result<Option<Self>, Problem> {
        let with = |condition: &str, param: &dyn ToSql| {
            let mut found = reader.rows(condition, [param], |_, message: MessageRecord, at, _| Ok((message, at)))?;
            Ok::<_, Problem>(found.pop())
        };
        if let Some((message, at)) = with("WHERE id = ?1", &id.as_uuid().as_bytes().as_slice())? {
            let payload = match &message.body {
                BodyRecord::Payload(payload) => Some(payload.clone()),
                BodyRecord::Fault(_) | BodyRecord::Fatal(_) => None,
            };
            return Ok(Some(Self { at, message, answer: None, payload }));
        }
        let answers = reader.answers("", [])?;
        let Some((_, row, at)) = answers.into_iter().find(|(of, ..)| *of == id) else { return Ok(None) };
        let message = with("WHERE number = ?1", &row.fan.message.cast_signed())?;
        let payload = row.settled.outcome.ok().map(|answer| answer.payload);
        Ok(message.map(|(message, _)| Self { at, message, answer: Some((row.fan, row.place)), payload }))
    }
}

/// The root of the conversation that a message is of, if that is kept.
fn root_of(reader: &JournalReader, message: &MessageRecord) -> Result<Option<ThreadRecord>, Problem> {
    let condition = "WHERE number = (SELECT root FROM thread WHERE number = ?1)";
    Ok(reader.rows(condition, [message.thread.cast_signed()], |_, thread, _, _| Ok(thread))?.pop())
}
