//! Changes of fan-outs and awaited calls.

use systole_core::journal::{FanId, FanOutcome, FanRecord, SettledRecord};
use systole_core::vocab::Fault;

use super::apply::{Apply, over};
use super::fan::{CallRow, FanRow, OutcomeRow, SettledRow, call_number};
use super::pending::{Kept, Row, of};
use super::row::{Record, load};
use super::text::{FaultText, ResultText};
use crate::sqlite::FileProblem;

impl Apply<'_> {
    pub(super) fn end_settled(&mut self, fan: [i64; 2]) -> Result<(), FileProblem> {
        let (at, pending) = (self.at, &mut self.known.pending);
        pending.settled.open(of(fan)).for_each(|row| row.end(at, None));
        if pending.has_come(fan[0].cast_unsigned()) {
            return Ok(());
        }
        self.end(over!("settled", "message = ?1 AND call = ?2", "?3"), &fan)
    }

    pub(super) fn open_fan(&mut self, fan: &FanRecord) -> Result<(), FileProblem> {
        let row = FanRow::of(fan);
        self.end_settled(row.key())?;
        self.known.holding.insert(fan.thread);
        self.hold(row)?;
        let Some(call) = &fan.call else { return Ok(()) };
        self.known.noted.insert(fan.id.message);
        for (place, settled) in (0..).zip(&call.settled) {
            self.put_settled(fan.id, place, false, settled)?;
        }
        match &call.outcome {
            FanOutcome::Open => Ok(()),
            outcome => self.conclude(fan.id, outcome),
        }
    }

    /// Deletes an open fan-out, so that its number can be used again.
    pub(super) fn forget_fan(&mut self, fan: FanId) -> Result<(), FileProblem> {
        let key = key_of(fan);
        let pending = &mut self.known.pending;
        pending.fans.remove_open(key..=key);
        pending.settled.remove_open(of(key));
        // A pending fan-out that has ended has no row in its table.
        self.take("DELETE FROM fan WHERE message = ?1 AND call = ?2 AND ended IS NULL RETURNING sum", key)?;
        self.take("DELETE FROM settled WHERE message = ?1 AND call = ?2 AND ended IS NULL RETURNING sum", key)
    }

    fn put_settled(&mut self, fan: FanId, place: u32, extra: bool, settled: &SettledRecord) -> Result<(), FileProblem> {
        self.hold(SettledRow { fan, place, extra, settled: settled.clone() })
    }

    /// Changes an open fan-out, and ends it if no handler awaits it and each of its calls is accounted for.
    pub(super) fn with_fan(&mut self, id: FanId, change: impl FnOnce(&mut FanRow)) -> Result<(), FileProblem> {
        let at = self.at;
        if let Some(row) = self.open_row::<FanRow>(key_of(id))? {
            change(&mut row.record);
            let fan = &row.record;
            if fan.call.is_none() && fan.delivered.saturating_add(fan.counted_off) >= fan.total {
                row.end(at, None);
            }
        }
        Ok(())
    }

    pub(super) fn settle(&mut self, id: FanId, settled: &SettledRecord) -> Result<(), FileProblem> {
        match self.open_row::<FanRow>(key_of(id))? {
            None => Ok(()),
            Some(Row { record: FanRow { call: None, .. }, .. }) => self.with_fan(id, |_| ()),
            Some(_) => {
                let place = self.count_settled(id)?;
                self.put_settled(id, place, false, settled)
            }
        }
    }

    pub(super) fn conclude(&mut self, id: FanId, outcome: &FanOutcome) -> Result<(), FileProblem> {
        let Some(row) = self.open_row::<FanRow>(key_of(id))? else { return Ok(()) };
        if row.record.call.is_none() {
            return self.with_fan(id, |_| ());
        }
        let outcome = match outcome {
            FanOutcome::Open => OutcomeRow::Open,
            FanOutcome::Dropped => OutcomeRow::Dropped,
            FanOutcome::Decided { order, result } => {
                OutcomeRow::Decided { order: *order, result: self.result(id, result)?.write() }
            }
        };
        self.with_fan(id, |fan| {
            if let Some(CallRow { outcome: row, .. }) = &mut fan.call {
                *row = outcome;
            }
        })
    }

    /// Makes the result name answers by position: those kept already, and new rows for the others.
    fn result(&mut self, id: FanId, result: &Result<Vec<SettledRecord>, Fault>) -> Result<ResultText, FileProblem> {
        let answers = match result {
            Err(fault) => return Ok(ResultText::Fault(FaultText::of(fault))),
            Ok(answers) => answers,
        };
        let kept = self.settled_of(id)?;
        let mut next = u32::try_from(kept.len()).unwrap_or(u32::MAX);
        let mut places = Vec::with_capacity(answers.len());
        for answer in answers {
            let place = match kept.iter().find(|(_, settled)| settled == answer) {
                Some((place, _)) => *place,
                None => {
                    self.put_settled(id, next, true, answer)?;
                    next += 1;
                    next - 1
                }
            };
            places.push(place);
        }
        Ok(ResultText::Settled(places))
    }

    /// Counts the open answers to awaited calls.
    fn count_settled(&mut self, id: FanId) -> Result<u32, FileProblem> {
        let (key, pending) = (key_of(id), &mut self.known.pending);
        let count = u32::try_from(pending.settled.open(of(key)).count()).unwrap_or(u32::MAX);
        if pending.has_come(id.message) {
            return Ok(count);
        }
        let sql = "SELECT count(*) FROM settled WHERE message = ?1 AND call = ?2 AND ended IS NULL";
        let written: u32 = self.db.prepare_cached(sql)?.query_row(key, |row| row.get(0))?;
        Ok(count.saturating_add(written))
    }

    /// Returns the open answers to awaited calls, in order of their places.
    fn settled_of(&mut self, id: FanId) -> Result<Vec<(u32, SettledRecord)>, FileProblem> {
        let mut settled = Vec::new();
        let pending = &mut self.known.pending;
        if !pending.has_come(id.message) {
            let sql = [SettledRow::SELECT, "WHERE message = ?1 AND call = ?2 AND ended IS NULL"].concat();
            let mut statement = self.db.prepare_cached(&sql)?;
            let mut rows = statement.query(key_of(id))?;
            while let Some(row) = rows.next()? {
                let SettledRow { place, settled: answer, .. } = load(row, self.sums)?.record;
                settled.push((place, answer));
            }
        }
        settled.extend(pending.settled.open(of(key_of(id))).map(|row| (row.record.place, row.record.settled.clone())));
        settled.sort_by_key(|(place, _)| *place);
        Ok(settled)
    }
}

fn key_of(fan: FanId) -> [i64; 2] {
    [fan.message.cast_signed(), call_number(fan.call)]
}
