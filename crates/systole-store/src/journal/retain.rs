//! Retention: ended rows are deleted after a while, a few at once, with the steps that come and while none come, so
//! that no step waits long for it.
//!
//! Past the bytes of retention the oldest rows of history are deleted before that. What a client over a network was
//! promised is never deleted early (see `weigh`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, params};
use systole_core::vocab::Time;

use super::Retention;
use super::mailbox::{delete_mail, note_gone};
use super::meta::Horizon;
use super::row::{Record, load, write};
use super::sum::Sums;
use super::weigh::{HISTORY, MAIL, Room, Weights, weight};
use crate::sqlite::FileProblem;

/// Steps between two sweeps.
const EVERY: usize = 64;

/// The most rows of a table that a sweep deletes: more than [`EVERY`] steps leave behind.
const ROWS: usize = 512;

/// Nanoseconds between two lines in the log about history that is deleted before its age.
const TELL: i64 = 60_000_000_000;

/// Tables of what clients were promised, with the keys of their rows.
const PROMISES: [(&str, &str, &str); 2] =
    [("egress", "number", weight!("egress")), ("submission", "id", weight!("submission"))];

/// Deletes statuses of messages in mailboxes; their rows in `mail` go with them.
const DELETE_MAIL: &str = "DELETE FROM mail_status WHERE seq IN \
     (SELECT seq FROM mail_status WHERE ended < ?1 ORDER BY ended LIMIT ?2) AND ended IS NOT NULL \
     RETURNING ended, seq, 256 + ifnull(octet_length(answer), 0)";

/// Result of one sweep.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// The number of rows.
    pub(super) rows: usize,
    /// The amount to add to the total of `meta`.
    pub(super) sum: i64,
    /// Time at which the last of the deleted rows ended.
    last: i64,
    /// True if promises were passed over, behind which there may be more.
    passed: bool,
}

/// Deletes ended rows that are past their retention.
#[derive(Debug)]
pub(super) struct Retain {
    retention: Retention,
    steps: usize,
    now: i64,
    /// Answers that ended before this time and are left are promises: they go with their age.
    promised_before: i64,
    early: Early,
    trust: Trust,
}

/// Rows that were deleted before their age, for the log.
#[derive(Debug, Default)]
struct Early {
    rows: usize,
    told: Option<i64>,
}

/// The date by which ages are judged. A clock may be wrong at a start, until the machine has asked another one: so a
/// date that is days ahead of the last one deletes nothing before it has stood for an hour. A date that goes back counts
/// at once.
#[derive(Debug)]
struct Trust {
    /// The last date that counted, also in an earlier start; by the last step if none did.
    date: i64,
    /// True if a clock has told that date since the journal was opened.
    is_seen: bool,
    /// The first of the dates that are ahead.
    ahead: Option<i64>,
}

impl Trust {
    /// Jump of the date that has to stand for a while.
    const JUMP: i64 = 24 * Self::WHILE;

    /// Time for which it has to stand.
    const WHILE: i64 = 3600 * 1_000_000_000;

    fn see(&mut self, date: i64) {
        let is_trusted = match self.ahead.filter(|ahead| date >= *ahead) {
            Some(ahead) => date - ahead >= Self::WHILE,
            // A new journal has nothing yet.
            None => date - self.date <= Self::JUMP || self.date == 0,
        };
        if is_trusted {
            *self = Self { date, is_seen: true, ahead: None };
        } else if self.ahead.is_none_or(|ahead| date < ahead) {
            tracing::warn!(at = %Time::from_nanos(date.cast_unsigned()), last = %Time::from_nanos(self.date.cast_unsigned()),
                "the date is days after the last one in the journal: nothing is deleted for its age within an hour");
            self.ahead = Some(date);
        }
    }
}

impl Retain {
    /// Starts at the time of the last step, with the last date that counted, 0 if none did. Steps of a start with a wrong clock
    /// have its times, so they can't tell the date to the next start.
    pub(super) fn new(retention: Retention, now: i64, trusted: i64) -> Self {
        let date = if trusted == 0 { now } else { trusted };
        let trust = Trust { date, is_seen: false, ahead: None };
        Self { retention, steps: 0, now, promised_before: i64::MIN, early: Early::default(), trust }
    }

    /// Interval of sweeps while no step comes: a tenth of the age, between 1 s and a minute.
    pub(super) fn interval(&self) -> Duration {
        (self.retention.age / 10).clamp(Duration::from_secs(1), Duration::from_secs(60))
    }

    /// The last date that counted.
    pub(super) fn trusted(&self) -> i64 {
        self.trust.date
    }

    /// Time of the last step.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// Notes the time of the last step.
    pub(super) fn go_on(&mut self, at: i64) {
        self.now = self.now.max(at);
    }

    /// Notes the date of the clock.
    pub(super) fn see(&mut self, date: Time) {
        self.trust.see(date.as_nanos().cast_signed());
    }

    /// Notes the date of the clock, and that an operator wants rows deleted by it.
    pub(super) fn trust(&mut self, date: Time) {
        self.trust = Trust { date: date.as_nanos().cast_signed(), is_seen: true, ahead: None };
    }

    /// Returns the time before which rows must have ended to be deleted by each sweep from a time on, whatever they
    /// weigh.
    pub(super) fn kept_from(&self, now: i64) -> i64 {
        let age = i64::try_from(self.retention.age.as_nanos()).unwrap_or(i64::MAX);
        match self.trust {
            // Rows that are kept for less are not waited for.
            _ if age < Trust::WHILE => now - age,
            Trust { date, is_seen: true, .. } => date.saturating_sub(age),
            // The times of steps may come from a wrong clock.
            Trust { is_seen: false, .. } => i64::MIN,
        }
    }

    /// Counts steps, the last of which was made at `at`, and sweeps after every [`EVERY`] of them.
    pub(super) fn after(
        &mut self,
        db: &Connection,
        weights: &mut Weights,
        room: &Arc<Room>,
        steps: usize,
        at: i64,
    ) -> Result<Swept, FileProblem> {
        self.go_on(at);
        self.steps += steps;
        let mut swept = Swept::default();
        while self.steps >= EVERY {
            self.steps -= EVERY;
            let more = self.sweep(db, weights, room)?;
            if !more.goes_on() {
                self.steps %= EVERY;
            }
            swept.add(&more);
        }
        Ok(swept)
    }

    /// Returns whether a row is past its retention at a time.
    pub(super) fn is_due(&mut self, db: &Connection, weights: &Weights, now: Time) -> Result<bool, FileProblem> {
        self.see(now);
        if self.is_heavy(weights) {
            return Ok(true);
        }
        let old = self.kept_from(self.now.max(now.as_nanos().cast_signed()));
        for (table, ..) in HISTORY.into_iter().chain(PROMISES) {
            if has_due(db, table, old)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Deletes some rows that are past their retention at a time.
    pub(super) fn sweep_at(
        &mut self,
        db: &Connection,
        weights: &mut Weights,
        room: &Arc<Room>,
        now: Time,
    ) -> Result<Swept, FileProblem> {
        self.see(now);
        self.now = self.now.max(now.as_nanos().cast_signed());
        self.sweep(db, weights, room)
    }

    fn sweep(&mut self, db: &Connection, weights: &mut Weights, room: &Arc<Room>) -> Result<Swept, FileProblem> {
        if weights.history().is_none() {
            weights.count(db, room)?;
        }
        let old = self.kept_from(self.now);
        let early = self.heavy_before(db, weights, old)?;
        let is_heavy = self.is_heavy(weights);
        let mut swept = Swept::default();
        for (table, key, weight) in HISTORY.into_iter().filter(|table| *table != MAIL) {
            delete(db, (table, key, weight, "''"), (i64::MIN, early), "[]", |_, ended, weight| {
                swept.row(ended);
                weights.ended(-weight);
            })?;
        }
        if has_due(db, MAIL.0, early)? {
            self.sweep_mail(db, early, weights, &mut swept)?;
        }
        let [egress, submission] = PROMISES.map(|(table, key, weight)| (table, key, weight, "client"));
        if early > old {
            let promised = serde_json::Value::from(weights.promised().collect::<Vec<_>>()).to_string();
            delete(db, egress, (self.promised_before, early), &promised, |client, ended, weight| {
                swept.row(ended);
                weights.answer(client, -weight, -weight);
            })?;
            // What is left is promised, and need not be looked at again.
            swept.passed = early > self.promised_before;
            self.promised_before = self.promised_before.max(early);
            self.tell(swept.rows, early);
        }
        delete(db, egress, (i64::MIN, old), "[]", |client, ended, weight| {
            swept.row(ended);
            weights.answer(client, -weight, -weight);
        })?;
        delete(db, submission, (i64::MIN, old), "[]", |client, ended, weight| {
            swept.row(ended);
            weights.submission(client, -weight);
        })?;
        if is_heavy && !swept.goes_on() {
            // Nothing makes up for what is too much: the sums are not those of the tables, or a promise no longer is one.
            weights.count(db, room)?;
            self.promised_before = i64::MIN;
        }
        if swept.rows > 0 {
            extend_horizon(db, swept.last, self.now, &mut Sums::default())?;
        }
        Ok(swept)
    }

    fn is_heavy(&self, weights: &Weights) -> bool {
        weights.history().is_some_and(|history| history > self.retention.bytes)
    }

    /// Returns the time before which rows of history must have ended to be deleted for what they weigh: by one time for
    /// all tables, so that the rows of one conversation go together, and as few as make up for what is too much.
    fn heavy_before(&self, db: &Connection, weights: &Weights, old: i64) -> Result<i64, FileProblem> {
        let over = weights.history().unwrap_or(0).saturating_sub(self.retention.bytes);
        if over == 0 {
            return Ok(old);
        }
        let promised: Vec<_> = weights.promised().collect();
        let tables = HISTORY.into_iter().chain([PROMISES[0]]);
        let sql = |(table, _, weight)| {
            let client = if table == "egress" { "client" } else { "''" };
            format!("SELECT ended, {weight}, {client} FROM {table} WHERE ended >= ?1 ORDER BY ended")
        };
        let mut statements = tables.map(|table| db.prepare_cached(&sql(table))).collect::<Result<Vec<_>, _>>()?;
        let last = statements.len() - 1;
        let mut oldest = Vec::new();
        for (table, statement) in statements.iter_mut().enumerate() {
            let from = if table == last { self.promised_before } else { i64::MIN };
            oldest.push((statement.query([from])?, 0));
        }
        let mut heads = Vec::new();
        for (rows, taken) in &mut oldest {
            heads.push(next(rows, taken, &promised)?);
        }
        let (mut before, mut found) = (old, 0);
        while found < over {
            // The oldest of all tables; one of which a sweep can't delete more ends the search.
            let first = heads.iter().enumerate().filter_map(|(table, head)| Some((table, (*head)?)));
            let Some((table, (ended, weight))) = first.min_by_key(|(_, (ended, _))| *ended) else { break };
            let (rows, taken) = &mut oldest[table];
            if *taken > ROWS {
                break;
            }
            found += weight;
            before = before.max(ended.saturating_add(1));
            heads[table] = next(rows, taken, &promised)?;
        }
        Ok(before)
    }

    /// Tells operators that history is shorter than its age.
    fn tell(&mut self, rows: usize, before: i64) {
        self.early.rows += rows;
        if self.early.rows > 0 && self.early.told.is_none_or(|told| self.now.saturating_sub(told) >= TELL) {
            tracing::warn!(
                rows = self.early.rows,
                ended_before = %Time::from_nanos(before.max(0).cast_unsigned()),
                bytes = self.retention.bytes,
                "history is deleted before its age, because it takes more bytes than retention.bytes"
            );
            self.early = Early { rows: 0, told: Some(self.now) };
        }
    }

    /// Deletes statuses and messages of mailboxes, and notes the greatest number that is deleted of each.
    fn sweep_mail(
        &self,
        db: &Connection,
        before: i64,
        weights: &mut Weights,
        swept: &mut Swept,
    ) -> Result<(), FileProblem> {
        let mut delete = db.prepare_cached(DELETE_MAIL)?;
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        let gone = delete.query_map(params![before, ROWS as i64], row)?;
        let mut marks = BTreeMap::new();
        for (ended, seq, weight) in gone.collect::<rusqlite::Result<Vec<_>>>()? {
            swept.row(ended);
            weights.ended(-weight);
            let seq = seq.cast_unsigned();
            if let Some((mailbox, envelope)) = delete_mail(db, seq)? {
                weights.ended(-envelope);
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
        self.passed |= more.passed;
    }

    /// Returns whether another sweep may find more.
    pub(super) fn goes_on(&self) -> bool {
        self.rows > 0 || self.passed
    }

    fn row(&mut self, ended: i64) {
        self.rows += 1;
        self.last = self.last.max(ended);
    }
}

/// Deletes at most [`ROWS`] rows of a table, oldest first: those that ended in a time, and are not of these clients. `each`
/// gets the client, the end and the weight.
fn delete(
    db: &Connection,
    (table, key, weight, client): (&str, &str, &str, &str),
    (from, before): (i64, i64),
    spared: &str,
    mut each: impl FnMut(&str, i64, i64),
) -> Result<(), FileProblem> {
    // Mostly no row is due, and a statement that deletes takes much longer to find that out.
    if !has_due(db, table, before)? {
        return Ok(());
    }
    // The statement checks the row itself, because a damaged index may be wrong.
    let columns = key.trim_matches(['(', ')']);
    let sql = format!(
        "DELETE FROM {table} WHERE {key} IN \
         (SELECT {columns} FROM {table} WHERE ended >= ?1 AND ended < ?2 \
         AND {client} NOT IN (SELECT value FROM json_each(?3)) ORDER BY ended LIMIT ?4) \
         AND ended IS NOT NULL RETURNING ended, {weight}, {client}"
    );
    let mut delete = db.prepare_cached(&sql)?;
    let mut rows = delete.query(params![from, before, spared, ROWS as i64])?;
    while let Some(row) = rows.next()? {
        each(&row.get::<_, Box<str>>(2)?, row.get(0)?, row.get(1)?);
    }
    Ok(())
}

/// Takes the next row of a table in order of its end: that, and its weight, unless it is promised.
fn next(
    rows: &mut rusqlite::Rows<'_>,
    taken: &mut usize,
    promised: &[&str],
) -> Result<Option<(i64, u64)>, FileProblem> {
    let Some(row) = rows.next()? else { return Ok(None) };
    *taken += 1;
    let weight = if promised.contains(&row.get_ref(2)?.as_str().unwrap_or_default()) { 0 } else { row.get(1)? };
    Ok(Some((row.get(0)?, u64::try_from(weight).unwrap_or(0))))
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
