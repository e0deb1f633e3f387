//! Steps as changes of pending rows, or as statements for rows of tables, within a transaction that the caller opens and
//! ends.

use rusqlite::{Connection, ErrorCode, OptionalExtension, Params, Row as SqlRow, params_from_iter};
use systole_core::journal::{
    ActRecord, BudgetRecord, EgressRecord, FanOutcome, MessageRecord, NoteRecord, Number, Op, PausedRecord,
    RememberedRecord, Step, ThreadRecord,
};
use systole_core::vocab::ThreadId;
use uuid::Uuid;

use super::batch::{epoch_behind, time_of};
use super::fan::{FanRow, SettledRow};
use super::meta::Meta;
use super::pending::{Kept, Row, of_message};
use super::records::ActRow;
use super::recover::Known;
use super::retain::extend_horizon;
use super::row::{Loaded, Record, load, write, write_final};
use super::sum::Sums;
use super::weigh::weight;
use crate::sqlite::FileProblem;

/// Statements that read the sums and weights (and more) of the open rows of a key, and end them at the time of a parameter: the sum
/// covers that time, and `a ^ b` is `(a | b) - (a & b)`.
macro_rules! over {
    (set $at:literal) => {
        concat!("ended = ", $at, ", sum = (sum | ", $at, ") - (sum & ", $at, ")")
    };
    ($table:tt, $key:literal, $at:literal) => {
        over!($table, "", $key, $at, "")
    };
    ($table:tt, $more:literal, $key:literal, $at:literal) => {
        over!($table, $more, $key, $at, "")
    };
    ($table:tt, $more:literal, $key:literal, $at:literal, $set:literal) => {
        (
            concat!("SELECT sum, ", $crate::journal::weigh::weight!($table), $more, " FROM ", $table, " WHERE ended IS NULL AND ", $key),
            concat!("UPDATE ", $table, " SET ", over!(set $at), $set, " WHERE ended IS NULL AND ", $key),
        )
    };
}
pub(super) use over;

/// Statements for rows that are deleted when they end.
macro_rules! gone {
    ($table:literal, $key:literal) => {
        (concat!("SELECT sum, 0 FROM ", $table, " WHERE ", $key), concat!("DELETE FROM ", $table, " WHERE ", $key))
    };
}

/// Applies steps to the tables.
pub(super) struct Apply<'a> {
    pub(super) db: &'a Connection,
    /// The sum of the sums of all open rows of the tables.
    pub(super) total: i64,
    /// The last epoch.
    epoch: u32,
    pub(super) known: &'a mut Known,
    pub(super) sums: &'a mut Sums,
    /// Time of the last step, in nanoseconds. No two steps have the same time, so that rows tell the state of a
    /// conversation between any two.
    pub(super) at: i64,
    /// Acts of the step so far.
    acts: u32,
    /// Pending rows that ended before this time are not written: the next sweep would delete them.
    pub(super) kept_from: i64,
    /// Time at which the last of the rows that were not written ended.
    unwritten: Option<i64>,
}

const DELETE_TASK: &str = "DELETE FROM task WHERE inbox = ?1 AND id = ?2 RETURNING sum";

impl<'a> Apply<'a> {
    /// Continues after a step of that time.
    pub(super) fn after(at: i64, db: &'a Connection, meta: &Meta, known: &'a mut Known, sums: &'a mut Sums) -> Self {
        Self {
            db,
            total: meta.total,
            epoch: meta.epoch,
            known,
            sums,
            at,
            acts: 0,
            kept_from: i64::MIN,
            unwritten: None,
        }
    }

    /// Writes the pending rows, and returns the row of `meta` behind the steps.
    pub(super) fn finish(mut self, before: &Meta) -> Result<Meta, FileProblem> {
        self.write_all::<ThreadRecord>()?;
        self.write_all::<BudgetRecord>()?;
        self.write_all::<MessageRecord>()?;
        self.write_all::<FanRow>()?;
        self.write_all::<SettledRow>()?;
        self.write_all::<NoteRecord>()?;
        self.write_all::<RememberedRecord>()?;
        self.write_all::<EgressRecord>()?;
        if let Some(last) = self.unwritten {
            extend_horizon(self.db, last, self.at, self.sums)?;
        }
        Ok(Meta { total: self.total, epoch: self.epoch, ..before.clone() })
    }

    fn write_all<R: Kept>(&mut self) -> Result<(), FileProblem> {
        let rows = R::rows(&mut self.known.pending).drain();
        if rows.is_empty() {
            return Ok(());
        }
        let mut statement = self.db.prepare_cached(R::FINAL)?;
        for row in rows.into_values() {
            if let Some(ended) = row.ended.filter(|ended| *ended < self.kept_from) {
                self.unwritten = self.unwritten.max(Some(ended));
                continue;
            }
            let times = (row.at, row.ended);
            let (sum, weight) = write_final(&mut statement, &row.record, times, row.ending, self.sums)?;
            let read = if row.is_open() { 0 } else { weight };
            if row.is_open() {
                self.total = self.total.wrapping_add(sum);
            }
            match row.record.client() {
                Some(client) => self.known.weights.answer(client.as_str(), weight, read),
                None => self.known.weights.ended(read),
            }
        }
        Ok(())
    }

    pub(super) fn step(&mut self, step: &Step) -> Result<(), FileProblem> {
        self.at = time_of(step, self.at);
        self.acts = 0;
        self.epoch = epoch_behind(std::slice::from_ref(step), self.epoch);
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
                self.hold(thread.clone())
            }
            Op::Owes { thread, opened_by, reply_to } => self.with_thread(*thread, |thread| {
                (thread.opened_by, thread.reply_to) = (*opened_by, *reply_to);
            }),
            Op::Left { thread } => self.with_thread(*thread, |thread| thread.left = true),
            Op::Close { thread } => self.close(*thread),
            Op::Budget(budget) => self.budget(budget),
            Op::Put(message) => self.hold(message.clone()),
            Op::Done { message } => {
                self.end_message(*message, "done", over!("message", "", "number = ?1", "?2", ", ending = 'done'"))
            }
            Op::Cancelled { message } => {
                let cancel = over!("message", "", "number = ?1", "?2", ", ending = 'cancelled'");
                self.end_message(*message, "cancelled", cancel)
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
                self.hold(note.clone())
            }
            Op::Remember(entry) => {
                self.known.holding.insert(entry.thread);
                self.hold(entry.clone())
            }
            Op::Forget { thread, before } => self.forget(*thread, 0, *before),
            Op::ForgetBetween { thread, after, before } => self.forget(*thread, *after, *before),
            Op::Leave(egress) => self.hold(egress.clone()),
            Op::Read { egress } => self.read_egress(*egress),
            Op::Letter(letter) => self.put(letter, [letter.number.cast_signed()]),
            Op::Task(task) => {
                self.take(DELETE_TASK, (task.inbox.as_str(), &task.id.as_uuid().as_bytes()[..]))?;
                self.insert(task)
            }
            Op::TaskGone { inbox, id } => self.take(DELETE_TASK, (inbox.as_str(), &id.as_uuid().as_bytes()[..])),
            Op::State(state) => {
                self.take("DELETE FROM state WHERE listener = ?1 RETURNING sum", [state.listener.as_str()])?;
                self.insert(state)
            }
            Op::Paused { listener, since } => {
                self.take("DELETE FROM paused WHERE listener = ?1 RETURNING sum", [listener.as_str()])?;
                let paused = since.map(|since| PausedRecord { listener: listener.clone(), since });
                paused.map_or(Ok(()), |paused| self.insert(&paused))
            }
            Op::Acted(act) => self.acted(act),
            Op::Mail(mail, status) => self.mail(mail, status),
            Op::MailStatus { seq, status } => self.mail_status(*seq, status),
            Op::MailMoved { from, to, status } => self.mail_moved(*from, *to, status),
            Op::MailGone { seq } => self.mail_gone(*seq),
            Op::Agent(agent) => self.agent(agent),
            Op::Addressee(addressee) => self.addressee(addressee),
            Op::Submitted(_) => Ok(()),
            Op::Unmark { letter } => self.end(gone!("requeue", "letter = ?1"), &[letter.cast_signed()]),
            Op::LetterGone { letter } => {
                self.end(gone!("letter", "number = ?1"), &[letter.cast_signed()])?;
                self.end(gone!("requeue", "letter = ?1"), &[letter.cast_signed()])
            }
        }
    }

    /// Writes an act, which is over.
    fn acted(&mut self, act: &ActRecord) -> Result<(), FileProblem> {
        if self.at < self.kept_from {
            self.unwritten = self.unwritten.max(Some(self.at));
            return Ok(());
        }
        let row = ActRow { place: self.acts, act: act.clone() };
        self.acts += 1;
        let mut statement = self.db.prepare_cached(ActRow::FINAL)?;
        let (_, weight) = write_final(&mut statement, &row, (self.at, Some(self.at)), None, self.sums)?;
        self.known.weights.ended(weight);
        Ok(())
    }

    /// Adds a pending row, in the place of one of the same key.
    pub(super) fn hold<R: Kept>(&mut self, record: R) -> Result<(), FileProblem> {
        let key = record.key();
        let before = R::rows(&mut self.known.pending).get(key).map(|row| (row.at, row.fresh));
        let (at, fresh) = match before {
            Some(before) => before,
            None => self.lift::<R>(key)?.map_or((self.at, true), |at| (at, false)),
        };
        R::rows(&mut self.known.pending).put(Row { record, at, ended: None, ending: None, fresh });
        Ok(())
    }

    /// Deletes the row of a key, to be replaced by a pending one, and returns the time at which it came.
    fn lift<R: Kept>(&mut self, key: R::Key) -> Result<Option<i64>, FileProblem> {
        let (first, only) = (key.as_ref()[0], key.as_ref().len() == 1);
        if only && first > self.newest::<R>()? {
            return Ok(None);
        }
        let row = |row: &SqlRow<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let Some((sum, at)) = self.db.prepare_cached(R::REPLACED)?.query_row(key, row).optional()? else {
            return Ok(None);
        };
        if sum == 0 || R::TABLE == EgressRecord::TABLE {
            // It counted, and the row that takes its place will count: rare, so not followed.
            self.known.weights.lose_count();
        }
        self.db.prepare_cached(R::DELETE)?.execute(key)?;
        self.total = self.total.wrapping_sub(sum);
        Ok(Some(at))
    }

    /// Returns the greatest key that a table has had since this process opened the journal. Mostly a new row has a
    /// greater one, so no statement looks for an older row.
    fn newest<R: Kept>(&mut self) -> Result<i64, FileProblem> {
        let rows = R::rows(&mut self.known.pending);
        if let Some(newest) = rows.newest {
            return Ok(newest);
        }
        let column = R::NAMES.split(',').next().unwrap_or_default();
        let sql = format!("SELECT max({column}) FROM {}", R::TABLE);
        let newest = self.db.query_row(&sql, [], |row| row.get::<_, Option<i64>>(0))?.unwrap_or(i64::MIN);
        rows.newest = Some(newest);
        Ok(newest)
    }

    /// Makes the open row of a key pending; `None` if there is none.
    pub(super) fn open_row<R: Kept>(&mut self, key: R::Key) -> Result<Option<&mut Row<R>>, FileProblem> {
        if R::rows(&mut self.known.pending).get(key).is_none() {
            let Some(Loaded { record, sum, at, .. }) = self.find::<R>(R::OPEN, key)? else { return Ok(None) };
            self.db.prepare_cached(R::DELETE)?.execute(key)?;
            self.total = self.total.wrapping_sub(sum);
            R::rows(&mut self.known.pending).put(Row { record, at, ended: None, ending: None, fresh: false });
        }
        Ok(R::rows(&mut self.known.pending).get_mut(key).filter(|row| row.is_open()))
    }

    /// Ends the row of a key, where it is.
    pub(super) fn end_kept<R: Kept>(
        &mut self,
        key: R::Key,
        ending: Option<&'static str>,
        statements: (&str, &str),
    ) -> Result<(), FileProblem> {
        match R::rows(&mut self.known.pending).get_mut(key) {
            Some(row) => row.end(self.at, ending),
            None => self.end(statements, key.as_ref())?,
        }
        Ok(())
    }

    /// Ends an answer, which its client has.
    pub(super) fn read_egress(&mut self, number: Number) -> Result<(), FileProblem> {
        let key = [number.cast_signed()];
        if let Some(row) = self.known.pending.egress.get_mut(key) {
            row.end(self.at, None);
            return Ok(());
        }
        let open =
            concat!("SELECT sum, ", weight!("egress"), ", client FROM egress WHERE number = ?1 AND ended IS NULL");
        let row = |row: &SqlRow<'_>| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get::<_, Box<str>>(2)?));
        let Some((sum, weight, client)) = self.db.prepare_cached(open)?.query_row(key, row).optional()? else {
            return Ok(());
        };
        self.total = self.total.wrapping_sub(sum);
        self.known.weights.answer(&client, 0, weight);
        let end = concat!("UPDATE egress SET ", over!(set "?2"), " WHERE number = ?1");
        self.db.prepare_cached(end)?.execute((number.cast_signed(), self.at))?;
        Ok(())
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
        mut each: impl FnMut(&SqlRow<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), FileProblem> {
        let mut found = false;
        {
            let mut select = self.db.prepare_cached(select)?;
            let mut rows = select.query(params_from_iter(key))?;
            while let Some(row) = rows.next()? {
                self.total = self.total.wrapping_sub(row.get(0)?);
                self.known.weights.ended(row.get(1)?);
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

    /// Returns whether a message is still open.
    fn waits(&self, message: Number) -> Result<bool, FileProblem> {
        let key = [message.cast_signed()];
        if let Some(row) = self.known.pending.messages.get(key) {
            return Ok(row.is_open());
        }
        let sql = "SELECT 1 FROM message WHERE number = ?1 AND ended IS NULL";
        Ok(self.db.prepare_cached(sql)?.exists(key)?)
    }

    /// Reads the row that matches a condition.
    pub(super) fn find<R: Record>(&mut self, sql: &str, params: impl Params) -> Result<Option<Loaded<R>>, FileProblem> {
        let mut statement = self.db.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        rows.next()?.map(|row| load(row, self.sums)).transpose()
    }

    fn with_thread(&mut self, thread: Number, change: impl FnOnce(&mut ThreadRecord)) -> Result<(), FileProblem> {
        if let Some(row) = self.open_row::<ThreadRecord>([thread.cast_signed()])? {
            change(&mut row.record);
        }
        Ok(())
    }

    fn attempt(&mut self, message: Number, attempts: u32) -> Result<(), FileProblem> {
        if let Some(row) = self.open_row::<MessageRecord>([message.cast_signed()])? {
            row.record.attempts = attempts;
        }
        Ok(())
    }

    fn close(&mut self, thread: Number) -> Result<(), FileProblem> {
        let (at, key, is_new) = (self.at, [thread.cast_signed()], self.known.pending.has_opened(thread));
        if let Some(root) = self.close_thread(key)? {
            self.known.roots.remove(&root);
            self.end_submissions(root, at)?;
        }
        self.end_budget(thread)?;
        let mut messages = Vec::new();
        self.known.pending.messages.end_of(thread, |row| {
            row.end(at, Some("cancelled"));
            messages.push(row.record.number);
        });
        if !is_new {
            let cancel = over!("message", ", number", "thread = ?1", "?2", ", ending = 'cancelled'");
            self.end_each(cancel, &key, |row| {
                messages.push(row.get::<_, i64>(2)?.cast_unsigned());
                Ok(())
            })?;
        }
        messages.into_iter().try_for_each(|message| self.forget_notes(message))?;
        if !self.known.holding.remove(&thread) {
            return Ok(());
        }
        let mut fans = Vec::new();
        self.known.pending.fans.end_of(thread, |row| {
            row.end(at, None);
            fans.push(row.record.key());
        });
        if !is_new {
            self.end_each(over!("fan", ", message, call", "thread = ?1", "?2"), &key, |row| {
                fans.push([row.get(2)?, row.get(3)?]);
                Ok(())
            })?;
        }
        fans.into_iter().try_for_each(|fan| self.end_settled(fan))?;
        self.forget(thread, 0, Number::MAX)
    }

    /// Ends the row of a thread; returns its id if it is a root.
    fn close_thread(&mut self, key: [i64; 1]) -> Result<Option<ThreadId>, FileProblem> {
        if let Some(row) = self.known.pending.threads.get_mut(key) {
            let root = (row.is_open() && row.record.root == row.record.number).then_some(row.record.id);
            row.end(self.at, None);
            return Ok(root);
        }
        let mut root = None;
        self.end_each(over!("thread", ", iif(root = number, id, NULL)", "number = ?1", "?2"), &key, |row| {
            root = row.get::<_, Option<[u8; 16]>>(2)?.map(|id| ThreadId::from_uuid(Uuid::from_bytes(id)));
            Ok(())
        })?;
        Ok(root)
    }

    /// Ends the entries of a thread's context between two numbers.
    fn forget(&mut self, thread: Number, after: Number, before: Number) -> Result<(), FileProblem> {
        let (at, after, before) = (self.at, after.cast_signed(), i64::try_from(before).unwrap_or(i64::MAX));
        self.known.pending.remembered.end_of(thread, |row| {
            let number = row.record.number.cast_signed();
            if after < number && number < before {
                row.end(at, None);
            }
        });
        if self.known.pending.has_opened(thread) {
            return Ok(());
        }
        let between = over!("remembered", "thread = ?1 AND number > ?2 AND number < ?3", "?4");
        self.end(between, &[thread.cast_signed(), after, before])
    }

    fn end_message(
        &mut self,
        message: Number,
        ending: &'static str,
        statements: (&str, &str),
    ) -> Result<(), FileProblem> {
        self.end_kept::<MessageRecord>([message.cast_signed()], Some(ending), statements)?;
        self.forget_notes(message)
    }

    /// Ends the notes and awaited calls of a message; calls of its response outlive it.
    fn forget_notes(&mut self, message: Number) -> Result<(), FileProblem> {
        if !self.known.noted.remove(&message) {
            return Ok(());
        }
        let (at, pending) = (self.at, &mut self.known.pending);
        pending.notes.open(of_message(message)).for_each(|row| row.end(at, None));
        pending
            .fans
            .open(of_message(message))
            .filter(|row| row.record.call.is_some())
            .for_each(|row| row.end(at, None));
        pending.settled.open(of_message(message)).for_each(|row| row.end(at, None));
        if pending.has_come(message) {
            return Ok(());
        }
        let key = &[message.cast_signed()];
        self.end(over!("note", "message = ?1", "?2"), key)?;
        self.end(over!("fan", "message = ?1 AND requests IS NOT NULL", "?2"), key)?;
        self.end(over!("settled", "message = ?1", "?2"), key)
    }
}
