//! New sums for the rows of an earlier version, in the transaction of its migration.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use systole_core::journal::{
    AddresseeRecord, AgentRecord, BudgetRecord, EgressRecord, LetterRecord, MailRecord, MessageRecord, NoteRecord,
    RememberedRecord, StateRecord, SubmissionRecord, TaskRecord, ThreadRecord,
};

use super::fan::{FanRow, SettledRow};
use super::mail::{Gone, StatusRow, TakenOver};
use super::meta::Horizon;
use super::principal::PrincipalRow;
use super::records::Redrive;
use super::row::Record;
use super::schema::{PARTED, TIMED};
use super::sum::Sums;
use crate::runtime::sqlite::FileProblem;

/// Replaces the sums of all rows of a file of that version, whose tables are migrated. Returns the change of the total
/// of `meta`: an error in the total stays as large.
///
/// # Errors
/// [`FileProblem::Damaged`] if an open row differs from the written one. An ended one keeps the difference in its new
/// sum, so that a check finds it as before.
pub(super) fn resum(db: &Connection, version: i64) -> Result<i64, FileProblem> {
    let added_up = [
        table::<ThreadRecord>(db, version)?,
        table::<MessageRecord>(db, version)?,
        table::<FanRow>(db, version)?,
        table::<SettledRow>(db, version)?,
        table::<NoteRecord>(db, version)?,
        table::<RememberedRecord>(db, version)?,
        table::<BudgetRecord>(db, version)?,
        table::<EgressRecord>(db, version)?,
        table::<LetterRecord>(db, version)?,
        table::<Redrive>(db, version)?,
        table::<TaskRecord>(db, version)?,
        table::<StateRecord>(db, version)?,
        table::<MailRecord>(db, version)?,
        table::<StatusRow>(db, version)?,
        table::<Gone>(db, version)?,
        table::<AgentRecord>(db, version)?,
        table::<AddresseeRecord>(db, version)?,
        table::<SubmissionRecord>(db, version)?,
        table::<TakenOver>(db, version)?,
    ];
    // These are in no total.
    table::<PrincipalRow>(db, version)?;
    table::<Horizon>(db, version)?;
    Ok(added_up.into_iter().fold(0, i64::wrapping_add))
}

/// Replaces the sums of one table by a single statement, whose function sees each row.
fn table<R: Record>(db: &Connection, version: i64) -> Result<i64, FileProblem> {
    let work = Arc::new(Mutex::new(Resum {
        // The statements of version 6 have brought older sums to that version.
        old: Sums::of(PARTED - 1),
        new: Sums::default(),
        untimed: version < TIMED,
        change: 0,
        damaged: None,
    }));
    let own = work.clone();
    let resum = move |row: &Context<'_>| lock(&own).row::<R>(row);
    db.create_scalar_function("resum", -1, FunctionFlags::SQLITE_UTF8, resum)?;
    let sql = format!("UPDATE {} SET sum = resum({}, sum, at, {})", R::TABLE, R::NAMES, R::ENDED);
    let done = db.execute(&sql, []);
    let Resum { change, damaged, .. } = &mut *lock(&work);
    damaged.take().map_or(Ok(()), |what| Err(FileProblem::damaged(what)))?;
    done?;
    Ok(*change)
}

fn lock(work: &Mutex<Resum>) -> MutexGuard<'_, Resum> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Resum {
    old: Sums,
    new: Sums,
    /// True if the sums in the total of `meta` don't cover the times of rows.
    untimed: bool,
    change: i64,
    damaged: Option<String>,
}

impl Resum {
    /// Computes the new sum of a row: its columns, `sum`, `at`, and the time at which it ended.
    fn row<R: Record>(&mut self, row: &Context<'_>) -> rusqlite::Result<i64> {
        let (sum, at, ended) =
            (row.get::<i64>(R::COLUMNS)?, row.get(R::COLUMNS + 1)?, row.get::<Option<i64>>(R::COLUMNS + 2)?);
        let compute = |sums: &mut Sums| {
            let covered = sums.covered::<R>();
            sums.sum::<R, rusqlite::Error>((at, ended), |columns| {
                (0..covered).for_each(|column| columns.add(row.get_raw(column)));
                Ok(())
            })
        };
        let (expected, new) = (compute(&mut self.old)?, compute(&mut self.new)?);
        if ended.is_some() {
            return Ok(new ^ expected ^ sum);
        }
        if expected != sum {
            let what = format!("a row of table {} is not as it was written", R::TABLE);
            self.damaged = Some(what.clone());
            return Err(rusqlite::Error::UserFunctionError(what.into()));
        }
        let before = if self.untimed { sum ^ at } else { sum };
        self.change = self.change.wrapping_add(new).wrapping_sub(before);
        Ok(new)
    }
}
