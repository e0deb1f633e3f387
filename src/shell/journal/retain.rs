//! What is over goes after a while: a few rows at once, with the steps that come and while none come, so that no step
//! waits for it.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};
use systole_core::vocab::Time;

use super::Retention;
use super::mailbox::{delete_mail, note_gone};
use super::meta::Horizon;
use super::row::{Record, load, write};
use super::sum::Sums;
use crate::shell::sqlite::{Problem, used};

/// So many steps are written between two looks at what may go.
const EVERY: usize = 64;

/// At most so many rows of a table go at each look: more than so many steps leave behind.
const ROWS: i64 = 512;

/// What takes rows of a table that ended before a moment, oldest first. The row is asked again, because an index may
/// lie where a row does not.
const DELETE: [(&str, &str); 8] = [
    ("thread", "number"),
    ("message", "number"),
    ("fan", "(message, call)"),
    ("settled", "(message, call, place)"),
    ("note", "(message, place)"),
    ("remembered", "number"),
    ("egress", "number"),
    ("submission", "id"),
];

/// The same for statuses of messages in mailboxes, whose other row goes with them.
const DELETE_MAIL: &str = "DELETE FROM mail_status WHERE seq IN \
     (SELECT seq FROM mail_status WHERE ended < ?1 ORDER BY ended LIMIT ?2) AND ended IS NOT NULL RETURNING ended, seq";

/// Rows that one sweep deleted.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// The number of rows.
    pub(super) rows: usize,
    /// The amount to add to the total of `meta`.
    pub(super) sum: i64,
    /// Time at which the last of them ended.
    last: i64,
}

/// Sees to it that what is over goes.
#[derive(Debug)]
pub(super) struct Retain {
    retention: Retention,
    steps: usize,
    now: i64,
}

impl Retain {
    /// With the moment of the last step.
    pub(super) fn new(retention: Retention, now: i64) -> Self {
        Self { retention, steps: 0, now }
    }

    /// When the last step was made.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// Takes note of steps, the last of which was made at a moment, and deletes some of what has had its time.
    pub(super) fn after(&mut self, db: &Connection, steps: usize, at: i64) -> Result<Swept, Problem> {
        self.now = self.now.max(at);
        self.steps += steps;
        if self.steps < EVERY {
            return Ok(Swept::default());
        }
        self.steps = 0;
        self.sweep(db)
    }

    /// Whether something has had its time at a moment.
    pub(super) fn is_due(&self, db: &Connection, now: Time) -> Result<bool, Problem> {
        let before = self.before(db, self.now.max(now.as_nanos().cast_signed()))?;
        for table in DELETE.map(|(table, _)| table).into_iter().chain(["mail_status"]) {
            if has_due(db, table, before)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Deletes some of what has had its time at a moment.
    pub(super) fn sweep_at(&mut self, db: &Connection, now: Time) -> Result<Swept, Problem> {
        self.now = self.now.max(now.as_nanos().cast_signed());
        self.sweep(db)
    }

    /// What ended before this moment has had its time.
    fn before(&self, db: &Connection, now: i64) -> Result<i64, Problem> {
        let age = i64::try_from(self.retention.age.as_nanos()).unwrap_or(i64::MAX);
        Ok(if used(db)? > self.retention.bytes { i64::MAX } else { now.saturating_sub(age) })
    }

    fn sweep(&self, db: &Connection) -> Result<Swept, Problem> {
        let before = self.before(db, self.now)?;
        let mut swept = Swept::default();
        for (table, key) in DELETE {
            // Mostly nothing is, and a statement that deletes takes much longer to say so.
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
        if swept.rows > 0 && swept.last > horizon(db, &mut Sums::default())? {
            write(&mut *db.prepare_cached(Horizon::REPLACE)?, &Horizon(swept.last), self.now, &mut Sums::default())?;
        }
        Ok(swept)
    }

    /// Messages of mailboxes leave a mark of the place up to which some are forgotten.
    fn sweep_mail(&self, db: &Connection, before: i64, swept: &mut Swept) -> Result<(), Problem> {
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
    fn row(&mut self, ended: i64) {
        self.rows += 1;
        self.last = self.last.max(ended);
    }
}

/// Whether rows of a table ended before a moment.
fn has_due(db: &Connection, table: &str, before: i64) -> Result<bool, Problem> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE ended < ?1)");
    Ok(db.prepare_cached(&sql)?.query_row([before], |row| row.get(0))?)
}

/// The moment up to which rows that are over may be missing.
pub(super) fn horizon(db: &Connection, sums: &mut Sums) -> Result<i64, Problem> {
    let mut statement = db.prepare_cached(Horizon::SELECT)?;
    let mut rows = statement.query([])?;
    Ok(match rows.next()? {
        Some(row) => load::<Horizon>(row, sums)?.record.0,
        None => 0,
    })
}
