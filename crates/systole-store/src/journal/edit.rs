//! Changes that an operator makes to the journal of an organism that is not running.

use std::path::Path;

use systole_core::journal::{Number, Op, Step};
use systole_core::vocab::Time;

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

    /// Deletes a dead letter at this time; `false` if there is none of that number.
    ///
    /// # Errors
    /// [`StoreError`] if the change can't be written.
    pub fn drop_letter(&mut self, letter: Number, now: Time) -> Result<bool, StoreError> {
        let step = Step { ops: vec![Op::LetterGone { letter }], at: now };
        self.with_letter(letter, |apply| apply.step(&step))
    }

    /// Marks a dead letter to be redriven by the next start; `false` if there is none of that number.
    ///
    /// # Errors
    /// [`StoreError`] if the mark can't be written.
    pub fn redrive_letter(&mut self, letter: Number) -> Result<bool, StoreError> {
        self.with_letter(letter, |apply| apply.put(&Redrive(letter), [letter.cast_signed()]))
    }

    fn with_letter(
        &mut self,
        letter: Number,
        change: impl FnOnce(&mut Apply<'_>) -> Result<(), FileProblem>,
    ) -> Result<bool, StoreError> {
        let mut found = false;
        self.feed_all()?;
        self.transaction(|journal| {
            let Self { db, meta, known, sums, retain, .. } = journal;
            let sql = "SELECT count(*) FROM letter WHERE number = ?1";
            found = db.query_row(sql, [letter.cast_signed()], |row| row.get(0))?;
            let mut apply = Apply::after(retain.now(), db, meta, known, sums);
            if found {
                change(&mut apply)?;
            }
            apply.finish(meta)
        })?;
        Ok(found)
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
