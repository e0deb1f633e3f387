//! The state of a conversation at a time: rows that had come by then and had not ended.
//!
//! Ended rows stay for a while, and each step has a time of its own, so that the rows that were open after a step are
//! those that a crash right after it would have left. Changes of open rows are reconstructed: how many answers of a
//! fan-out had been consumed, and whether a group of awaited calls had been decided.

use std::collections::BTreeSet;

use systole_core::journal::{
    BudgetRecord, FanId, FanOutcome, FanRecord, MessageRecord, NoteRecord, Number, RememberedRecord, ReplyTo,
    ThreadRecord,
};

use super::fan::{FanRow, SettledRow, call_number};
use super::reader::JournalReader;
use crate::sqlite::FileProblem;

/// The open rows of a conversation after the step of a time.
pub(super) struct OpenRows {
    /// The threads in order of number, the root first.
    pub(super) threads: Vec<ThreadRecord>,
    /// The budgets, as they are now.
    pub(super) budgets: Vec<BudgetRecord>,
    /// The messages in order of place.
    pub(super) messages: Vec<MessageRecord>,
    pub(super) fans: Vec<FanRecord>,
    pub(super) notes: Vec<NoteRecord>,
    /// Entries of contexts, each with the time at which it came.
    pub(super) remembered: Vec<(RememberedRecord, i64)>,
}

const THREADS: &str = "SELECT number FROM thread WHERE root = ?1";
const OPEN: &str = "at <= ?2 AND (ended IS NULL OR ended > ?2)";

impl OpenRows {
    /// Reads the open rows of a conversation; `edit` changes each answer before it is used.
    pub(super) fn read(
        reader: &JournalReader,
        root: Number,
        at: i64,
        edit: impl Fn(&mut SettledRow),
    ) -> Result<Self, FileProblem> {
        let key = [root.cast_signed(), at];
        let of_threads = |order: &str| format!("WHERE thread IN ({THREADS}) AND {OPEN} ORDER BY {order}");
        let threads = format!("WHERE root = ?1 AND {OPEN} ORDER BY number");
        let notes = format!(
            "WHERE message IN (SELECT number FROM message WHERE thread IN ({THREADS})) AND {OPEN} \
             ORDER BY message, place"
        );
        let mut moment = Self {
            threads: reader.rows(&threads, key, |_, record, _, _| Ok(record))?,
            budgets: reader.budget_rows(&of_threads("thread"), key)?,
            messages: reader.rows(&of_threads("place, number"), key, |_, record, _, _| Ok(record))?,
            fans: Vec::new(),
            notes: reader.rows(&notes, key, |_, record, _, _| Ok(record))?,
            remembered: reader.rows(&of_threads("number"), key, |_, record, at, _| Ok((record, at)))?,
        };
        let fans = reader.rows(&of_threads("message, call"), key, |_, row: FanRow, came, _| Ok((row, came)))?;
        for (row, came) in fans {
            let fan = match row.id.call {
                Some(_) => moment.awaited(reader, row, (came, at), &edit)?,
                None => moment.mailed(reader, row, at)?,
            };
            moment.fans.push(fan);
        }
        Ok(moment)
    }

    /// Reads a group of awaited calls made at `made`, with the answers that had come by `at`.
    fn awaited(
        &self,
        reader: &JournalReader,
        row: FanRow,
        (made, at): (i64, i64),
        edit: &impl Fn(&mut SettledRow),
    ) -> Result<FanRecord, FileProblem> {
        let key = [row.id.message.cast_signed(), call_number(row.id.call)];
        let condition = "WHERE message = ?1 AND call = ?2 ORDER BY place";
        let mut last = made;
        let answers = reader.rows(condition, key, |_, mut row: SettledRow, came, _| {
            last = last.max(came);
            edit(&mut row);
            // Later answers stay until the result has been read, which may name them.
            row.extra |= came > at;
            Ok(row)
        })?;
        let waits = !self.open_calls(row.id).is_empty();
        let mut fan = row.record(answers).ok_or_else(nothing)?;
        if let Some(call) = &mut fan.call {
            let later = match call.outcome {
                FanOutcome::Open => false,
                // A decision comes with the last answer: nothing is settled after it.
                FanOutcome::Decided { .. } => last > at,
                // A handler that drops a group closes the threads that the group waits for.
                FanOutcome::Dropped => waits,
            };
            if later {
                call.outcome = FanOutcome::Open;
            }
        }
        Ok(fan)
    }

    /// Counts the calls of a response whose answers had been consumed.
    fn mailed(&self, reader: &JournalReader, row: FanRow, at: i64) -> Result<FanRecord, FileProblem> {
        let index_of = |answers: ReplyTo| match answers {
            ReplyTo::Fan(fan, index) if fan == row.id => Some(index),
            _ => None,
        };
        let answered = "WHERE thread = ?1 AND at <= ?2 AND answers IS NOT NULL";
        let answered =
            reader.rows(answered, [row.thread.cast_signed(), at], |_, message: MessageRecord, _, ended| {
                Ok(index_of(message.answers).map(|index| (index, ended.is_some_and(|ended| ended <= at))))
            })?;
        let answered: Vec<_> = answered.into_iter().flatten().collect();
        let delivered = answered.iter().filter(|(_, consumed)| *consumed).count();
        let mut known = self.open_calls(row.id);
        known.extend(answered.into_iter().map(|(index, _)| index));
        let count = |of: usize| u32::try_from(of).unwrap_or(u32::MAX);
        let counted_off = row.total.saturating_sub(count(known.len()));
        let fan = row.record(Vec::new()).ok_or_else(nothing)?;
        Ok(FanRecord { delivered: count(delivered), counted_off, ..fan })
    }

    /// The open calls of a fan-out.
    fn open_calls(&self, fan: FanId) -> BTreeSet<u32> {
        let index_of = |thread: &ThreadRecord| match thread.reply_to {
            ReplyTo::Fan(of, index) if of == fan => Some(index),
            _ => None,
        };
        self.threads.iter().filter_map(index_of).collect()
    }
}

fn nothing() -> FileProblem {
    FileProblem::damaged("a row of table fan can't be parsed")
}
