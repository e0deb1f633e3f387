//! Batches: steps that are durable, and not in the other tables yet.
//!
//! The state of a journal is its tables with the steps of its batches applied, in order. A transaction either adds a
//! batch, which is one row, or *feeds* the tables: it applies the steps of all batches and its own, and deletes the
//! batches. Feeding many steps at once is cheap, because rows that come, change and end meanwhile are written once.

use bytes::Bytes;
use rusqlite::Connection;
use rusqlite::types::ToSqlOutput;
use systole_core::journal::{Op, Step, epoch_of};
use systole_core::vocab::Time;

use super::SqliteJournal;
use super::apply::Apply;
use super::codec::{Coded, Source};
use super::coded::VERSION;
use super::error::StoreError;
use super::meta::Meta;
use super::row::{Cells, Record, blob, load, number, statements, write};
use super::sum::Sums;
use crate::sqlite::FileProblem;

/// The most steps of a transaction that goes to the tables if there is no batch. A shard writes as many itself: more of
/// them are work for two threads.
pub(super) const FEW: usize = 4;

/// The most steps in batches. No transaction begins during a feed, so this bounds the wait of steps that come then: a
/// feed of so many takes about as long as the transactions of 64 conversations under way.
const STEPS: usize = 512;

/// The most bytes in batches, for the same reason.
const BYTES: usize = 2 << 20;

/// A row of steps.
pub(super) struct BatchRow {
    /// Position among the batches, from 1.
    number: u64,
    /// The sum of the sums of all open rows of the other tables, by which a missing batch is found.
    total: i64,
    steps: Bytes,
}

impl Record for BatchRow {
    statements!("batch", "number = ?1", "NULL", "number, total, steps", "?, ?, ?");

    fn cells(&self, cell: &mut dyn FnMut(ToSqlOutput<'_>) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        cell(number(self.number))?;
        cell(self.total.into())?;
        cell(blob(&self.steps))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self { number: cells.number()?, total: cells.value()?.as_i64().ok()?, steps: cells.bytes()? })
    }
}

/// Counts of the batches of a journal.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Batches {
    rows: u64,
    steps: usize,
    bytes: usize,
    /// The sum of their sums.
    sum: i64,
}

impl Batches {
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Number of batches.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Checks all batches of a file: each must have its place, and all together make up the count and the total of
    /// `meta`.
    pub(super) fn check(db: &Connection, meta: &Meta) -> Result<Self, FileProblem> {
        let (mut batches, mut others) = (Self::default(), meta.total);
        for (row, sum) in rows(db)? {
            batches = batches.with(decode(&row)?.len(), row.steps.len(), sum);
            if row.number != batches.rows || (batches.rows > 1 && row.total != others) {
                return Err(missing());
            }
            others = row.total;
        }
        if meta.batches != batches.rows || meta.total != others.wrapping_add(batches.sum) {
            return Err(missing());
        }
        Ok(batches)
    }

    fn with(self, steps: usize, bytes: usize, sum: i64) -> Self {
        Self {
            rows: self.rows + 1,
            steps: self.steps + steps,
            bytes: self.bytes + bytes,
            sum: self.sum.wrapping_add(sum),
        }
    }
}

/// The problem of a file in which batches are not as they were written.
pub(super) fn missing() -> FileProblem {
    FileProblem::damaged("batches of steps are missing, or come from another time")
}

/// Reads all batches, each with its sum.
fn rows(db: &Connection) -> Result<Vec<(BatchRow, i64)>, FileProblem> {
    let mut statement = db.prepare_cached(&[BatchRow::SELECT, "ORDER BY number"].concat())?;
    let (mut rows, mut found, mut sums) = (statement.query([])?, Vec::new(), Sums::default());
    while let Some(row) = rows.next()? {
        let loaded = load::<BatchRow>(row, &mut sums)?;
        found.push((loaded.record, loaded.sum));
    }
    Ok(found)
}

/// Encodes steps that follow a time, with times that rise strictly; returns the last one, too.
pub(super) fn encode(steps: &[Step], mut at: i64) -> (Bytes, i64) {
    let mut bytes = Vec::with_capacity(512 * steps.len());
    bytes.push(VERSION);
    (steps.len() as u64).write(&mut bytes);
    for step in steps {
        at = time_of(step, at);
        Time::from_nanos(at.cast_unsigned()).write(&mut bytes);
        step.ops.write(&mut bytes);
    }
    (bytes.into(), at)
}

/// Decodes the steps of a batch.
fn decode(row: &BatchRow) -> Result<Vec<Step>, FileProblem> {
    decode_steps(&row.steps).ok_or_else(|| FileProblem::damaged(format!("batch {} can't be decoded", row.number)))
}

/// Decodes steps; `None` if they are not as they were [encoded](encode).
pub(super) fn decode_steps(bytes: &Bytes) -> Option<Vec<Step>> {
    let mut source = Source::new(bytes);
    let steps = source.byte().filter(|version| *version == VERSION).and_then(|_| Vec::read(&mut source));
    steps.filter(|_| source.is_empty())
}

/// Returns the time of a step behind one of another time: no two steps have the same.
pub(super) fn time_of(step: &Step, before: i64) -> i64 {
    step.at.as_nanos().cast_signed().max(before + 1)
}

/// Returns the last epoch behind steps.
pub(super) fn epoch_behind(steps: &[Step], before: u32) -> u32 {
    steps.iter().flat_map(|step| &step.ops).filter_map(Op::number).map(epoch_of).fold(before, u32::max)
}

impl SqliteJournal {
    /// Writes steps: as a batch, or to the tables.
    pub(super) fn write_steps(&mut self, steps: &[Step]) -> Result<(), StoreError> {
        let few = self.batches.is_empty() && steps.len() <= FEW;
        let full = self.batches.steps + steps.len() > STEPS || self.batches.bytes > BYTES;
        self.transaction(|journal| {
            if few || full {
                return journal.feed_with(steps);
            }
            match encode(steps, journal.retain.now()) {
                // SQLite has a limit for a column.
                (bytes, _) if bytes.len() > BYTES => journal.feed_with(steps),
                (bytes, at) => journal.add_batch(steps, bytes, at),
            }
        })
    }

    /// Applies the steps of all batches to the tables.
    pub(super) fn feed_all(&mut self) -> Result<(), StoreError> {
        if self.batches.is_empty() {
            return Ok(());
        }
        self.transaction(|journal| journal.feed_with(&[]))
    }

    fn add_batch(&mut self, steps: &[Step], bytes: Bytes, at: i64) -> Result<Meta, FileProblem> {
        let Self { db, meta, batches, retain, sums, .. } = self;
        let row = BatchRow { number: batches.rows + 1, total: meta.total.wrapping_sub(batches.sum), steps: bytes };
        let sum = write(&mut *db.prepare_cached(BatchRow::INSERT)?, &row, at, sums)?;
        *batches = batches.with(steps.len(), row.steps.len(), sum);
        steps.last().into_iter().for_each(|step| retain.see(step.at));
        retain.go_on(at);
        let epoch = epoch_behind(steps, meta.epoch);
        Ok(Meta { total: meta.total.wrapping_add(sum), epoch, ..meta.clone() })
    }

    /// Applies the steps of all batches and these to the tables, and deletes the batches.
    fn feed_with(&mut self, steps: &[Step]) -> Result<Meta, FileProblem> {
        let Self { db, meta, known, batches, retain, room, sums, .. } = self;
        let fed = std::mem::take(batches);
        let meta = Meta { total: meta.total.wrapping_sub(fed.sum), ..meta.clone() };
        let mut apply = Apply::after(retain.now(), db, &meta, known, sums);
        if !fed.is_empty() {
            // Their times have been assigned.
            apply.at = 0;
            for (row, _) in rows(db)? {
                decode(&row)?.iter().try_for_each(|step| apply.step(step))?;
            }
            db.prepare_cached("DELETE FROM batch")?.execute([])?;
            apply.at = apply.at.max(retain.now());
        }
        steps.iter().try_for_each(|step| apply.step(step))?;
        let at = apply.at;
        steps.last().into_iter().for_each(|step| retain.see(step.at));
        apply.kept_from = retain.kept_from(at);
        let meta = apply.finish(&meta)?;
        Ok(meta.after(&retain.after(db, &mut known.weights, room, fed.steps + steps.len(), at)?))
    }
}
