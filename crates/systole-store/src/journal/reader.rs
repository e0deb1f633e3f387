//! Reading of a journal, for operators and for the queries of a running organism.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{OptionalExtension, Params};
use systole_core::journal::{
    BodyRecord, EgressRecord, FanId, LetterRecord, MessageRecord, NoteRecord, Number, Owner, SettledRecord,
    ThreadRecord,
};
use systole_core::vocab::{IdKey, MessageId, Name, ThreadId, ThreadPath, Time};
use uuid::Uuid;

use super::batch::missing;
use super::error::StoreError;
use super::fan::SettledRow;
use super::open::FORMAT;
use super::open::meta;
use super::owner::owner;
use super::records::{Redrive, parse_owner};
use super::row::{Cells, Record, load};
use super::sum::Sums;
use super::{JournalOptions, SqliteJournal};
use crate::sqlite::{Cut, Database, FileProblem, beside, join_to_read, open_to_read, transaction, used};
use systole_core::journal::Durability;

/// Attempts to read a journal whose last steps another process may be writing to its tables.
const TRIES: u32 = 25;
const PAUSE: Duration = Duration::from_millis(20);

/// Reads a journal, whether its organism runs or not, without changing it. Each call reads in one transaction.
#[derive(Debug)]
pub struct JournalReader {
    pub(super) db: Database,
    pub(super) file: PathBuf,
    /// The end of the log that was cut off before.
    pub(super) cut: Option<Cut>,
}

/// Counts and sizes of a journal.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Stat {
    /// Name of the organism that the journal belongs to; none before its first start.
    pub organism: Option<String>,
    /// Random id of the journal, drawn at the first start.
    pub id: Option<String>,
    /// The last epoch: each start begins one, and so does a process that takes partitions over.
    pub epoch: u32,
    /// True if a process writes the journal.
    pub in_use: bool,
    /// The process that writes it.
    pub writer: Option<u32>,
    /// True if the last start ended in order; `false` while the journal is in use.
    pub ended_in_order: bool,
    /// Time of the last step, in nanoseconds since the Unix epoch.
    pub last_written: u64,
    /// Open conversations.
    pub open_conversations: u64,
    /// Open threads.
    pub open_threads: u64,
    /// Open messages.
    pub waiting_messages: u64,
    /// Messages that their clients have not read.
    pub unread_egress: u64,
    /// Batches of steps that the tables don't have yet; the other counts are those of the tables.
    pub batches: u64,
    /// Dead letters.
    pub dead_letters: u64,
    /// Ended threads that are kept.
    pub kept_threads: u64,
    /// Ended messages that are kept.
    pub kept_messages: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the file that are in use.
    pub used_bytes: u64,
    /// Bytes of the write-ahead log.
    pub log_bytes: u64,
}

/// A thread with its times.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ThreadEntry {
    /// The thread's record.
    pub record: ThreadRecord,
    /// Time at which it opened.
    pub opened: Time,
    /// Time at which it closed; none while it is open.
    pub closed: Option<Time>,
}

impl ThreadEntry {
    /// Returns the path of the thread: the listeners from the root to it, as far as `threads` has them by their numbers.
    pub fn path(&self, threads: &HashMap<Number, &Self>) -> ThreadPath {
        let mut segments = Vec::new();
        let mut next = Some(self);
        // A thread opened after the one above it, so this ends in a damaged journal, too.
        while let Some(ThreadEntry { record, .. }) = next {
            if let Owner::Listener(name) = &record.owner {
                segments.push((name.clone(), record.ordinal));
            }
            let parent = record.parent.filter(|&parent| parent < record.number);
            next = parent.and_then(|parent| threads.get(&parent).copied());
        }
        segments.reverse();
        ThreadPath::new(segments)
    }
}

/// An entry in the history of a thread.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// Time at which it was written.
    pub at: Time,
    /// The message, answer or note.
    pub said: HistoryRecord,
}

/// Kind of an [`HistoryEntry`].
#[derive(Debug, Clone, PartialEq)]
pub enum HistoryRecord {
    /// A message in a mailbox; when it ended, and whether it was `done` or `cancelled`.
    Message(MessageRecord, Option<(Time, String)>),
    /// An answer to an awaited call of the handler of a message: its id, and the group of calls that it belongs to.
    Awaited(MessageId, FanId, SettledRecord),
    /// A message that left for a client; when the client read it.
    Left(EgressRecord, Option<Time>),
    /// A refused output of the handler of a message.
    Refused(NoteRecord),
    /// The end of what a program wrote on standard error before its message failed.
    Said(NoteRecord),
    /// A note of the handler of a message.
    Recorded(NoteRecord),
}

impl HistoryRecord {
    /// Counts the bytes of the text that it has.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Message(message, _) => match &message.body {
                BodyRecord::Payload(payload) => payload.len(),
                BodyRecord::Fault(_) | BodyRecord::Fatal(_) => 0,
            },
            Self::Awaited(_, _, settled) => settled.outcome.as_ref().map_or(0, |answer| answer.payload.len()),
            Self::Left(egress, _) => egress.envelope.len() + egress.payload.len(),
            Self::Refused(note) | Self::Said(note) | Self::Recorded(note) => note.value.len(),
        }
    }
}

impl JournalReader {
    /// Opens a journal for reading. If its process was killed, an unfinished transaction at the end of its log is cut off,
    /// and its last steps are written to its tables before.
    ///
    /// # Errors
    /// [`StoreError`] if the file is missing, no journal or unreadable, or if its last steps can't be written.
    pub fn open(file: &Path) -> Result<Self, StoreError> {
        let mut cut = None;
        for _ in 0..TRIES {
            let is_torn = match Self::of(file, open_to_read(file, FORMAT, false)) {
                Ok(reader) if !reader.told(reader.is_left_behind())? => return Ok(Self { cut, ..reader }),
                Ok(_) => false,
                Err(StoreError { problem: FileProblem::Unended, .. }) => true,
                Err(error) => return Err(error),
            };
            let options = JournalOptions::new([0; 32]).durability(Durability::Power);
            match SqliteJournal::open(file, &options) {
                // The other process writes them, or is a start, which does that first.
                Err(StoreError { problem: FileProblem::InUse { .. }, .. }) => std::thread::sleep(PAUSE),
                Err(error) if error.is_read_only() && is_torn => break,
                Err(error) if error.is_read_only() => return Err(FileProblem::Unfed.of(file)),
                opened => cut = opened?.cut().or(cut),
            }
        }
        let reader = Self { cut, ..Self::of(file, open_to_read(file, FORMAT, true))? };
        if reader.told(reader.is_left_behind())? { Err(FileProblem::Unfed.of(file)) } else { Ok(reader) }
    }

    /// Returns whether the tables lack steps, and no process writes them.
    fn is_left_behind(&self) -> Result<bool, FileProblem> {
        // One statement sees one state.
        let sql = "SELECT running >> 1, (SELECT count(*) FROM batch) FROM meta";
        let (counted, rows) = self.db.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
        if counted != rows {
            return Err(missing());
        }
        Ok(rows > 0 && self.db.file().writer()?.is_none())
    }

    /// Opens a journal that this process has open already.
    pub(super) fn join(file: &Path) -> Result<Self, StoreError> {
        Self::of(file, join_to_read(file, FORMAT))
    }

    fn of(file: &Path, db: Result<Database, FileProblem>) -> Result<Self, StoreError> {
        let db = db.map_err(|problem| problem.of(file))?;
        Ok(Self { db, file: file.to_owned(), cut: None })
    }

    /// Reads the secret of derived ids.
    pub(super) fn key(&self) -> Result<[u8; 32], FileProblem> {
        Ok(meta(&self.db, &mut Sums::default())?.record.key)
    }

    /// Begins a transaction, so that all reads see one state.
    pub(super) fn begin(self) -> Result<Self, StoreError> {
        self.told(self.db.execute_batch("BEGIN").map_err(FileProblem::from))?;
        Ok(self)
    }

    /// Reads in one transaction, which begins with this call unless it is part of another one. It ends with the call:
    /// as long as a transaction is open, the log of a running organism can't start over.
    pub(super) fn at_one_moment<T>(&self, read: impl FnOnce(&Self) -> Result<T, FileProblem>) -> Result<T, StoreError> {
        match self.db.is_autocommit() {
            true => self.told(transaction(&self.db, "BEGIN", || read(self))),
            false => self.told(read(self)),
        }
    }

    /// Counts the contents of the journal.
    ///
    /// # Errors
    /// [`StoreError`] if the journal can't be read.
    pub fn stat(&self) -> Result<Stat, StoreError> {
        self.at_one_moment(Self::try_stat)
    }

    /// Lists the ids of roots, and of other threads, whose last digits are these; hyphens don't count.
    ///
    /// # Errors
    /// [`StoreError`] if the journal can't be read.
    pub fn ids_with_end(&self, digits: &str) -> Result<(Vec<ThreadId>, Vec<ThreadId>), StoreError> {
        let find = || -> Result<_, FileProblem> {
            let sql = "SELECT id, root = number FROM thread WHERE substr(hex(id), -length(?1)) = ?1 ORDER BY number";
            let mut statement = self.db.prepare(sql)?;
            let mut rows = statement.query([digits.replace('-', "").to_ascii_uppercase()])?;
            let (mut roots, mut others) = (Vec::new(), Vec::new());
            while let Some(row) = rows.next()? {
                let id = ThreadId::from_uuid(Uuid::from_bytes(row.get(0)?));
                if row.get(1)? { roots.push(id) } else { others.push(id) }
            }
            Ok((roots, others))
        };
        self.told(find())
    }

    /// Lists all open threads, in order of number.
    ///
    /// # Errors
    /// [`StoreError`] if the journal can't be read.
    pub fn open_threads(&self) -> Result<Vec<ThreadEntry>, StoreError> {
        let mut threads = self.at_one_moment(|reader| reader.entries("WHERE ended IS NULL", []))?;
        threads.sort_unstable_by_key(|thread| thread.record.number);
        Ok(threads)
    }

    /// Counts the open threads of each owner. The rows are not checked by their sums.
    ///
    /// # Errors
    /// [`StoreError`] if the journal can't be read.
    pub fn open_owners(&self) -> Result<Vec<(Owner, u64)>, StoreError> {
        self.at_one_moment(Self::try_open_owners)
    }

    /// Lists the idempotency keys of a client that begin with a prefix.
    ///
    /// # Errors
    /// [`StoreError`] if the journal can't be read.
    pub fn keys(&self, client: &Name, prefix: &str) -> Result<Vec<Arc<str>>, StoreError> {
        let keys = || -> Result<_, FileProblem> {
            let sql = "SELECT key FROM submission WHERE client = ?1 AND key >= ?2 AND substr(key, 1, length(?2)) = ?2";
            let mut statement = self.db.prepare(sql)?;
            let keys = statement.query_map([client.as_str(), prefix], |row| row.get(0))?;
            Ok(keys.collect::<Result<_, _>>()?)
        };
        self.told(keys())
    }

    /// Lists the threads of the conversation of a thread, in order of number; nothing if there is no such thread.
    ///
    /// # Errors
    /// [`StoreError`] if the journal can't be read.
    pub fn conversation(&self, thread: ThreadId) -> Result<Vec<ThreadEntry>, StoreError> {
        let condition = "WHERE root = (SELECT root FROM thread WHERE id = ?1) ORDER BY number";
        self.at_one_moment(|reader| reader.entries(condition, [thread.as_uuid().as_bytes().as_slice()]))
    }

    /// Returns those of these conversations that the journal has rows of: a root or messages that left. Retention may
    /// delete both later.
    ///
    /// # Errors
    /// [`StoreError`] if the journal can't be read.
    pub fn known(&self, roots: &[ThreadId]) -> Result<HashSet<ThreadId>, StoreError> {
        self.at_one_moment(|reader| reader.try_known(roots))
    }

    /// Lists the entries of a thread, in order of time.
    ///
    /// # Errors
    /// [`StoreError`] if the journal can't be read.
    pub fn said(&self, thread: &ThreadRecord) -> Result<Vec<HistoryEntry>, StoreError> {
        self.at_one_moment(|reader| reader.try_said(thread))
    }

    /// Lists the dead letters, oldest first, and whether the next start redrives them.
    ///
    /// # Errors
    /// [`StoreError`] if the journal can't be read.
    pub fn letters(&self) -> Result<Vec<(LetterRecord, bool)>, StoreError> {
        self.at_one_moment(|reader| {
            let marked = reader.rows("", [], |_, Redrive(letter), _, _| Ok(letter))?;
            reader.rows("ORDER BY number", [], |_, letter: LetterRecord, _, _| {
                let redrive = marked.contains(&letter.number);
                Ok((letter, redrive))
            })
        })
    }

    pub(super) fn told<T>(&self, read: Result<T, FileProblem>) -> Result<T, StoreError> {
        read.map_err(|problem| problem.of(&self.file))
    }

    fn try_known(&self, roots: &[ThreadId]) -> Result<HashSet<ThreadId>, FileProblem> {
        let wanted: HashSet<_> = roots.iter().map(|root| *root.as_uuid().as_bytes()).collect();
        let mut known = HashSet::new();
        if wanted.is_empty() {
            return Ok(known);
        }
        for sql in ["SELECT id FROM thread WHERE number = root", "SELECT root FROM egress"] {
            let mut statement = self.db.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let id: [u8; 16] = row.get(0)?;
                if wanted.contains(&id) {
                    known.insert(ThreadId::from_uuid(uuid::Uuid::from_bytes(id)));
                }
            }
        }
        Ok(known)
    }

    fn try_open_owners(&self) -> Result<Vec<(Owner, u64)>, FileProblem> {
        let sql = "SELECT listener, client, count(*) FROM thread WHERE ended IS NULL GROUP BY listener, client";
        let mut statement = self.db.prepare(sql)?;
        let (mut rows, mut found) = (statement.query([])?, Vec::new());
        while let Some(row) = rows.next()? {
            let names = [row.get_ref(0)?, row.get_ref(1)?];
            let owner = parse_owner(&mut Cells::new(&names)).ok_or_else(|| FileProblem::row::<ThreadRecord>(row))?;
            found.push((owner, row.get::<_, i64>(2)?.cast_unsigned()));
        }
        Ok(found)
    }

    fn try_stat(&self) -> Result<Stat, FileProblem> {
        let meta = meta(&self.db, &mut Sums::default())?;
        let writer = self.db.file().writer()?;
        let count = |what: &str| -> Result<u64, FileProblem> {
            let sql = format!("SELECT count(*) FROM {what}");
            Ok(self.db.query_row(&sql, [], |row| row.get::<_, i64>(0))?.cast_unsigned())
        };
        let bytes = |file: &Path| fs::metadata(file).map_or(0, |found| found.len());
        let owner = owner(&self.db, &mut Sums::default())?;
        let (organism, id) = owner.map(|owner| (owner.organism, owner.id.to_string())).unzip();
        Ok(Stat {
            organism,
            id,
            epoch: meta.record.epoch,
            in_use: writer.is_some(),
            writer: writer.flatten(),
            ended_in_order: !meta.record.running,
            last_written: meta.at.cast_unsigned(),
            open_conversations: count("thread WHERE ended IS NULL AND root = number")?,
            open_threads: count("thread WHERE ended IS NULL")?,
            waiting_messages: count("message WHERE ended IS NULL")?,
            unread_egress: count("egress WHERE ended IS NULL")?,
            batches: count("batch")?,
            dead_letters: count("letter")?,
            kept_threads: count("thread WHERE ended IS NOT NULL")?,
            kept_messages: count("message WHERE ended IS NOT NULL")?,
            file_bytes: bytes(&self.file),
            used_bytes: used(&self.db)?,
            log_bytes: bytes(&beside(self.db.file().path(), "-wal")),
        })
    }

    pub(super) fn entries(&self, condition: &str, params: impl Params) -> Result<Vec<ThreadEntry>, FileProblem> {
        self.rows(condition, params, |_, record, at, ended| {
            Ok(ThreadEntry { record, opened: time(at), closed: ended.map(time) })
        })
    }

    pub(super) fn try_said(&self, thread: &ThreadRecord) -> Result<Vec<HistoryEntry>, FileProblem> {
        let number = thread.number.cast_signed();
        let mut said = self.messages("WHERE thread = ?1 ORDER BY place, number", number)?;
        let calls = "WHERE message IN (SELECT number FROM message WHERE thread = ?1) ORDER BY message, call, place";
        for (id, row, at) in self.answers(calls, [number])? {
            said.push(HistoryEntry { at: time(at), said: HistoryRecord::Awaited(id, row.fan, row.settled) });
        }
        if thread.root == thread.number {
            let id = thread.id.as_uuid().as_bytes().as_slice();
            said.extend(self.rows("WHERE root = ?1 ORDER BY number", [id], |_, record, at, ended| {
                Ok(HistoryEntry { at: time(at), said: HistoryRecord::Left(record, ended.map(time)) })
            })?);
        }
        let placed = "WHERE place = ?2 AND message IN (SELECT number FROM message WHERE thread = ?1)";
        for (place, kind) in
            [(NoteRecord::REFUSED, HistoryRecord::Refused as fn(_) -> _), (NoteRecord::SAID, HistoryRecord::Said)]
        {
            said.extend(self.rows(placed, [number, place.into()], |_, note: NoteRecord, at, _| {
                Ok(HistoryEntry { at: time(at), said: kind(note) })
            })?);
        }
        let recorded =
            "WHERE place < ?2 AND message IN (SELECT number FROM message WHERE thread = ?1) ORDER BY message, place";
        said.extend(self.rows(recorded, [number, NoteRecord::SAID.into()], |_, note: NoteRecord, at, _| {
            Ok(HistoryEntry { at: time(at), said: HistoryRecord::Recorded(note) })
        })?);
        said.sort_by_key(|entry| entry.at);
        Ok(said)
    }

    /// Reads a message, and behind it what its handler did, in order of time.
    pub(super) fn of_message(&self, number: Number) -> Result<Vec<HistoryEntry>, FileProblem> {
        let number = number.cast_signed();
        let mut done = Vec::new();
        for (id, row, at) in self.answers("WHERE message = ?1 ORDER BY call, place", [number])? {
            done.push(HistoryEntry { at: time(at), said: HistoryRecord::Awaited(id, row.fan, row.settled) });
        }
        let notes = "WHERE message = ?1 ORDER BY place";
        done.extend(
            self.rows(notes, [number], |_, note: NoteRecord, at, _| {
                let said = match note.index {
                    NoteRecord::REFUSED => HistoryRecord::Refused(note),
                    NoteRecord::SAID => HistoryRecord::Said(note),
                    0..NoteRecord::SAID => HistoryRecord::Recorded(note),
                    _ => return Ok(None),
                };
                Ok(Some(HistoryEntry { at: time(at), said }))
            })?
            .into_iter()
            .flatten(),
        );
        done.sort_by_key(|entry| entry.at);
        let mut entries = self.messages("WHERE number = ?1", number)?;
        entries.append(&mut done);
        Ok(entries)
    }

    /// Reads an answer that left for a client.
    pub(super) fn left(&self, number: Number) -> Result<Vec<HistoryEntry>, FileProblem> {
        self.rows("WHERE number = ?1", [number.cast_signed()], |_, record, at, ended| {
            Ok(HistoryEntry { at: time(at), said: HistoryRecord::Left(record, ended.map(time)) })
        })
    }

    fn messages(&self, condition: &str, number: i64) -> Result<Vec<HistoryEntry>, FileProblem> {
        self.rows(condition, [number], |reader, record, at, ended| {
            let ended = ended.map(|ended| Ok::<_, FileProblem>((time(ended), reader.ending(&record)?))).transpose()?;
            Ok(HistoryEntry { at: time(at), said: HistoryRecord::Message(record, ended) })
        })
    }

    /// Reads answers to awaited calls of messages that are kept, each with its id and the time at which it came.
    pub(super) fn answers(
        &self,
        condition: &str,
        params: impl Params,
    ) -> Result<Vec<(MessageId, SettledRow, i64)>, FileProblem> {
        let key = IdKey::new(self.key()?);
        let sql = "SELECT id FROM message WHERE number = ?1";
        let answers = self.rows(condition, params, |reader, row: SettledRow, at, _| {
            let mut message = reader.db.prepare_cached(sql)?;
            let message = message.query_row([row.fan.message.cast_signed()], |row| row.get(0)).optional()?;
            let message = message.map(|id: [u8; 16]| MessageId::from_uuid(Uuid::from_bytes(id)));
            let call = row.fan.call.unwrap_or(u32::MAX);
            Ok(message.map(|message| (key.derive_answer(message, call, row.settled.index), row, at)))
        })?;
        Ok(answers.into_iter().flatten().collect())
    }

    fn ending(&self, message: &MessageRecord) -> Result<String, FileProblem> {
        let sql = "SELECT ending FROM message WHERE number = ?1";
        Ok(self.db.prepare_cached(sql)?.query_row([message.number.cast_signed()], |row| row.get(0))?)
    }

    /// Reads rows of a table, and when each came and ended.
    pub(super) fn rows<R: Record, T>(
        &self,
        condition: &str,
        params: impl Params,
        mut each: impl FnMut(&Self, R, i64, Option<i64>) -> Result<T, FileProblem>,
    ) -> Result<Vec<T>, FileProblem> {
        self.rows_while(condition, params, |reader, record, at, ended| each(reader, record, at, ended).map(Some))
    }

    /// Reads rows up to the first for which `each` returns nothing.
    pub(super) fn rows_while<R: Record, T>(
        &self,
        condition: &str,
        params: impl Params,
        mut each: impl FnMut(&Self, R, i64, Option<i64>) -> Result<Option<T>, FileProblem>,
    ) -> Result<Vec<T>, FileProblem> {
        let mut statement = self.db.prepare_cached(&[R::SELECT, condition].concat())?;
        let mut rows = statement.query(params)?;
        let (mut found, mut sums) = (Vec::new(), Sums::default());
        while let Some(row) = rows.next()? {
            let loaded = load::<R>(row, &mut sums)?;
            match each(self, loaded.record, loaded.at, loaded.ended)? {
                Some(one) => found.push(one),
                None => break,
            }
        }
        drop(rows);
        #[cfg(test)]
        assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0, "{condition}");
        Ok(found)
    }
}

pub(super) fn time(nanos: i64) -> Time {
    Time::from_nanos(nanos.cast_unsigned())
}
