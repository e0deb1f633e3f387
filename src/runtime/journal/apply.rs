//! Steps as statements, within a transaction that the caller opens and ends.

use rusqlite::{Connection, ErrorCode, Params, Row, params_from_iter};
use systole_core::journal::{FanOutcome, MessageRecord, Number, Op, Step, ThreadRecord, epoch_of};
use systole_core::vocab::ThreadId;
use uuid::Uuid;

use super::meta::Meta;
use super::recover::Known;
use super::row::{Loaded, Record, load, write};
use super::sum::Sums;
use crate::runtime::sqlite::FileProblem;

/// Statements that read the sums (and more) of the open rows of a key, and end them at the time of a parameter: the sum
/// covers that time, and `a ^ b` is `(a | b) - (a & b)`.
macro_rules! over {
    (set $at:literal) => {
        concat!("ended = ", $at, ", sum = (sum | ", $at, ") - (sum & ", $at, ")")
    };
    ($table:literal, $key:literal, $at:literal) => {
        over!($table, "", $key, $at, "")
    };
    ($table:literal, $more:literal, $key:literal, $at:literal) => {
        over!($table, $more, $key, $at, "")
    };
    ($table:literal, $more:literal, $key:literal, $at:literal, $set:literal) => {
        (
            concat!("SELECT sum", $more, " FROM ", $table, " WHERE ended IS NULL AND ", $key),
            concat!("UPDATE ", $table, " SET ", over!(set $at), $set, " WHERE ended IS NULL AND ", $key),
        )
    };
}
pub(super) use over;

/// Statements for rows that are deleted when they end.
macro_rules! gone {
    ($table:literal, $key:literal) => {
        (concat!("SELECT sum FROM ", $table, " WHERE ", $key), concat!("DELETE FROM ", $table, " WHERE ", $key))
    };
}

/// Applies steps to the tables.
pub(super) struct Apply<'a> {
    pub(super) db: &'a Connection,
    /// The sum of the sums of all open rows.
    pub(super) total: i64,
    /// The last epoch.
    epoch: u32,
    pub(super) known: &'a mut Known,
    pub(super) sums: &'a mut Sums,
    /// Time of the last step, in nanoseconds. No two steps have the same time, so that rows tell the state of a
    /// conversation between any two.
    pub(super) at: i64,
}

const DELETE_TASK: &str = "DELETE FROM task WHERE inbox = ?1 AND id = ?2 RETURNING sum";

impl<'a> Apply<'a> {
    /// Continues after a step of that time.
    pub(super) fn after(at: i64, db: &'a Connection, meta: &Meta, known: &'a mut Known, sums: &'a mut Sums) -> Self {
        Self { db, total: meta.total, epoch: meta.epoch, known, sums, at }
    }

    /// Returns the row of `meta` behind the steps.
    pub(super) fn meta(&self, before: &Meta) -> Meta {
        Meta { total: self.total, epoch: self.epoch, ..before.clone() }
    }

    pub(super) fn step(&mut self, step: &Step) -> Result<(), FileProblem> {
        self.at = step.at.as_nanos().cast_signed().max(self.at + 1);
        let epochs = step.ops.iter().filter_map(Op::number).map(epoch_of);
        self.epoch = epochs.fold(self.epoch, u32::max);
        step.ops.iter().try_for_each(|op| self.op(op))?;
        // Whether a conversation stays open is known at the end of the step.
        step.ops.iter().try_for_each(|op| match op {
            Op::Submitted(submission) => self.submitted(submission, self.at),
            _ => Ok(()),
        })
    }

    fn op(&mut self, op: &Op) -> Result<(), FileProblem> {
        match op {
            Op::Open(thread) => {
                if thread.root == thread.number {
                    self.known.roots.insert(thread.id);
                }
                self.put(thread, [thread.number.cast_signed()])
            }
            Op::Owes { thread, opened_by, origin } => self.with_thread(*thread, |thread| {
                (thread.opened_by, thread.origin) = (*opened_by, *origin);
            }),
            Op::Left { thread } => self.with_thread(*thread, |thread| thread.left = true),
            Op::Close { thread } => self.close(*thread),
            Op::Budget(budget) => self.budget(budget),
            Op::Put(message) => self.put(message, [message.number.cast_signed()]),
            Op::Done { message } => {
                self.end_message(*message, over!("message", "", "number = ?1", "?2", ", ending = 'done'"))
            }
            Op::Cancelled { message } => {
                self.end_message(*message, over!("message", "", "number = ?1", "?2", ", ending = 'cancelled'"))
            }
            Op::Attempt { message, attempts } => self.attempt(*message, *attempts),
            Op::Fan(fan) => self.open_fan(fan),
            Op::Delivered { fan, count } => self.with_fan(*fan, |fan| fan.delivered = *count),
            Op::CountedOff { fan, count } => self.with_fan(*fan, |fan| fan.counted_off = *count),
            Op::Settled { fan, settled } => self.settle(*fan, settled),
            Op::Decided { fan, order, result } => {
                let outcome = FanOutcome::Decided { order: *order, result: result.clone() };
                self.conclude(*fan, &outcome)
            }
            Op::Dropped { fan } => self.conclude(*fan, &FanOutcome::Dropped),
            Op::Forgotten { fan } => self.forget_fan(*fan),
            // A note that comes from elsewhere than the message's own shard may arrive after the message has ended.
            Op::Note(note) if !self.waits(note.message)? => Ok(()),
            Op::Note(note) => {
                self.known.noted.insert(note.message);
                self.put(note, [note.message.cast_signed(), note.index.into()])
            }
            Op::Remember(entry) => {
                self.known.holding.insert(entry.thread);
                self.put(entry, [entry.number.cast_signed()])
            }
            Op::Forget { thread, before } => {
                let before = i64::try_from(*before).unwrap_or(i64::MAX);
                let forget = over!("remembered", "thread = ?1 AND number < ?2", "?3");
                self.end(forget, &[thread.cast_signed(), before])
            }
            Op::Leave(egress) => self.put(egress, [egress.number.cast_signed()]),
            Op::Read { egress } => self.end(over!("egress", "number = ?1", "?2"), &[egress.cast_signed()]),
            Op::Bury(letter) => self.put(letter, [letter.number.cast_signed()]),
            Op::Task(task) => {
                self.take(DELETE_TASK, (task.inbox.as_str(), &task.id.as_uuid().as_bytes()[..]))?;
                self.insert(task)
            }
            Op::TaskGone { inbox, id } => self.take(DELETE_TASK, (inbox.as_str(), &id.as_uuid().as_bytes()[..])),
            Op::State(state) => {
                self.take("DELETE FROM state WHERE listener = ?1 RETURNING sum", [state.listener.as_str()])?;
                self.insert(state)
            }
            Op::Mail(mail, status) => self.mail(mail, status),
            Op::MailStatus { seq, status } => self.mail_status(*seq, status),
            Op::MailMoved { from, to, status } => self.mail_moved(*from, *to, status),
            Op::MailGone { seq } => self.mail_gone(*seq),
            Op::Agent(agent) => self.agent(agent),
            Op::Addressee(addressee) => self.addressee(addressee),
            Op::Submitted(_) => Ok(()),
            Op::Unmark { letter } => self.end(gone!("requeue", "letter = ?1"), &[letter.cast_signed()]),
            Op::Unbury { letter } => {
                self.end(gone!("letter", "number = ?1"), &[letter.cast_signed()])?;
                self.end(gone!("requeue", "letter = ?1"), &[letter.cast_signed()])
            }
        }
    }

    /// Writes a row, replacing one of the same key.
    pub(super) fn put<R: Record, const KEYS: usize>(&mut self, record: &R, key: [i64; KEYS]) -> Result<(), FileProblem>
    where
        [i64; KEYS]: Params,
    {
        match write(&mut *self.db.prepare_cached(R::INSERT)?, record, self.at, self.sums) {
            Ok(sum) => self.total = self.total.wrapping_add(sum),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                let (old, at) = self
                    .db
                    .prepare_cached(R::REPLACED)?
                    .query_row(key, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
                let sum = write(&mut *self.db.prepare_cached(R::REPLACE)?, record, at, self.sums)?;
                self.total = self.total.wrapping_sub(old).wrapping_add(sum);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Writes a row whose key is free.
    pub(super) fn insert<R: Record>(&mut self, record: &R) -> Result<(), FileProblem> {
        let sum = write(&mut *self.db.prepare_cached(R::INSERT)?, record, self.at, self.sums)?;
        self.total = self.total.wrapping_add(sum);
        Ok(())
    }

    /// Deletes rows by a statement that returns their sums.
    pub(super) fn take(&mut self, sql: &str, params: impl Params) -> Result<(), FileProblem> {
        let mut statement = self.db.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        while let Some(row) = rows.next()? {
            self.total = self.total.wrapping_sub(row.get(0)?);
        }
        Ok(())
    }

    /// Ends or deletes the rows of a key.
    pub(super) fn end(&mut self, statements: (&str, &str), key: &[i64]) -> Result<(), FileProblem> {
        self.end_each(statements, key, |_| Ok(()))
    }

    /// Ends or deletes the rows of a key, after `each` has read them. Reading first is faster: mostly there is no row
    /// or one, and for an update that returns rows SQLite opens a table of its own.
    fn end_each(
        &mut self,
        (select, change): (&str, &str),
        key: &[i64],
        mut each: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), FileProblem> {
        let mut found = false;
        {
            let mut select = self.db.prepare_cached(select)?;
            let mut rows = select.query(params_from_iter(key))?;
            while let Some(row) = rows.next()? {
                self.total = self.total.wrapping_sub(row.get(0)?);
                each(row)?;
                found = true;
            }
        }
        if found {
            let mut change = self.db.prepare_cached(change)?;
            let at = (change.parameter_count() > key.len()).then_some(&self.at);
            change.execute(params_from_iter(key.iter().chain(at)))?;
        }
        Ok(())
    }

    /// Tells whether a message is still open.
    fn waits(&self, message: Number) -> Result<bool, FileProblem> {
        let sql = "SELECT 1 FROM message WHERE number = ?1 AND ended IS NULL";
        Ok(self.db.prepare_cached(sql)?.exists([message.cast_signed()])?)
    }

    /// Reads the row that matches a condition.
    pub(super) fn find<R: Record>(&mut self, sql: &str, params: impl Params) -> Result<Option<Loaded<R>>, FileProblem> {
        let mut statement = self.db.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        rows.next()?.map(|row| load(row, self.sums)).transpose()
    }

    pub(super) fn replace<R: Record>(&mut self, old: i64, at: i64, record: &R) -> Result<(), FileProblem> {
        let sum = write(&mut *self.db.prepare_cached(R::REPLACE)?, record, at, self.sums)?;
        self.total = self.total.wrapping_sub(old).wrapping_add(sum);
        Ok(())
    }

    fn with_thread(&mut self, thread: Number, change: impl FnOnce(&mut ThreadRecord)) -> Result<(), FileProblem> {
        let sql = [ThreadRecord::SELECT, "WHERE number = ?1 AND ended IS NULL"].concat();
        let Some(mut found) = self.find::<ThreadRecord>(&sql, [thread.cast_signed()])? else { return Ok(()) };
        change(&mut found.record);
        self.replace(found.sum, found.at, &found.record)
    }

    fn attempt(&mut self, message: Number, attempts: u32) -> Result<(), FileProblem> {
        let sql = [MessageRecord::SELECT, "WHERE number = ?1 AND ended IS NULL"].concat();
        let Some(mut found) = self.find::<MessageRecord>(&sql, [message.cast_signed()])? else { return Ok(()) };
        found.record.attempts = attempts;
        self.replace(found.sum, found.at, &found.record)
    }

    fn close(&mut self, thread: Number) -> Result<(), FileProblem> {
        let key = &[thread.cast_signed()];
        let mut root = None;
        self.end_each(over!("thread", ", iif(root = number, id, NULL)", "number = ?1", "?2"), key, |row| {
            root = row.get::<_, Option<[u8; 16]>>(1)?.map(|id| ThreadId::from_uuid(Uuid::from_bytes(id)));
            Ok(())
        })?;
        if let Some(root) = root {
            self.known.roots.remove(&root);
            self.end_submissions(root, self.at)?;
        }
        self.end_budget(thread)?;
        let mut messages = Vec::new();
        let cancel = over!("message", ", number", "thread = ?1", "?2", ", ending = 'cancelled'");
        self.end_each(cancel, key, |row| {
            messages.push(row.get::<_, i64>(1)?.cast_unsigned());
            Ok(())
        })?;
        messages.into_iter().try_for_each(|message| self.forget_notes(message))?;
        if !self.known.holding.remove(&thread) {
            return Ok(());
        }
        let mut fans = Vec::new();
        self.end_each(over!("fan", ", message, call", "thread = ?1", "?2"), key, |row| {
            fans.push((row.get(1)?, row.get(2)?));
            Ok(())
        })?;
        fans.into_iter().try_for_each(|(message, call)| self.end_settled(message, call))?;
        self.end(over!("remembered", "thread = ?1", "?2"), key)
    }

    fn end_message(&mut self, message: Number, statements: (&str, &str)) -> Result<(), FileProblem> {
        self.end(statements, &[message.cast_signed()])?;
        self.forget_notes(message)
    }

    /// Ends the notes and awaited calls of a message; calls of its response outlive it.
    fn forget_notes(&mut self, message: Number) -> Result<(), FileProblem> {
        if !self.known.noted.remove(&message) {
            return Ok(());
        }
        let key = &[message.cast_signed()];
        self.end(over!("note", "message = ?1", "?2"), key)?;
        self.end(over!("fan", "message = ?1 AND requests IS NOT NULL", "?2"), key)?;
        self.end(over!("settled", "message = ?1", "?2"), key)
    }
}
