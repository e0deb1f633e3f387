//! Changes that an operator makes to the journal of an organism that is not running.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};
use systole_core::journal::{ActRecord, MailState, MailStatus, Number, Op, Step};
use systole_core::vocab::{MessageId, Name, Time};

use super::apply::Apply;
use super::error::StoreError;
use super::records::Redrive;
use super::{JournalOptions, SqliteJournal};
use crate::sqlite::{FileProblem, place, truncate_log};

/// Result of [`SqliteJournal::compact`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Ended rows that were deleted.
    pub rows: u64,
    /// Bytes of the file before compaction.
    pub before: u64,
    /// Bytes of the file after compaction.
    pub after: u64,
}

impl SqliteJournal {
    /// Opens an existing journal.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open), and [`FileProblem::Missing`].
    pub fn open_existing(file: &Path, options: &JournalOptions) -> Result<Self, StoreError> {
        match place(file) {
            Ok(real) if !real.exists() => Err(FileProblem::Missing.of(file)),
            _ => Self::open(file, options),
        }
    }

    /// Deletes a dead letter for an operator; `false` if there is none of that number.
    ///
    /// # Errors
    /// [`StoreError`] if the change can't be written.
    pub fn drop_letter(&mut self, letter: Number, by: &Name, now: Time) -> Result<bool, StoreError> {
        let act = act(by, "discard", letter.to_string());
        let step = Step { ops: vec![Op::LetterGone { letter }, act], at: now };
        self.change(|db| has_letter(db, letter), |apply, ()| apply.step(&step))
    }

    /// Marks a dead letter to be redriven by the next start, for an operator; `false` if there is none of that number.
    ///
    /// # Errors
    /// [`StoreError`] if the mark can't be written.
    pub fn redrive_letter(&mut self, letter: Number, by: &Name, now: Time) -> Result<bool, StoreError> {
        let step = Step { ops: vec![act(by, "redrive", letter.to_string())], at: now };
        self.change(
            |db| has_letter(db, letter),
            |apply, ()| {
                apply.put(&Redrive(letter), [letter.cast_signed()])?;
                apply.step(&step)
            },
        )
    }

    /// Deletes a dead letter of a mailbox for an operator; `false` if there is none of that message.
    ///
    /// # Errors
    /// [`StoreError`] if the change can't be written.
    pub fn drop_mail(&mut self, message: MessageId, by: &Name, now: Time) -> Result<bool, StoreError> {
        let act = act(by, "discard", message.to_string());
        self.change(
            |db| dead_mail(db, message),
            |apply, (seq, _)| apply.step(&Step { ops: vec![Op::MailGone { seq }, act], at: now }),
        )
    }

    /// Puts a dead letter of a mailbox behind its last message, for an operator; `false` if there is none of that message.
    ///
    /// # Errors
    /// [`StoreError`] if the change can't be written.
    pub fn redrive_mail(&mut self, message: MessageId, by: &Name, now: Time) -> Result<bool, StoreError> {
        let act = act(by, "redrive", message.to_string());
        self.change(
            |db| dead_mail(db, message),
            |apply, (from, error)| {
                let status = MailStatus { state: MailState::Redriven, error, ..MailStatus::default() };
                let moved = Op::MailMoved { from, to: last_mail(apply.db)? + 1, status };
                apply.step(&Step { ops: vec![moved, act], at: now })
            },
        )
    }

    /// Changes what a look finds; `false` if it finds nothing.
    fn change<T>(
        &mut self,
        find: impl FnOnce(&Connection) -> Result<Option<T>, FileProblem>,
        change: impl FnOnce(&mut Apply<'_>, T) -> Result<(), FileProblem>,
    ) -> Result<bool, StoreError> {
        let mut is_there = false;
        self.feed_all()?;
        self.transaction(|journal| {
            let Self { db, meta, known, sums, retain, .. } = journal;
            let found = find(db)?;
            is_there = found.is_some();
            let mut apply = Apply::after(retain.now(), db, meta, known, sums);
            if let Some(found) = found {
                change(&mut apply, found)?;
            }
            // The next change is a later step.
            retain.go_on(apply.at);
            apply.finish(meta)
        })?;
        Ok(is_there)
    }

    /// Deletes all ended rows that are past their retention at this time, and shrinks the file to its smallest size.
    ///
    /// # Errors
    /// [`StoreError`] if there is no room for a copy of what stays, or the file can't be written.
    pub fn compact(&mut self, now: Time) -> Result<Compacted, StoreError> {
        self.retain.trust(now);
        self.feed_all()?;
        let before = self.size()?;
        let mut rows = 0;
        loop {
            let (mut gone, mut goes_on) = (0, false);
            self.transaction(|journal| {
                let swept = journal.sweep_at(now)?;
                (gone, goes_on) = (swept.rows, swept.goes_on());
                Ok(journal.meta.after(&swept))
            })?;
            rows += gone as u64;
            if !goes_on {
                break;
            }
        }
        self.shrink().map_err(|problem| problem.of(&self.file))?;
        Ok(Compacted { rows, before, after: self.size()? })
    }

    fn shrink(&self) -> Result<(), FileProblem> {
        self.db.flush_prepared_statement_cache();
        self.db.execute_batch("VACUUM")?;
        let emptied = truncate_log(&self.db);
        self.db.accept_shorter();
        emptied
    }

    fn size(&self) -> Result<u64, StoreError> {
        std::fs::metadata(&self.file).map(|found| found.len()).map_err(|error| FileProblem::from(error).of(&self.file))
    }
}

/// The record of an operator's act with an effect.
pub(super) fn act(by: &Name, act: &str, of: String) -> Op {
    Op::Acted(ActRecord { by: by.clone(), act: act.into(), of: of.into(), error: None, opened: None })
}

fn has_letter(db: &Connection, letter: Number) -> Result<Option<()>, FileProblem> {
    let sql = "SELECT 1 FROM letter WHERE number = ?1";
    Ok(db.query_row(sql, [letter.cast_signed()], |_| Ok(())).optional()?)
}

/// The place of a dead letter of a mailbox, and its last error.
type Dead = (Number, Option<Arc<str>>);

fn dead_mail(db: &Connection, message: MessageId) -> Result<Option<Dead>, FileProblem> {
    let sql = "SELECT seq, error FROM mail JOIN mail_status USING (seq) WHERE id = ?1 AND state = 'dead'";
    let row = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?));
    Ok(db.query_row(sql, [message.as_uuid().as_bytes()], row).optional()?)
}

/// The last place that was given in any mailbox.
fn last_mail(db: &Connection) -> Result<Number, FileProblem> {
    let sql = "SELECT max(ifnull((SELECT max(seq) FROM mail), 0), ifnull((SELECT max(last) FROM mail_gone), 0))";
    Ok(db.query_row(sql, [], |row| row.get::<_, i64>(0))?.cast_unsigned())
}
