//! The journal in an SQLite file: its transactions.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use systole_core::journal::{AppendError, Batch, Durability, Heads, Journal, JournalError, Recovered, Step, Tail};
use systole_core::vocab::{Partitions, Time};

use super::JournalOptions;
use super::adopt::read;
use super::batch::Batches;
use super::error::StoreError;
use super::meta::Meta;
use super::open::{Read, open};
use super::recover::{Known, known, recover};
use super::retain::{Retain, Swept};
use super::row::{Record, write};
use super::sum::Sums;
use super::weigh::Room;
use crate::sqlite::{Cut, Database, FileProblem, LogFull, Loss, Opened, truncate_log, write_back};

/// A journal in an SQLite file.
///
/// One writer at a time: the opener holds a lock on the file until this value is dropped or its process ends. Each
/// [`append`](Journal::append) is one transaction, which writes a batch or the tables (see `batch`). After an error every
/// operation fails.
pub struct SqliteJournal {
    pub(super) db: Database,
    pub(super) file: PathBuf,
    pub(super) meta: Meta,
    pub(super) known: Known,
    pub(super) retain: Retain,
    /// Room for the promises to clients over a network.
    pub(super) room: Arc<Room>,
    /// The ends of the logs. The lock on the file lets no other process append, so they are nowhere else.
    heads: Heads,
    durability: Durability,
    /// The batches in the file.
    pub(super) batches: Batches,
    cut: Option<Cut>,
    failed: Option<String>,
    pub(super) sums: Sums,
}

impl SqliteJournal {
    /// Opens a journal, or creates one where there is no file or an empty one.
    ///
    /// # Errors
    /// [`StoreError`] if the file is in use, no journal, of a later program, damaged, or can't be written. It is left
    /// unchanged.
    pub fn open(file: &Path, options: &JournalOptions) -> Result<Self, StoreError> {
        let Opened { db, read: Read { meta, batches }, cut } =
            open(file, options).map_err(|problem| problem.of(file))?;
        if let Some(cut) = &cut {
            report(file, cut);
        }
        let mut journal = Self {
            db,
            file: file.to_owned(),
            heads: Heads::begin(meta.record.epoch),
            durability: options.durability,
            known: Known::default(),
            retain: Retain::new(options.retention, meta.at, meta.record.trusted),
            meta: meta.record,
            room: Room::new(options.retention.bytes),
            batches,
            cut,
            failed: None,
            sums: Sums::default(),
        };
        if !journal.batches.is_empty() {
            journal.known = Known::read(&journal.db).map_err(|problem| problem.of(file))?;
            journal.feed_all()?;
        }
        Ok(journal)
    }

    /// Opens a journal as [`open`](Self::open) does, and waits for a second while another process has it: a command that
    /// reads the journal of a killed organism takes it for a moment.
    pub fn open_when_free(file: &Path, options: &JournalOptions) -> Result<Self, StoreError> {
        // Each of them waits for 50 ms.
        for _ in 1..20 {
            match Self::open(file, options) {
                Err(StoreError { problem: FileProblem::InUse { holder }, .. })
                    if holder != Some(std::process::id()) => {}
                opened => return opened,
            }
        }
        Self::open(file, options)
    }

    /// The incomplete end of the log that was cut off when the journal was opened.
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// Appends steps to the log of what lives beside the cores, wherever it ends: for tests without owners.
    ///
    /// # Errors
    /// As [`append`](Journal::append).
    pub fn write(&mut self, steps: &[Step]) -> Result<(), JournalError> {
        Ok(self.append(&Batch::of(self.heads.beside(), steps.to_vec()))?)
    }

    /// Checks that logs have these ends.
    #[cfg(feature = "postgres")]
    pub(super) fn check_heads(&mut self, tails: &[Tail]) -> Result<(), AppendError> {
        self.heads.check(tails)
    }

    /// The room for the promises to clients over a network.
    pub fn room(&self) -> Arc<Room> {
        self.room.clone()
    }

    /// The state that says whether the log is full, because another program reads the journal in one transaction.
    pub fn log_full(&self) -> LogFull {
        self.db.log_full()
    }

    /// Deletes some rows that are past their retention at a time.
    pub(super) fn sweep_at(&mut self, now: Time) -> Result<Swept, FileProblem> {
        let Self { db, retain, known, room, .. } = self;
        retain.sweep_at(db, &mut known.weights, room, now)
    }

    /// Runs one transaction on the tables. After an error it is rolled back, and every later operation fails.
    pub(super) fn transaction(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<Meta, FileProblem>,
    ) -> Result<(), StoreError> {
        if let Some(why) = &self.failed {
            return Err(FileProblem::Failed(why.clone()).of(&self.file));
        }
        let done = self.try_transaction(work);
        if let Err(problem) = &done {
            self.failed = Some(problem.to_string());
            // Some errors have rolled it back already; a failed journal is not used again in any case.
            let _ = self.db.execute_batch("ROLLBACK");
            if matches!(problem, FileProblem::Parted { .. }) {
                // The finished transactions are in a log that ends with this process.
                let _ = write_back(&self.db);
            }
        }
        done.map_err(|problem| problem.of(&self.file))
    }

    fn try_transaction(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<Meta, FileProblem>,
    ) -> Result<(), FileProblem> {
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let meta = work(self)?;
        let meta = Meta { batches: self.batches.rows(), trusted: self.retain.trusted(), ..meta };
        write(&mut *self.db.prepare_cached(Meta::REPLACE)?, &meta, self.retain.now(), &mut self.sums)?;
        self.db.judge_place()?;
        self.db.commit()?;
        self.meta = meta;
        Ok(())
    }
}

/// Logs that the end of a log was cut off, and what that costs.
fn report(file: &Path, cut: &Cut) {
    let Cut { at, bytes, frames, loss } = *cut;
    let file = file.display();
    match loss {
        Loss::Unfinished => tracing::warn!(%file, at, bytes, frames,
            "the last transaction in the journal's log was not finished, and is cut off: nothing that the disk or the \
             system had taken for sure is lost"),
        Loss::Unsynced(lost) => tracing::error!(%file, at, bytes, frames, transactions = lost,
            "finished transactions were not on the disk when the power failed, and are cut off from the journal's log: \
             `durability: process` does not wait for the disk; there may be more of them"),
        Loss::Damaged(lost) => tracing::error!(%file, at, bytes, frames, transactions = lost,
            "finished transactions are cut off from the journal's log behind a damaged place; there may be more of them"),
    }
}

impl fmt::Debug for SqliteJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteJournal").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Journal for SqliteJournal {
    fn durability(&self) -> Option<Durability> {
        Some(self.durability)
    }

    fn may_block(&self) -> bool {
        match self.durability {
            Durability::Process => false,
            Durability::Power => true,
        }
    }

    fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
        self.heads.check(batch.tails())?;
        self.write_steps(batch.steps()).map_err(JournalError::from)?;
        self.heads.advance(batch.tails());
        Ok(())
    }

    fn is_fed(&self) -> bool {
        self.batches.is_empty()
    }

    fn feed(&mut self) -> Result<(), JournalError> {
        Ok(self.feed_all()?)
    }

    fn recover(&mut self) -> Result<Recovered, JournalError> {
        let mut recovered = Recovered::default();
        self.feed_all()?;
        self.transaction(|journal| {
            recovered = recover(&journal.db, &journal.meta)?;
            journal.known = known(&recovered);
            journal.known.weights.count(&journal.db, &journal.room)?;
            recovered.epoch = journal.meta.next_epoch()?;
            Ok(Meta { epoch: recovered.epoch, running: true, ..journal.meta.clone() })
        })?;
        self.heads = Heads::begin(recovered.epoch);
        Ok(recovered)
    }

    fn adopt(&mut self, partitions: &Partitions) -> Result<Recovered, JournalError> {
        let mut recovered = Recovered::default();
        self.feed_all()?;
        self.transaction(|journal| {
            let epoch = journal.meta.next_epoch()?;
            recovered = Recovered { key: journal.meta.key, epoch, ..read(&journal.db, partitions)? };
            Ok(Meta { epoch, ..journal.meta.clone() })
        })?;
        recovered.crashed = self.heads.adopt(*partitions, recovered.epoch);
        Ok(recovered)
    }

    fn release(&mut self, tail: &Tail) -> Result<(), AppendError> {
        self.heads.release(tail)
    }

    fn tidy(&mut self, now: Time) -> Result<bool, JournalError> {
        self.feed_all()?;
        let is_due =
            self.retain.is_due(&self.db, &self.known.weights, now).map_err(|problem| problem.of(&self.file))?;
        // An idle organism, too, learns that its files are gone: by a transaction, which fails then.
        if !is_due && self.db.judge_place().is_ok() {
            return Ok(false);
        }
        let mut swept = Swept::default();
        self.transaction(|journal| {
            swept = journal.sweep_at(now)?;
            Ok(journal.meta.after(&swept))
        })?;
        Ok(swept.goes_on())
    }

    fn tidy_interval(&self) -> Duration {
        self.retain.interval()
    }

    fn close(&mut self) -> Result<(), JournalError> {
        self.feed_all()?;
        #[cfg(debug_assertions)]
        self.known.weights.check(&self.db).map_err(|problem| problem.of(&self.file))?;
        self.transaction(|journal| Ok(Meta { running: false, ..journal.meta.clone() }))?;
        // A copy of the file alone should be complete. SQLite writes the log back with the last connection to it, but
        // connections that only read may be closed later, and can't write.
        if let Err(problem) = truncate_log(&self.db) {
            tracing::warn!(file = %self.file.display(), %problem, "the journal's log could not be written back at the end");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use systole_core::journal::{BodyRecord, JournalErrorKind, MessageRecord, MessageState, Number, Op, ReplyTo};
    use systole_core::vocab::{MessageId, Name};

    use super::*;

    fn put(number: Number) -> Step {
        let message = MessageRecord {
            number,
            place: number,
            thread: 1,
            id: MessageId::from_uuid(uuid::Uuid::from_u128(number.into())),
            from: Name::core(),
            in_reply_to: None,
            answers: ReplyTo::None,
            state: MessageState::Queued,
            body: BodyRecord::Payload("x".repeat(3000).into()),
            attempts: 0,
        };
        Step { ops: vec![Op::Put(message)], at: Time::default() }
    }

    #[test]
    fn what_a_durability_promises_is_what_the_database_is_told() {
        for (durability, expected) in [(Durability::Process, 1), (Durability::Power, 2)] {
            let file = std::env::temp_dir().join(format!("systole-test-{}-level-{expected}", std::process::id()));
            let journal =
                SqliteJournal::open(&file, &JournalOptions { durability, ..JournalOptions::new([1; 32]) }).unwrap();
            let told = |name: &str| journal.db.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
            // <https://www.sqlite.org/pragma.html#pragma_synchronous>: 1 is NORMAL, 2 is FULL.
            assert_eq!((told("synchronous"), told("fullfsync")), (expected, expected - 1));
            let mode: String = journal.db.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
            assert_eq!(mode, "wal");
            drop(journal);
            forget(&file);
        }
    }

    fn forget(file: &Path) {
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn a_full_disk_is_an_error_that_says_so_and_the_step_before_it_is_the_last() {
        let file = std::env::temp_dir().join(format!("systole-test-{}-full.journal", std::process::id()));
        let mut journal = SqliteJournal::open(&file, &JournalOptions::new([1; 32])).unwrap();
        journal.recover().unwrap();
        journal.db.pragma_update(None, "max_page_count", 60).unwrap();
        let mut written = 0;
        let error = loop {
            match journal.write(&[put(2 * written), put(2 * written + 1)]) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
        };
        assert!(written > 5 && error.kind() == JournalErrorKind::Full, "{written}, {error}");
        journal.write(&[]).unwrap_err();
        drop(journal);
        let mut journal = SqliteJournal::open(&file, &JournalOptions::new([1; 32])).unwrap();
        assert_eq!(journal.recover().unwrap().messages.len() as u64, 2 * written);
        drop(journal);
        forget(&file);
    }
}
