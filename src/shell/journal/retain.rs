//! What is over goes after a while: a few rows with each transaction, so that no step waits for it.

use rusqlite::{Connection, params};

use super::Retention;
use crate::journal::Step;
use crate::shell::sqlite::{Problem, used};
use crate::vocab::Time;

/// So many steps are written between two looks at what may go.
const EVERY: usize = 64;

/// At most so many rows of a table go at each look: more than so many steps leave behind.
const ROWS: i64 = 512;

/// What takes rows of a table that ended before a moment, oldest first. The row is asked again, because an index may
/// lie where a row does not.
const DELETE: [(&str, &str); 6] = [
    ("thread", "number"),
    ("message", "number"),
    ("fan", "(message, call)"),
    ("settled", "(message, call, place)"),
    ("note", "(message, place)"),
    ("egress", "number"),
];

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

    /// Takes note of steps, and deletes what has had its time.
    pub(super) fn after(&mut self, db: &Connection, steps: &[Step]) -> Result<(), Problem> {
        let last = steps.iter().map(|step| step.at.as_nanos().cast_signed()).max().unwrap_or_default();
        self.now = self.now.max(last);
        self.steps += steps.len();
        if self.steps < EVERY {
            return Ok(());
        }
        self.steps = 0;
        self.sweep(db).map(drop)
    }

    /// Deletes some of what has had its time at a moment; how many rows went.
    pub(super) fn sweep_at(&mut self, db: &Connection, now: Time) -> Result<usize, Problem> {
        self.now = self.now.max(now.as_nanos().cast_signed());
        self.sweep(db)
    }

    fn sweep(&self, db: &Connection) -> Result<usize, Problem> {
        let age = i64::try_from(self.retention.age.as_nanos()).unwrap_or(i64::MAX);
        let before = if used(db)? > self.retention.bytes { i64::MAX } else { self.now.saturating_sub(age) };
        let mut gone = 0;
        for (table, key) in DELETE {
            let sql = format!(
                "DELETE FROM {table} WHERE {key} IN \
                 (SELECT {} FROM {table} WHERE ended < ?1 ORDER BY ended LIMIT ?2) AND ended IS NOT NULL",
                key.trim_matches(['(', ')'])
            );
            gone += db.prepare_cached(&sql)?.execute(params![before, ROWS])?;
        }
        Ok(gone)
    }
}
