//! Retries: a conversation that starts again from a recorded message, as a new one.
//!
//! It begins with the state that a crash right after the step of a message would have left of the old one, under new
//! ids and numbers: whatever was open then is open again, and handlers run from their beginning with the answers that
//! they had received by then. The message itself waits as it came, or edited. Later messages are left out.

use bytes::Bytes;
use rusqlite::{Connection, ToSql};
use systole_core::journal::{
    ActRecord, BodyRecord, FanId, MessageRecord, MessageState, Moment, Number, Op, Owner, RememberedRecord, Step,
    ThreadRecord, numbers_after,
};
use systole_core::vocab::{IdKey, MessageId, Name, QName, ThreadId, Time, XmlLimits};
use systole_xml::ladder::{LadderError, Raw, parse};
use systole_xml::schema::{Element, Validated};

use super::SqliteJournal;
use super::apply::Apply;
use super::error::StoreError;
use super::fan::SettledRow;
use super::meta::Meta;
use super::open_rows::OpenRows;
use super::reader::JournalReader;
use super::retain::horizon;
use super::sum::Sums;
use crate::sqlite::FileProblem;
use systole_core::journal::JournalError;

/// A retry of a conversation.
#[derive(Debug)]
pub struct Retry {
    /// The conversation, or a thread in it.
    pub conversation: ThreadId,
    /// A message of the conversation, or an answer to an awaited call; none for the message that opened it.
    pub at: Option<MessageId>,
    /// A payload of the same name that replaces the one of the message.
    pub edit: Option<Validated<Element>>,
    /// The client that owns the new conversation, if not the owner of the conversation.
    pub owner: Option<Name>,
}

/// The reason why a conversation can't be retried.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RetryError {
    /// The journal can't be read or written.
    #[error(transparent)]
    Store(#[from] JournalError),
    /// No such conversation is kept.
    #[error("there is no thread {0}: `systole thread list` shows the threads that are kept")]
    NoThread(ThreadId),
    /// No such message is kept.
    #[error(
        "there is no message {at}: `systole thread show {conversation}` shows those that are kept; retention deletes others"
    )]
    NoMessage {
        /// The message.
        at: MessageId,
        /// The conversation.
        conversation: ThreadId,
    },
    /// The message that opened the conversation is not kept.
    #[error(
        "the message that opened {0} is not kept: `systole thread show {0}` shows those that are: name one with `--at`"
    )]
    NoBeginning(ThreadId),
    /// The message belongs to another conversation.
    #[error("message {at} is not of this conversation, but of {found}: name that one, or another message")]
    Elsewhere {
        /// The message.
        at: MessageId,
        /// The conversation of the message.
        found: ThreadId,
    },
    /// Retention has deleted rows that were open at the time of the message.
    #[error("retention has deleted rows from the time of message {0}: name a later message")]
    Forgotten(MessageId),
    /// The stored message is no XML.
    #[error("message {at} can't be read: {error}")]
    Unreadable {
        /// The message.
        at: MessageId,
        /// The error of the parser.
        error: LadderError,
    },
    /// The message was discarded, so no handler received it.
    #[error("message {0} was discarded when it came: name another one")]
    Discarded(MessageId),
    /// The root belongs to `<boot>`.
    #[error("a conversation of <boot> can't be retried, since each start opens a new one: name another one")]
    Boot,
    /// No client owns the root.
    #[error("the conversation has no client that would get its answers: name one with `--as NAME`")]
    NoClient,
    /// A spawned thread was open, and its debts are not kept.
    #[error(
        "thread {0} was spawned, and its open calls at that time are not kept: name a message from before the thread"
    )]
    Spawned(ThreadId),
    /// The message is a fault, which has no payload.
    #[error("message {0} is a fault, which no payload can take the place of: name the message that it answers")]
    Fault(MessageId),
    /// The edit has another payload name.
    #[error("message {at} is a {expected}, and can't become a {found}: give another {expected}")]
    OtherPayload {
        /// The message.
        at: MessageId,
        /// The payload name of the message.
        expected: QName,
        /// The payload name of the edit.
        found: QName,
    },
}

systole_core::vocab::debug_is_display!(RetryError);

impl From<StoreError> for RetryError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

impl SqliteJournal {
    /// Writes a new conversation, begun at this time, that the next start opens, and returns its id. Where its owner
    /// sends messages over a network, that is the id of its message, too: the gateway gives the answers to it.
    ///
    /// Counts as a start, since the records have the numbers of one.
    ///
    /// # Errors
    /// [`RetryError`]; then nothing is written.
    pub fn retry(&mut self, retry: &Retry, by: &Name, now: Time) -> Result<ThreadId, RetryError> {
        self.feed_all()?;
        let reader = JournalReader::join(&self.file)?.begin()?;
        let moment = retry.read(&reader)?;
        drop(reader);
        let mut id = retry.conversation;
        self.transaction(|journal| {
            let Self { db, meta, known, sums, retain, .. } = journal;
            let (key, epoch) = (IdKey::new(meta.key), meta.next_epoch()?);
            let mut last = numbers_after(epoch);
            (_, id) = key.derive_entry(id, last);
            let mut next = || {
                last += 1;
                last
            };
            let renewed = moment.renew(&key, id, &mut next, now);
            let mut ops = renewed.map_err(|torn| FileProblem::damaged(torn.to_string()))?;
            let (act, of) = ("retry".into(), retry.conversation.to_string().into());
            ops.push(Op::Acted(ActRecord { by: by.clone(), act, of, error: None, opened: Some(id) }));
            let mut apply = Apply::after(retain.now(), db, meta, known, sums);
            apply.step(&Step { ops, at: now })?;
            // The next change is a later step.
            retain.go_on(apply.at);
            Ok(Meta { epoch, ..apply.finish(meta)? })
        })?;
        Ok(id)
    }
}

impl Retry {
    /// Reads the conversation at the time of the message, and applies the edit.
    ///
    /// # Errors
    /// [`RetryError`].
    pub(super) fn read(&self, reader: &JournalReader) -> Result<Moment, RetryError> {
        let threads = reader.conversation(self.conversation)?;
        let root = threads.first().ok_or(RetryError::NoThread(self.conversation))?.record.root;
        let at = match self.at {
            Some(at) => at,
            None => reader.told(first_message(reader, root))?.ok_or(RetryError::NoBeginning(self.conversation))?,
        };
        let point = reader.told(Point::find(reader, at))?;
        let point = point.ok_or(RetryError::NoMessage { at, conversation: self.conversation })?;
        let forgotten = || RetryError::Forgotten(at);
        if point.at < reader.told(horizon(&reader.db, &mut Sums::default()))? {
            return Err(forgotten());
        }
        let found = reader.told(root_of(reader, &point.message))?.ok_or_else(forgotten)?;
        if found.number != root {
            return Err(RetryError::Elsewhere { at, found: found.id });
        }
        self.check(at, &point)?;
        let edit = |row: &mut SettledRow| {
            if let (Some(edit), Ok(answer)) = (&self.edit, &mut row.settled.outcome)
                && point.answer == Some((row.fan, row.place))
            {
                answer.payload = edit.payload().bytes().clone();
            }
        };
        let mut moment = reader.told(OpenRows::read(reader, root, point.at, edit))?;
        let message = moment.messages.iter_mut().find(|message| message.number == point.message.number);
        let message = message.ok_or(RetryError::Discarded(at))?;
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
            return Err(RetryError::Spawned(spawned.id));
        }
        let owner = self.owner(&moment)?;
        let submitted = reader.told(is_over_network(&reader.db, self.conversation, &owner))?;
        let OpenRows { threads, budgets, messages, fans, notes, remembered } = moment;
        let remembered = remembered.into_iter().map(|(entry, _)| entry).collect();
        let at = Time::from_nanos(point.at.cast_unsigned());
        Ok(Moment { at, owner, submitted, threads, budgets, messages, fans, notes, remembered })
    }

    /// Checks that the edit has the payload name of the message.
    fn check(&self, at: MessageId, point: &Point) -> Result<(), RetryError> {
        let Some(edit) = &self.edit else { return Ok(()) };
        let payload = point.payload.clone().ok_or(RetryError::Fault(at))?;
        let payload =
            parse(&Raw::new(payload), &XmlLimits::UNLIMITED).map_err(|error| RetryError::Unreadable { at, error })?;
        let expected = payload.root().clone();
        let found = edit.payload().root().clone();
        if expected == found { Ok(()) } else { Err(RetryError::OtherPayload { at, expected, found }) }
    }

    fn owner(&self, moment: &OpenRows) -> Result<Name, RetryError> {
        match (moment.threads.first().map(|root| &root.owner), &self.owner) {
            (Some(Owner::Boot), _) => Err(RetryError::Boot),
            (Some(_), Some(name)) | (Some(Owner::Client(name)), None) => Ok(name.clone()),
            (Some(Owner::None | Owner::Listener(_)) | None, _) => Err(RetryError::NoClient),
        }
    }
}

/// A message in the journal.
struct Point {
    /// Time at which it came.
    at: i64,
    /// The message, or the one whose handler received it as the answer to a call.
    message: MessageRecord,
    /// Fan-out and position of the answer, if it is one.
    answer: Option<(FanId, u32)>,
    /// The payload, unless the message is a fault.
    payload: Option<Bytes>,
}

impl Point {
    fn find(reader: &JournalReader, id: MessageId) -> Result<Option<Self>, FileProblem> {
        let with = |condition: &str, param: &dyn ToSql| {
            let mut found = reader.rows(condition, [param], |_, message: MessageRecord, at, _| Ok((message, at)))?;
            Ok::<_, FileProblem>(found.pop())
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

/// Finds the message that opened a conversation: the first in it that its client sent.
fn first_message(reader: &JournalReader, root: Number) -> Result<Option<MessageId>, FileProblem> {
    let first = "WHERE thread IN (SELECT number FROM thread WHERE parent = ?1) ORDER BY number LIMIT 1";
    Ok(reader.rows(first, [root.cast_signed()], |_, message: MessageRecord, _, _| Ok(message.id))?.pop())
}

/// Returns whether a client over a network sent a conversation, or its owner is one.
fn is_over_network(db: &Connection, conversation: ThreadId, owner: &Name) -> Result<bool, FileProblem> {
    let sql = "SELECT EXISTS (SELECT 1 FROM submission WHERE client = ?2 OR root = \
               (SELECT top.id FROM thread JOIN thread AS top ON top.number = thread.root WHERE thread.id = ?1))";
    Ok(db.query_row(sql, (conversation.as_uuid().as_bytes(), owner.as_str()), |row| row.get(0))?)
}

/// Reads the root of a message's conversation, if it is kept.
fn root_of(reader: &JournalReader, message: &MessageRecord) -> Result<Option<ThreadRecord>, FileProblem> {
    let condition = "WHERE number = (SELECT root FROM thread WHERE number = ?1)";
    Ok(reader.rows(condition, [message.thread.cast_signed()], |_, thread, _, _| Ok(thread))?.pop())
}
