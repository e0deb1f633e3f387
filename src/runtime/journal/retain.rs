//! Retention: ended rows are deleted after a while, a few at once, with the steps that come and while none come, so
//! that no step waits long for it.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use systole_core::vocab::Time;

use super::Retention;
use super::mailbox::{delete_mail, note_gone};
use super::meta::Horizon;
use super::row::{Record, load, write};
use super::sum::Sums;
use crate::runtime::sqlite::{FileProblem, used};

/// Steps between two sweeps.
const EVERY: usize = 64;

/// The most rows of a table that a sweep deletes: more than [`EVERY`] steps leave behind.
const ROWS: i64 = 512;

/// Tables and keys whose rows are deleted once they ended before a time, oldest first. The statement checks the row
/// itself, because a damaged index may be wrong.
const DELETE: [(&str, &str); 9] = [
    ("thread", "number"),
    ("budget", "thread"),
    ("message", "number"),
    ("fan", "(message, call)"),
    ("settled", "(message, call, place)"),
    ("note", "(message, place)"),
    ("remembered", "number"),
    ("egress", "number"),
    ("submission", "id"),
];

/// Deletes statuses of messages in mailboxes; their rows in `mail` go with them.
const DELETE_MAIL: &str = "DELETE FROM mail_status WHERE seq IN \
     (SELECT seq FROM mail_status WHERE ended < ?1 ORDER BY ended LIMIT ?2) AND ended IS NOT NULL RETURNING ended, seq";

/// Result of one sweep.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// The number of rows.
    pub(super) rows: usize,
    /// The amount to add to the total of `meta`.
    pub(super) sum: i64,
    /// Time at which the last of the deleted rows ended.
    last: i64,
}

/// Deletes ended rows that are past their retention.
#[derive(Debug)]
pub(super) struct Retain {
    retention: Retention,
    steps: usize,
    now: i64,
}

impl Retain {
    /// Starts at the time of the last step.
    pub(super) fn new(retention: Retention, now: i64) -> Self {
        Self { retention, steps: 0, now }
    }

    /// Time of the last step.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// Notes the time of the last step.
    pub(super) fn go_on(&mut self, at: i64) {
        self.now = self.now.max(at);
    }

    /// Returns the time before which rows must have ended to be deleted by each sweep from a time on, whatever the size of
    /// the file.
    pub(super) fn kept_from(&self, now: i64) -> i64 {
        now.saturating_sub(i64::try_from(self.retention.age.as_nanos()).unwrap_or(i64::MAX))
    }

    /// Counts steps, the last of which was made at `at`, and sweeps after every [`EVERY`] of them.
    pub(super) fn after(&mut self, db: &Connection, steps: usize, at: i64) -> Result<Swept, FileProblem> {
        self.go_on(at);
        self.steps += steps;
        let mut swept = Swept::default();
        while self.steps >= EVERY {
            self.steps -= EVERY;
            let more = self.sweep(db)?;
            if more.rows == 0 {
                self.steps %= EVERY;
            }
            swept.add(&more);
        }
        Ok(swept)
    }

    /// Returns whether a row is past its retention at a time.
    pub(super) fn is_due(&self, db: &Connection, now: Time) -> Result<bool, FileProblem> {
        let before = self.before(db, self.now.max(now.as_nanos().cast_signed()))?;
        for table in tables() {
            if has_due(db, table, before)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Deletes some rows that are past their retention at a time.
    pub(super) fn sweep_at(&mut self, db: &Connection, now: Time) -> Result<Swept, FileProblem> {
        self.now = self.now.max(now.as_nanos().cast_signed());
        self.sweep(db)
    }

    /// Returns the time before which rows must have ended to be deleted. In a file that is too large this is the time up
    /// to which a sweep can empty each table, so that the rows of one conversation go together, although some tables
    /// have more of them.
    fn before(&self, db: &Connection, now: i64) -> Result<i64, FileProblem> {
        let old = self.kept_from(now);
        if used(db)? <= self.retention.bytes {
            return Ok(old);
        }
        let reach = tables().map(|table| reach(db, table)).collect::<Result<Vec<_>, _>>()?;
        Ok(reach.into_iter().min().map_or(old, |reach| reach.max(old)))
    }

    fn sweep(&self, db: &Connection) -> Result<Swept, FileProblem> {
        let before = self.before(db, self.now)?;
        let mut swept = Swept::default();
        for (table, key) in DELETE {
            // Mostly no row is due, and a statement that deletes takes much longer to find that out.
            if !has_due(db, table, before)? {
                continue;
            }
            let sql = format!(
                "DELETE FROM {table} WHERE {key} IN \
                 (SELECT {} FROM {table} WHERE ended < ?1 ORDER BY ended LIMIT ?2) AND ended IS NOT NULL \
                 RETURNING ended",
                key.trim_matches(['(', ')'])
            );
            let mut delete = db.prepare_cached(&sql)?;
            let mut rows = delete.query(params![before, ROWS])?;
            while let Some(row) = rows.next()? {
                swept.row(row.get(0)?);
            }
        }
        if has_due(db, "mail_status", before)? {
            self.sweep_mail(db, before, &mut swept)?;
        }
        if swept.rows > 0 {
            extend_horizon(db, swept.last, self.now, &mut Sums::default())?;
        }
        Ok(swept)
    }

    /// Deletes statuses and messages of mailboxes, and notes the greatest number that is deleted of each.
    fn sweep_mail(&self, db: &Connection, before: i64, swept: &mut Swept) -> Result<(), FileProblem> {
        let mut delete = db.prepare_cached(DELETE_MAIL)?;
        let gone = delete.query_map(params![before, ROWS], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))?;
        let mut marks = BTreeMap::new();
        for (ended, seq) in gone.collect::<rusqlite::Result<Vec<_>>>()? {
            swept.row(ended);
            let seq = seq.cast_unsigned();
            if let Some(mailbox) = delete_mail(db, seq)? {
                let mark = marks.entry(mailbox).or_insert(seq);
                *mark = seq.max(*mark);
            }
        }
        for (mailbox, seq) in marks {
            let change = note_gone(db, &mailbox, (seq, seq), self.now, &mut Sums::default())?;
            swept.sum = swept.sum.wrapping_add(change);
        }
        Ok(())
    }
}

impl Swept {
    fn add(&mut self, more: &Self) {
        self.rows += more.rows;
        self.sum = self.sum.wrapping_add(more.sum);
        self.last = self.last.max(more.last);
    }

    fn row(&mut self, ended: i64) {
        self.rows += 1;
        self.last = self.last.max(ended);
    }
}

/// The tables of ended rows.
fn tables() -> impl Iterator<Item = &'static str> {
    DELETE.into_iter().map(|(table, _)| table).chain(["mail_status"])
}

/// Returns the time before which a sweep deletes all ended rows of a table, or as many as it may.
fn reach(db: &Connection, table: &str) -> Result<i64, FileProblem> {
    let sql = format!("SELECT ended FROM {table} WHERE ended IS NOT NULL ORDER BY ended LIMIT 1 OFFSET ?1");
    let last = db.prepare_cached(&sql)?.query_row([ROWS - 1], |row| row.get::<_, i64>(0)).optional()?;
    Ok(last.map_or(i64::MAX, |ended| ended.saturating_add(1)))
}

/// Returns whether rows of a table ended before a time.
fn has_due(db: &Connection, table: &str, before: i64) -> Result<bool, FileProblem> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE ended < ?1)");
    Ok(db.prepare_cached(&sql)?.query_row([before], |row| row.get(0))?)
}

/// Notes that rows which ended by a time may be missing.
pub(super) fn extend_horizon(db: &Connection, last: i64, now: i64, sums: &mut Sums) -> Result<(), FileProblem> {
    if last > horizon(db, sums)? {
        write(&mut *db.prepare_cached(Horizon::REPLACE)?, &Horizon(last), now, sums)?;
    }
    Ok(())
}

/// Returns the time up to which ended rows may be missing.
pub(super) fn horizon(db: &Connection, sums: &mut Sums) -> Result<i64, FileProblem> {
    let mut statement = db.prepare_cached(Horizon::SELECT)?;
    let mut rows = statement.query([])?;
    Ok(match rows.next()? {
        Some(row) => load::<Horizon>(row, sums)?.record.0,
        None => 0,
    })
}
