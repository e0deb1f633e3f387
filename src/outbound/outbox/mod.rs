//! The outbox on disk: deliveries to send, their progress, and for a while their ends.
//!
//! An SQLite file of its own. Each method is part of a transaction of the caller ([`Outbox::transaction`]); its effect
//! is durable when that returns. The first end of a delivery holds: every change of a row checks that it is still open.
//!
//! Not here: the times and the order of attempts.

mod row;
mod writer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::delivery::{OutboundDelivery, OutboundLimits, shown};
use super::error::{DeliveryOutcome, Undelivered};
use super::store::Job;
use crate::runtime::sqlite::{Database, Durability, FileProblem, Format, Opened, Opening, Retention, used};
use systole_core::vocab::{MessageId, Name, Time};

pub use row::{DeliveryReport, SettledDelivery};
pub(super) use writer::OutboxWriter;

/// `SyO1`, and its tables.
const FORMAT: Format = Format { name: "outbox", id: 0x5379_4f31, version: 1, schema: include_str!("schema.sql") };

/// Rows past their retention that go with each delivery that comes: more than one, so that their number falls.
const SWEEP: i64 = 64;

/// The outbox on disk.
#[derive(Debug)]
pub(super) struct Outbox {
    db: Database,
    file: PathBuf,
    retention: Retention,
    deliveries: u64,
    bytes: u64,
    turn: i64,
}

/// Result of putting a delivery into the outbox.
pub(super) enum PutResult {
    /// The delivery is new.
    New,
    /// The delivery is in the outbox already, and open.
    Open,
    /// The delivery is in the outbox already, and has ended.
    Over(DeliveryOutcome),
    /// Another delivery has the id.
    Taken,
    /// The outbox is full.
    Full { deliveries: u64, bytes: u64 },
}

impl Outbox {
    /// Opens an outbox, or creates one where the file is missing or empty.
    pub(super) fn open(
        file: &Path,
        durability: Durability,
        retention: Retention,
        now: Time,
    ) -> Result<Self, FileProblem> {
        let read = |db: &Connection| {
            let sql = "SELECT count(*), ifnull(sum(length(body)), 0), (SELECT ifnull(max(turn), 0) FROM delivery) \
                       FROM delivery WHERE settled IS NULL";
            Ok(db.query_row(sql, [], |row| Ok((row::count(row.get(0)?), row::count(row.get(1)?), row.get(2)?)))?)
        };
        let fill = |_: &Connection| Ok(());
        let opened = Opening { format: FORMAT, durability, cut: false, fill: &fill, read: &read }.open(file);
        let Opened { db, read: (deliveries, bytes, turn), cut } = opened?;
        if let Some(cut) = cut {
            tracing::warn!(file = %file.display(), at = cut.at, bytes = cut.bytes,
                "the end of the outbox's log was not written whole, and is cut off");
        }
        let outbox = Self { db, file: file.to_owned(), retention, deliveries, bytes, turn };
        while outbox.sweep(now)? > 0 {}
        Ok(outbox)
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Runs work in one transaction, which is rolled back after an error.
    pub(super) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, FileProblem>,
    ) -> Result<T, FileProblem> {
        let run = || {
            self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            let done = work(self)?;
            self.db.commit()?;
            Ok(done)
        };
        let done = run();
        if done.is_err() {
            // Some errors have rolled it back already; after any, the outbox is not used again.
            let _ = self.db.execute_batch("ROLLBACK");
        }
        done
    }

    /// Accepts a delivery, once if it is repeated.
    pub(super) fn put(
        &mut self,
        delivery: &OutboundDelivery,
        limits: &OutboundLimits,
        now: Time,
    ) -> Result<PutResult, FileProblem> {
        let digest = delivery.digest();
        if let Some((report, known)) = row::find(&self.db, delivery.id)? {
            return Ok(match report.outcome {
                _ if known != digest => PutResult::Taken,
                Some(outcome) => PutResult::Over(outcome),
                None => PutResult::Open,
            });
        }
        let bytes = delivery.body.len() as u64;
        if self.deliveries >= limits.deliveries || self.bytes + bytes > limits.bytes {
            return Ok(PutResult::Full { deliveries: self.deliveries, bytes: self.bytes });
        }
        self.sweep(now)?;
        row::insert(&self.db, delivery, &digest, now)?;
        self.deliveries += 1;
        self.bytes += bytes;
        Ok(PutResult::New)
    }

    /// The targets with open deliveries.
    pub(super) fn targets(&self) -> Result<Vec<Name>, FileProblem> {
        let mut statement = self.db.prepare("SELECT DISTINCT target FROM delivery WHERE settled IS NULL")?;
        let mut rows = statement.query([])?;
        let mut targets = Vec::new();
        while let Some(row) = rows.next()? {
            targets.push(row::name(row.get_ref(0)?)?);
        }
        Ok(targets)
    }

    /// The next delivery to a target.
    pub(super) fn head(&self, target: &Name) -> Result<Option<Job>, FileProblem> {
        row::head(&self.db, target)
    }

    /// Notes that an attempt begins, before it does. Returns false if the delivery is not open.
    pub(super) fn begin(&self, id: MessageId, attempts: u32, spent: Duration) -> Result<bool, FileProblem> {
        let sql = "UPDATE delivery SET attempts = ?2, spent = ?3, next = NULL WHERE id = ?1 AND settled IS NULL";
        let changed = self.db.prepare_cached(sql)?.execute(params![row::key(id), attempts, row::nanos(spent)])?;
        Ok(changed > 0)
    }

    /// Notes that an attempt failed, and the time of the next one.
    pub(super) fn back_off(
        &self,
        id: MessageId,
        next: Time,
        error: &str,
        spent: Duration,
    ) -> Result<bool, FileProblem> {
        let sql = "UPDATE delivery SET next = ?2, error = ?3, spent = ?4 WHERE id = ?1 AND settled IS NULL";
        let values = params![row::key(id), row::time(next), error, row::nanos(spent)];
        Ok(self.db.prepare_cached(sql)?.execute(values)? > 0)
    }

    /// Notes the end of a delivery. Returns false if it was not open.
    pub(super) fn settle(&mut self, id: MessageId, end: &End<'_>) -> Result<bool, FileProblem> {
        let sql = "SELECT length(body) FROM delivery WHERE id = ?1 AND settled IS NULL";
        let open: Option<i64> = self.db.prepare_cached(sql)?.query_row([row::key(id)], |row| row.get(0)).optional()?;
        let Some(bytes) = open else { return Ok(false) };
        self.turn += 1;
        row::settle(&self.db, id, end, self.turn)?;
        self.deliveries -= 1;
        self.bytes -= row::count(bytes);
        Ok(true)
    }

    /// Cancels a delivery; returns its end if it was open.
    pub(super) fn cancel(&mut self, id: MessageId, limit: u32, now: Time) -> Result<Option<Undelivered>, FileProblem> {
        let Some((report, _)) = row::find(&self.db, id)?.filter(|(report, _)| report.outcome.is_none()) else {
            return Ok(None);
        };
        let message = report.last_error.clone().unwrap_or_else(|| "nothing was sent".to_owned());
        let undelivered = Undelivered {
            id,
            target: report.target,
            url: shown(&report.url),
            cause: super::Cause::Cancelled,
            message,
            attempts: report.attempts,
            limit,
            elapsed: report.spent,
        };
        let outcome = Err(undelivered);
        self.settle(id, &End { outcome: &outcome, spent: report.spent, now, told: true })?;
        Ok(outcome.err())
    }

    /// The report on a delivery.
    pub(super) fn report(&self, id: MessageId) -> Result<Option<DeliveryReport>, FileProblem> {
        Ok(row::find(&self.db, id)?.map(|(report, _)| report))
    }

    /// The first delivery that ended after a turn and that no caller has seen, with its turn.
    pub(super) fn untold(&self, after: i64) -> Result<Option<(i64, SettledDelivery)>, FileProblem> {
        row::untold(&self.db, after)
    }

    /// Notes that a caller has seen the end of a delivery. Returns false for a repeated note.
    pub(super) fn tell(&self, id: MessageId) -> Result<bool, FileProblem> {
        let sql = "UPDATE delivery SET told = 1 WHERE id = ?1 AND settled IS NOT NULL AND told = 0";
        Ok(self.db.prepare_cached(sql)?.execute([row::key(id)])? > 0)
    }

    /// Forgets an ended delivery. Returns false if there was none.
    pub(super) fn forget(&self, id: MessageId) -> Result<bool, FileProblem> {
        let sql = "DELETE FROM delivery WHERE id = ?1 AND settled IS NOT NULL";
        Ok(self.db.prepare_cached(sql)?.execute([row::key(id)])? > 0)
    }

    /// Deletes some rows past their retention. Once none is left, returns when the next one will be.
    pub(super) fn tidy(&self, now: Time) -> Result<Option<Option<Time>>, FileProblem> {
        if self.sweep(now)? > 0 {
            return Ok(None);
        }
        let sql = "SELECT min(settled) FROM delivery WHERE settled IS NOT NULL";
        let oldest: Option<i64> = self.db.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        Ok(Some(oldest.map(|oldest| row::time_of(oldest).after(self.retention.age))))
    }

    /// The deliveries that have not ended.
    pub(super) fn open_ids(&self) -> Result<Vec<MessageId>, FileProblem> {
        let mut statement = self.db.prepare("SELECT id FROM delivery WHERE settled IS NULL ORDER BY place")?;
        let mut rows = statement.query([])?;
        let mut ids = Vec::new();
        while let Some(row) = rows.next()? {
            ids.push(row::id(row.get_ref(0)?)?);
        }
        Ok(ids)
    }

    /// Deletes some rows past their retention, oldest first; returns their number.
    fn sweep(&self, now: Time) -> Result<usize, FileProblem> {
        let age = i64::try_from(self.retention.age.as_nanos()).unwrap_or(i64::MAX);
        let full = used(&self.db)? > self.retention.bytes;
        let before = if full { i64::MAX } else { row::time(now).saturating_sub(age) };
        let sql = "DELETE FROM delivery WHERE place IN \
                   (SELECT place FROM delivery WHERE settled < ?1 ORDER BY settled LIMIT ?2)";
        Ok(self.db.prepare_cached(sql)?.execute(params![before, SWEEP])?)
    }
}

/// The end of a delivery, and the values that are written with it.
pub(super) struct End<'a> {
    pub(super) outcome: &'a DeliveryOutcome,
    pub(super) spent: Duration,
    pub(super) now: Time,
    /// True if a handle gets the outcome now.
    pub(super) told: bool,
}
