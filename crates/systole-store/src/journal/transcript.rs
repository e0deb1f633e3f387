//! Conversations as the entries of transcripts, and back.
//!
//! An entry is a row of a conversation: its table is the kind of the entry, its columns are the values, under the same names.
//! Numbers keep their order in another journal, and move by whole epochs; ids and times stay. `docs/transcripts.md` lists the
//! entries. A column that changes its meaning needs a new version of the form.
//!
//! Not here: the file of a transcript, its hashes and its signature.

use std::error::Error;
use std::io;

use rusqlite::Params;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use systole_core::journal::{
    ActRecord, BudgetRecord, EgressRecord, JournalError, LAST_EPOCH, MessageRecord, MessageState, NoteRecord, Number,
    Op, Owner, RememberedRecord, ReplyTo, Seen, Step, SubmissionRecord, ThreadRecord, epoch_of, numbers_after,
};
use systole_core::vocab::{Name, ThreadId, Time};
use systole_xml::ladder::transcript::Entry;
use uuid::Uuid;

use super::SqliteJournal;
use super::apply::Apply;
use super::error::StoreError;
use super::fan::{FanRow, OutcomeRow, SettledRow};
use super::look::{Known, above, path};
use super::meta::Meta;
use super::owner::owner;
use super::reader::JournalReader;
use super::retain::horizon;
use super::row::{Cells, Record, write_final};
use super::sum::Sums;
use crate::sqlite::FileProblem;

/// The entries of a transcript, one after the other; none at its end. An error is that of whoever reads them.
pub type Source<'a> = &'a mut dyn FnMut() -> Result<Option<Entry>, Box<dyn Error + Send + Sync>>;

/// The kind of the first entry, which describes the conversation.
const CONVERSATION: &str = "conversation";

/// The reason why a transcript can't be made or imported.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// The journal can't be read or written.
    #[error(transparent)]
    Store(#[from] JournalError),
    /// No such conversation is kept.
    #[error("there is no thread {0}: `systole thread list` shows the threads that are kept")]
    NoThread(ThreadId),
    /// An entry can't be passed on.
    #[error("the transcript can't be written: {0}")]
    Write(#[source] io::Error),
    /// The conversation is in the journal already.
    #[error("the conversation {0} is in this journal already: import it into another journal")]
    Present(ThreadId),
    /// An entry has no use as a row.
    #[error("entry {number} can't be imported: {why}")]
    Entry {
        /// The place of the entry behind the first one, which describes the conversation.
        number: u64,
        /// The reason.
        why: String,
    },
    /// The entries can't be read.
    #[error("{0}")]
    Source(#[source] Box<dyn Error + Send + Sync>),
}

systole_core::vocab::debug_is_display!(TranscriptError);

impl From<StoreError> for TranscriptError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

/// A record that is an entry of a transcript. Each letter of `TYPES` is for a column: `n` a number, `u` an id, `d` a time, `t`
/// a short text, `x` a long one, `p` a document or a long text, which is the last one.
trait Told: Record {
    const TYPES: &'static str;

    /// Calls `renew` with each number.
    fn renew(&mut self, renew: &mut dyn FnMut(&mut Number));
}

fn renew_reply_to(reply_to: &mut ReplyTo, renew: &mut dyn FnMut(&mut Number)) {
    match reply_to {
        ReplyTo::None | ReplyTo::Single => {}
        ReplyTo::Fan(fan, _) => renew(&mut fan.message),
    }
}

impl Told for ThreadRecord {
    const TYPES: &'static str = "nunnttnnutdnnntt";

    fn renew(&mut self, renew: &mut dyn FnMut(&mut Number)) {
        renew(&mut self.number);
        self.parent.iter_mut().for_each(&mut *renew);
        renew(&mut self.root);
        renew_reply_to(&mut self.reply_to, renew);
    }
}

impl Told for BudgetRecord {
    const TYPES: &'static str = "nnnnnnnnn";

    fn renew(&mut self, renew: &mut dyn FnMut(&mut Number)) {
        renew(&mut self.thread);
    }
}

impl Told for MessageRecord {
    const TYPES: &'static str = "nnnututtdttpn";

    fn renew(&mut self, renew: &mut dyn FnMut(&mut Number)) {
        renew(&mut self.number);
        renew(&mut self.place);
        renew(&mut self.thread);
        renew_reply_to(&mut self.answers, renew);
        if let MessageState::Backlog(owes) = &mut self.state {
            renew_reply_to(owes, renew);
        }
    }
}

impl Told for FanRow {
    const TYPES: &'static str = "nnnunnnxttnx";

    fn renew(&mut self, renew: &mut dyn FnMut(&mut Number)) {
        renew(&mut self.id.message);
        renew(&mut self.thread);
        if let Some(OutcomeRow::Decided { order, .. }) = self.call.as_mut().map(|call| &mut call.outcome) {
            renew(order);
        }
    }
}

impl Told for SettledRow {
    const TYPES: &'static str = "nnnnntpx";

    fn renew(&mut self, renew: &mut dyn FnMut(&mut Number)) {
        renew(&mut self.fan.message);
    }
}

impl Told for NoteRecord {
    const TYPES: &'static str = "nntp";

    fn renew(&mut self, renew: &mut dyn FnMut(&mut Number)) {
        renew(&mut self.message);
        if let (Self::CONTEXT, Ok(mut seen)) = (self.index, self.value.parse::<Seen>()) {
            renew(&mut seen.number);
            self.value = seen.to_string().into();
        }
    }
}

impl Told for RememberedRecord {
    const TYPES: &'static str = "nntx";

    fn renew(&mut self, renew: &mut dyn FnMut(&mut Number)) {
        renew(&mut self.number);
        renew(&mut self.thread);
    }
}

impl Told for EgressRecord {
    const TYPES: &'static str = "ntuttpxx";

    fn renew(&mut self, renew: &mut dyn FnMut(&mut Number)) {
        renew(&mut self.number);
    }
}

impl Told for SubmissionRecord {
    const TYPES: &'static str = "utuxx";

    fn renew(&mut self, _: &mut dyn FnMut(&mut Number)) {}
}

/// The keys of all rows of a conversation, by its number and its id, in the order in which they came.
const ROWS: &str = "\
    SELECT at, 0, number, 0, 0 FROM thread WHERE root = ?1 \
    UNION ALL SELECT budget.at, 1, budget.thread, 0, 0 FROM thread CROSS JOIN budget ON budget.thread = thread.number \
    WHERE thread.root = ?1 \
    UNION ALL SELECT message.at, 2, message.number, 0, 0 FROM thread CROSS JOIN message ON message.thread = thread.number \
    WHERE thread.root = ?1 \
    UNION ALL SELECT fan.at, 3, fan.message, fan.call, 0 FROM fan CROSS JOIN thread ON thread.number = fan.thread \
    WHERE thread.root = ?1 \
    UNION ALL SELECT settled.at, 4, settled.message, settled.call, settled.place FROM thread \
    CROSS JOIN message ON message.thread = thread.number CROSS JOIN settled ON settled.message = message.number \
    WHERE thread.root = ?1 \
    UNION ALL SELECT note.at, 5, note.message, note.place, 0 FROM thread \
    CROSS JOIN message ON message.thread = thread.number CROSS JOIN note ON note.message = message.number \
    WHERE thread.root = ?1 \
    UNION ALL SELECT remembered.at, 6, remembered.number, 0, 0 FROM remembered \
    CROSS JOIN thread ON thread.number = remembered.thread WHERE thread.root = ?1 \
    UNION ALL SELECT at, 7, number, 0, 0 FROM egress WHERE root = ?2 \
    UNION ALL SELECT at, 8, id, 0, 0 FROM submission WHERE root = ?2 \
    ORDER BY 1, 2, 3, 4, 5";

impl JournalReader {
    /// Passes on the conversation of a thread as the entries of a transcript.
    ///
    /// # Errors
    /// [`TranscriptError`] if there is no such thread, the journal can't be read, or `each` fails.
    pub(super) fn transcript(
        &self,
        thread: ThreadId,
        now: Time,
        each: &mut dyn FnMut(Entry) -> io::Result<()>,
    ) -> Result<(), TranscriptError> {
        let mut failed = None;
        let mut pass = |entry: Entry| match each(entry) {
            Ok(()) => true,
            Err(error) => {
                failed = Some(error);
                false
            }
        };
        let found = self.at_one_moment(|reader| reader.try_transcript(thread, now, &mut pass))?;
        match failed {
            Some(error) => Err(TranscriptError::Write(error)),
            None if found => Ok(()),
            None => Err(TranscriptError::NoThread(thread)),
        }
    }

    /// Passes entries on until one is not taken; false if there is no such thread.
    fn try_transcript(
        &self,
        thread: ThreadId,
        now: Time,
        pass: &mut dyn FnMut(Entry) -> bool,
    ) -> Result<bool, FileProblem> {
        let top = "WHERE number = (SELECT root FROM thread WHERE id = ?1)";
        let id = thread.as_uuid().as_bytes().as_slice();
        let Some(root) = self.rows(top, [id], |_, thread: ThreadRecord, _, _| Ok(thread))?.pop() else {
            return Ok(false);
        };
        let mut entry = Entry::new(CONVERSATION);
        entry.put("id", root.id.to_string());
        if let Some(owner) = owner(&self.db, &mut Sums::default())? {
            entry.put("organism", owner.organism);
            entry.put("journal", owner.id.to_string());
        }
        entry.put("taken", now.to_string());
        let horizon = horizon(&self.db, &mut Sums::default())?;
        if horizon > 0 {
            entry.put("kept-from", moment(horizon).to_string());
        }
        if !pass(entry) {
            return Ok(true);
        }
        let mut statement = self.db.prepare(ROWS)?;
        let mut rows = statement.query((root.number.cast_signed(), root.id.as_uuid().as_bytes().as_slice()))?;
        while let Some(row) = rows.next()? {
            if row.get::<_, i64>(1)? == 8 {
                let id: [u8; 16] = row.get(2)?;
                // A key that is known would be taken for that of a message in the journal.
                let tell = |record: SubmissionRecord| SubmissionRecord { key: None, ..record };
                let entry = self.entry("WHERE id = ?1", [id.as_slice()], |_, record, _| Ok(tell(record)))?;
                if !pass(entry) {
                    break;
                }
                continue;
            }
            let key: [i64; 3] = [row.get(2)?, row.get(3)?, row.get(4)?];
            let one = "WHERE number = ?1";
            let entry = match row.get::<_, i64>(1)? {
                0 => self.entry(one, [key[0]], |reader, record: ThreadRecord, entry| {
                    let above = above(reader, &record, &mut Known::new())?;
                    entry.put("path", path(&record, &above).to_string());
                    Ok(record)
                })?,
                1 => self.entry("WHERE thread = ?1", [key[0]], |_, record: BudgetRecord, _| Ok(record))?,
                2 => self.entry(one, [key[0]], |reader, record: MessageRecord, entry| {
                    if let Some(to) = reader.receiver(record.thread)? {
                        entry.put("to", to.to_string());
                    }
                    let sql = "SELECT ending FROM message WHERE number = ?1";
                    let ending: Option<String> =
                        reader.db.prepare_cached(sql)?.query_row([key[0]], |row| row.get(0))?;
                    ending.into_iter().for_each(|ending| entry.put("ending", ending));
                    Ok(record)
                })?,
                3 => {
                    self.entry("WHERE message = ?1 AND call = ?2", [key[0], key[1]], |_, record: FanRow, _| Ok(record))?
                }
                4 => {
                    self.entry("WHERE message = ?1 AND call = ?2 AND place = ?3", key, |_, record: SettledRow, _| {
                        Ok(record)
                    })?
                }
                5 => {
                    self.entry("WHERE message = ?1 AND place = ?2", [key[0], key[1]], |_, record: NoteRecord, _| {
                        Ok(record)
                    })?
                }
                6 => self.entry(one, [key[0]], |_, record: RememberedRecord, _| Ok(record))?,
                _ => self.entry(one, [key[0]], |_, record: EgressRecord, _| Ok(record))?,
            };
            if !pass(entry) {
                break;
            }
        }
        Ok(true)
    }

    /// The entry of the row of a key; `tell` adds values that are in no column.
    fn entry<R: Told>(
        &self,
        condition: &str,
        key: impl Params,
        mut tell: impl FnMut(&Self, R, &mut Entry) -> Result<R, FileProblem>,
    ) -> Result<Entry, FileProblem> {
        let entries = self.rows(condition, key, |reader, record: R, at, ended| {
            let mut entry = Entry::new(R::TABLE);
            entry.put("at", moment(at).to_string());
            if let Some(ended) = ended {
                entry.put("ended", moment(ended).to_string());
            }
            let record = tell(reader, record, &mut entry)?;
            columns(&record, &mut entry)?;
            Ok(entry)
        })?;
        entries
            .into_iter()
            .next()
            .ok_or_else(|| FileProblem::damaged(format!("a row of table {} is missing", R::TABLE)))
    }

    /// The listener whose thread it is, or the client of a root.
    fn receiver(&self, thread: Number) -> Result<Option<Name>, FileProblem> {
        let found = self.rows("WHERE number = ?1", [thread.cast_signed()], |_, thread: ThreadRecord, _, _| {
            Ok(match thread.owner {
                Owner::Listener(name) | Owner::Client(name) => Some(name),
                Owner::Boot | Owner::None => None,
            })
        })?;
        Ok(found.into_iter().next().flatten())
    }
}

/// Adds the columns of a record.
fn columns<R: Told>(record: &R, entry: &mut Entry) -> rusqlite::Result<()> {
    let mut document = None;
    let mut types = names::<R>().zip(R::TYPES.chars());
    record.cells(&mut |cell| {
        let value = match &cell {
            ToSqlOutput::Borrowed(value) => *value,
            ToSqlOutput::Owned(value) => value.into(),
            _ => ValueRef::Null,
        };
        let Some((name, kind)) = types.next() else { return Ok(()) };
        match (value, kind) {
            (ValueRef::Integer(nanos), 'd') => entry.put(name, moment(nanos).to_string()),
            (ValueRef::Integer(number), _) => entry.put(name, number.to_string()),
            (ValueRef::Blob(id), _) => entry.put(name, Uuid::from_slice(id).unwrap_or_default().to_string()),
            (ValueRef::Text(text), 't') => entry.put(name, String::from_utf8_lossy(text)),
            (ValueRef::Text(text), 'x') => entry.put_long(name, String::from_utf8_lossy(text)),
            (ValueRef::Text(text), _) => document = Some((name, String::from_utf8_lossy(text).into_owned())),
            (ValueRef::Null | ValueRef::Real(_), _) => {}
        }
        Ok(())
    })?;
    if let Some((name, document)) = document {
        entry.put_document(name, document);
    }
    Ok(())
}

fn names<R: Record>() -> impl Iterator<Item = &'static str> {
    R::NAMES.split(',').map(str::trim)
}

fn moment(nanos: i64) -> Time {
    Time::from_nanos(nanos.cast_unsigned())
}

impl SqliteJournal {
    /// Writes a conversation that has ended as the entries of a transcript have it, and returns its id.
    ///
    /// # Errors
    /// [`TranscriptError`]; then nothing is written.
    pub(super) fn import(&mut self, entries: Source<'_>, by: &Name, now: Time) -> Result<ThreadId, TranscriptError> {
        self.feed_all()?;
        let (mut id, mut refused) = (None, None);
        let written = self.transaction(|journal| {
            let Self { db, meta, known, sums, retain, .. } = journal;
            let (db, epoch): (&rusqlite::Connection, _) = (db, meta.next_epoch()?);
            let mut import = Import { db, sums: &mut *sums, epoch, last: 0, moved: None, root: None, taken: now };
            match import.all(entries) {
                Ok(imported) => id = Some(imported),
                // The transaction is rolled back for it.
                Err(Refused::Entries(error)) => {
                    refused = Some(error);
                    return Err(FileProblem::Failed("the transcript is refused".to_owned()));
                }
                Err(Refused::File(problem)) => return Err(problem),
            }
            let epoch = epoch_of(import.last);
            // The weights of rows that came beside the steps are counted again.
            known.weights.lose_count();
            let (act, of) = ("import".into(), id.map_or_else(String::new, |id: ThreadId| id.to_string()).into());
            let act = Op::Acted(ActRecord { by: by.clone(), act, of, error: None, opened: id });
            let mut apply = Apply::after(retain.now(), db, meta, known, sums);
            apply.step(&Step { ops: vec![act], at: now })?;
            retain.go_on(apply.at);
            Ok(Meta { epoch, ..apply.finish(meta)? })
        });
        match (refused, written, id) {
            (Some(error), ..) => Err(error),
            (None, Err(error), _) => Err(error.into()),
            (None, Ok(()), Some(id)) => Ok(id),
            (None, Ok(()), None) => Err(unusable(0, "it has no conversation")),
        }
    }
}

fn unusable(number: u64, why: impl Into<String>) -> TranscriptError {
    TranscriptError::Entry { number, why: why.into() }
}

/// The reason why an import ends.
enum Refused {
    Entries(TranscriptError),
    File(FileProblem),
}

impl From<FileProblem> for Refused {
    fn from(problem: FileProblem) -> Self {
        Self::File(problem)
    }
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        Self::File(error.into())
    }
}

impl From<TranscriptError> for Refused {
    fn from(error: TranscriptError) -> Self {
        Self::Entries(error)
    }
}

/// An import in a transaction.
struct Import<'a> {
    db: &'a rusqlite::Connection,
    sums: &'a mut Sums,
    /// The epoch of the first numbers.
    epoch: u32,
    /// The greatest number so far.
    last: Number,
    /// Epochs by which numbers move, once the first one is known: its epoch in the transcript, and here.
    moved: Option<(u32, u32)>,
    root: Option<Number>,
    /// The time of the transcript, at which open rows end.
    taken: Time,
}

impl Import<'_> {
    fn all(&mut self, entries: Source<'_>) -> Result<ThreadId, Refused> {
        let first = entries().map_err(TranscriptError::Source)?;
        let first = first.filter(|entry| entry.kind() == CONVERSATION);
        let first = first.ok_or_else(|| unusable(0, "the first entry is that of the conversation"))?;
        let value = |name: &str| first.get(name).ok_or_else(|| unusable(0, format!("it has no '{name}'")));
        let id: ThreadId = value("id")?.parse().map_err(|_| unusable(0, "its 'id' is no UUID"))?;
        self.taken = value("taken")?.parse().map_err(|_| unusable(0, "its 'taken' is no time"))?;
        let known =
            "SELECT EXISTS (SELECT 1 FROM thread WHERE id = ?1) OR EXISTS (SELECT 1 FROM egress WHERE root = ?1)";
        if self.db.query_row(known, [id.as_uuid().as_bytes().as_slice()], |row| row.get(0))? {
            return Err(TranscriptError::Present(id).into());
        }
        let mut number = 0;
        while let Some(entry) = entries().map_err(TranscriptError::Source)? {
            number += 1;
            self.one(&entry, id).map_err(|refused| match refused {
                OneRefused::Why(why) => Refused::Entries(unusable(number, why)),
                OneRefused::File(problem) => Refused::File(problem),
            })?;
        }
        if self.root.is_none() {
            return Err(unusable(number, "the thread of the conversation is missing").into());
        }
        Ok(id)
    }

    fn one(&mut self, entry: &Entry, id: ThreadId) -> Result<(), OneRefused> {
        match entry.kind() {
            ThreadRecord::TABLE => {
                let (thread, ..) = &read::<ThreadRecord>(entry)?;
                match (self.moved, thread.root == thread.number) {
                    (None, true) if thread.id == id => self.moved = Some((epoch_of(thread.number), self.epoch)),
                    (None, _) => return Err("the first thread must be that of the conversation".into()),
                    (Some(_), true) => return Err("a conversation has one thread without a parent".into()),
                    (Some(_), false) => {}
                }
                self.write::<ThreadRecord>(entry, |thread, of| thread.root == *of.root.get_or_insert(thread.root))
            }
            BudgetRecord::TABLE => self.write::<BudgetRecord>(entry, |_, _| true),
            MessageRecord::TABLE => self.write::<MessageRecord>(entry, |_, _| true),
            FanRow::TABLE => self.write::<FanRow>(entry, |_, _| true),
            SettledRow::TABLE => self.write::<SettledRow>(entry, |_, _| true),
            NoteRecord::TABLE => self.write::<NoteRecord>(entry, |_, _| true),
            RememberedRecord::TABLE => self.write::<RememberedRecord>(entry, |_, _| true),
            EgressRecord::TABLE => self.write::<EgressRecord>(entry, |egress, _| egress.root == id),
            SubmissionRecord::TABLE => {
                self.write::<SubmissionRecord>(entry, |sent, _| sent.root == id && sent.key.is_none())
            }
            other => Err(format!("this systole knows no entry '{other}'").into()),
        }
    }

    /// Writes the row of an entry, if `fits` says so.
    fn write<R: Told>(&mut self, entry: &Entry, fits: impl FnOnce(&R, &mut Self) -> bool) -> Result<(), OneRefused> {
        let (mut record, at, ended) = read::<R>(entry)?;
        let (from, to) = self.moved.ok_or("the thread of the conversation must come before it")?;
        let mut wrong = None;
        record.renew(&mut |number| match renewed(*number, from, to) {
            Some(new) => {
                *number = new;
                if new != Number::MAX {
                    self.last = self.last.max(new);
                }
            }
            None => wrong = Some(*number),
        });
        if let Some(wrong) = wrong {
            return Err(format!("its number {wrong} is none of the conversation's").into());
        }
        if !fits(&record, self) {
            return Err("it is of another conversation".into());
        }
        let nanos = |time: Time| time.as_nanos().cast_signed();
        let times = (nanos(at), Some(nanos(ended.unwrap_or(self.taken))));
        // Messages alone have a way in which they ended.
        let ending = match entry.get("ending") {
            Some(ending @ ("done" | "cancelled")) if ended.is_some() => ending,
            _ => "cancelled",
        };
        let mut statement = self.db.prepare_cached(R::FINAL)?;
        match write_final(&mut statement, &record, times, Some(ending), self.sums) {
            Ok(_) => Ok(()),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => {
                Err("there is an entry like it already".into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// A number in the epochs of this journal; none if it is before the conversation, or there are no such epochs.
fn renewed(number: Number, from: u32, to: u32) -> Option<Number> {
    if number == Number::MAX {
        return Some(number);
    }
    let behind = number.checked_sub(numbers_after(from))?;
    let new = numbers_after(to).checked_add(behind)?;
    (new >> 63 == 0 && epoch_of(new) <= LAST_EPOCH).then_some(new)
}

/// The reason why an entry is not written.
enum OneRefused {
    Why(String),
    File(FileProblem),
}

impl From<&str> for OneRefused {
    fn from(why: &str) -> Self {
        Self::Why(why.to_owned())
    }
}

impl From<String> for OneRefused {
    fn from(why: String) -> Self {
        Self::Why(why)
    }
}

impl From<rusqlite::Error> for OneRefused {
    fn from(error: rusqlite::Error) -> Self {
        Self::File(error.into())
    }
}

/// Reads a row with its times from an entry.
fn read<R: Told>(entry: &Entry) -> Result<(R, Time, Option<Time>), String> {
    let time = |name: &str| {
        let parse = |text: &str| text.parse::<Time>().map_err(|error| format!("its '{name}': {error}"));
        entry.get(name).map(parse).transpose()
    };
    let at = time("at")?.ok_or("it has no 'at'")?;
    let ended = time("ended")?;
    let mut values = Vec::new();
    for (name, kind) in names::<R>().zip(R::TYPES.chars()) {
        let Some(text) = entry.get(name) else {
            values.push(Value::Null);
            continue;
        };
        let wrong = || format!("its '{name}' can't be read");
        values.push(match kind {
            'n' => Value::Integer(text.parse().map_err(|_| wrong())?),
            'd' => Value::Integer(text.parse::<Time>().map_err(|_| wrong())?.as_nanos().cast_signed()),
            'u' => Value::Blob(text.parse::<Uuid>().map_err(|_| wrong())?.as_bytes().to_vec()),
            'p' if text.starts_with('<') && entry.document(name).is_none() && R::TABLE != NoteRecord::TABLE => {
                return Err(format!("its '{name}' is no canonical document"));
            }
            _ => Value::Text(text.to_owned()),
        });
    }
    let values: Vec<_> = values.iter().map(ValueRef::from).collect();
    let record = R::read(&mut Cells::new(&values)).ok_or_else(|| format!("it is no row of the table {}", R::TABLE))?;
    Ok((record, at, ended))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types<R: Told>() {
        assert_eq!(names::<R>().count(), R::TYPES.len(), "{}", R::TABLE);
        assert_eq!(R::COLUMNS, R::TYPES.len(), "{}", R::TABLE);
        assert!(R::TYPES.matches('p').count() <= 1, "{}", R::TABLE);
    }

    #[test]
    fn each_column_has_a_type() {
        types::<ThreadRecord>();
        types::<BudgetRecord>();
        types::<MessageRecord>();
        types::<FanRow>();
        types::<SettledRow>();
        types::<NoteRecord>();
        types::<RememberedRecord>();
        types::<EgressRecord>();
        types::<SubmissionRecord>();
    }

    #[test]
    fn numbers_move_by_epochs_and_keep_their_order() {
        let [first, later] = [numbers_after(3) + 7, numbers_after(5) + 1];
        assert_eq!(renewed(first, 3, 1), Some(numbers_after(1) + 7));
        assert_eq!(renewed(later, 3, 1), Some(numbers_after(3) + 1));
        assert_eq!(renewed(numbers_after(3) - 1, 3, 1), None);
        assert_eq!(renewed(numbers_after(LAST_EPOCH), 3, 4), None);
        assert_eq!(renewed(Number::MAX - 1, 3, 1), None);
        assert_eq!(renewed(Number::MAX, 3, 1), Some(Number::MAX));
    }
}
