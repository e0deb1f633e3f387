//! A conversation as it was at a moment: what had come by then, and was not over.
//!
//! Rows that are over stay for a while, and each step has a moment of its own, so that the rows that were open after a
//! step are those that a crash behind it would have left. What a row changes while it is open is worked out again: how
//! many answers of a fan-out had been consumed, and whether a group of awaited calls had been decided.

use std::collections::BTreeSet;

use systole_core::journal::{
    FanId, FanRecord, MessageRecord, NoteRecord, Number, Origin, Outcome, RememberedRecord, ThreadRecord,
};

use super::fan::{FanRow, SettledRow, call_number};
use super::reader::JournalReader;
use crate::shell::sqlite::Problem;

/// What was open of a conversation after the step of a moment.
pub(super) struct Moment {
    /// In order of number: the root comes first.
    pub(super) threads: Vec<ThreadRecord>,
    /// In order of place.
    pub(super) messages: Vec<MessageRecord>,
    pub(super) fans: Vec<FanRecord>,
    pub(super) notes: Vec<NoteRecord>,
    /// Each with when it came.
    pub(super) remembered: Vec<(RememberedRecord, i64)>,
}

const THREADS: &str = "SELECT number FROM thread WHERE root = ?1";
const OPEN: &str = "at <= ?2 AND (ended IS NULL OR ended > ?2)";

impl Moment {
    /// Reads what was open of a conversation; `edit` changes an answer before it is looked at.
    pub(super) fn read(
        reader: &JournalReader,
        root: Number,
        at: i64,
        edit: impl Fn(&mut SettledRow),
    ) -> Result<Self, Problem> {
        let key = [root.cast_signed(), at];
        let of_threads = |order: &str| format!("WHERE thread IN ({THREADS}) AND {OPEN} ORDER BY {order}");
        let threads = format!("WHERE root = ?1 AND {OPEN} ORDER BY number");
        let notes = format!(
            "WHERE message IN (SELECT number FROM message WHERE thread IN ({THREADS})) AND {OPEN} \
             ORDER BY message, place"
        );
        let mut moment = Self {
            threads: reader.rows(&threads, key, |_, record, _, _| Ok(record))?,
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

    /// A group of awaited calls, made at one moment, with the answers that had come at another one.
    fn awaited(
        &self,
        reader: &JournalReader,
        row: FanRow,
        (made, at): (i64, i64),
        edit: &impl Fn(&mut SettledRow),
    ) -> Result<FanRecord, Problem> {
        let key = [row.id.message.cast_signed(), call_number(row.id.call)];
        let condition = "WHERE message = ?1 AND call = ?2 ORDER BY place";
        let mut last = made;
        let answers = reader.rows(condition, key, |_, mut row: SettledRow, came, _| {
            last = last.max(came);
            edit(&mut row);
            // Those that came later are there as long as a result is read that may name them.
            row.extra |= came > at;
            Ok(row)
        })?;
        let waits = !self.open_calls(row.id).is_empty();
        let mut fan = row.record(answers).ok_or_else(nothing)?;
        if let Some(call) = &mut fan.call {
            let later = match call.outcome {
                Outcome::Open => false,
                // A decision comes with the last answer: nothing is settled after it.
                Outcome::Decided { .. } => last > at,
                // Whoever gives a group up closes what it waits for.
                Outcome::Dropped => waits,
            };
            if later {
                call.outcome = Outcome::Open;
            }
        }
        Ok(fan)
    }

    /// The calls of a response, with those counted whose answers had been consumed.
    fn mailed(&self, reader: &JournalReader, row: FanRow, at: i64) -> Result<FanRecord, Problem> {
        let index_of = |answers: Origin| match answers {
            Origin::Fan(fan, index) if fan == row.id => Some(index),
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

    /// The calls of a fan-out that were open.
    fn open_calls(&self, fan: FanId) -> BTreeSet<u32> {
        let index_of = |thread: &ThreadRecord| match thread.origin {
            Origin::Fan(of, index) if of == fan => Some(index),
            _ => None,
        };
        self.threads.iter().filter_map(index_of).collect()
    }
}

fn nothing() -> Problem {
    Problem::damaged("a fan-out says nothing")
}
