//! Changes of fan-outs and awaited calls as statements.

use systole_core::journal::{FanId, FanOutcome, FanRecord, SettledRecord};

use super::apply::{Apply, over};
use super::fan::{CallRow, FanRow, OutcomeRow, SettledRow, call_number};
use super::row::{Loaded, Record, load};
use super::text::{FaultText, ResultText};
use crate::runtime::sqlite::FileProblem;

impl Apply<'_> {
    pub(super) fn end_settled(&mut self, message: i64, call: i64) -> Result<(), FileProblem> {
        self.end(over!("settled", "message = ?1 AND call = ?2", "?3"), &[message, call])
    }

    pub(super) fn open_fan(&mut self, fan: &FanRecord) -> Result<(), FileProblem> {
        let call = call_number(fan.id.call);
        self.end_settled(fan.id.message.cast_signed(), call)?;
        self.known.holding.insert(fan.thread);
        self.put(&FanRow::of(fan), [fan.id.message.cast_signed(), call])?;
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
        let key = [fan.message.cast_signed(), call_number(fan.call)];
        self.take("DELETE FROM fan WHERE message = ?1 AND call = ?2 AND ended IS NULL RETURNING sum", key)?;
        self.take("DELETE FROM settled WHERE message = ?1 AND call = ?2 AND ended IS NULL RETURNING sum", key)
    }

    fn put_settled(&mut self, fan: FanId, place: u32, extra: bool, settled: &SettledRecord) -> Result<(), FileProblem> {
        let key = [fan.message.cast_signed(), call_number(fan.call), place.into()];
        self.put(&SettledRow { fan, place, extra, settled: settled.clone() }, key)
    }

    pub(super) fn with_fan(&mut self, id: FanId, change: impl FnOnce(&mut FanRow)) -> Result<(), FileProblem> {
        let Some(mut found) = self.find_fan(id)? else { return Ok(()) };
        change(&mut found.record);
        self.put_fan(found)
    }

    fn find_fan(&mut self, id: FanId) -> Result<Option<Loaded<FanRow>>, FileProblem> {
        let sql = [FanRow::SELECT, "WHERE message = ?1 AND call = ?2 AND ended IS NULL"].concat();
        self.find(&sql, [id.message.cast_signed(), call_number(id.call)])
    }

    /// Replaces a fan-out, and ends it if no handler awaits it and each of its calls is accounted for.
    fn put_fan(&mut self, fan: Loaded<FanRow>) -> Result<(), FileProblem> {
        let Loaded { record, sum, at, .. } = fan;
        self.replace(sum, at, &record)?;
        if record.call.is_none() && record.delivered.saturating_add(record.counted_off) >= record.total {
            let key = &[record.id.message.cast_signed(), call_number(record.id.call)];
            self.end(over!("fan", "message = ?1 AND call = ?2", "?3"), key)?;
        }
        Ok(())
    }

    pub(super) fn settle(&mut self, id: FanId, settled: &SettledRecord) -> Result<(), FileProblem> {
        let Some(found) = self.find_fan(id)? else { return Ok(()) };
        if found.record.call.is_some() {
            let sql = "SELECT count(*) FROM settled WHERE message = ?1 AND call = ?2 AND ended IS NULL";
            let key = [id.message.cast_signed(), call_number(id.call)];
            let place: u32 = self.db.prepare_cached(sql)?.query_row(key, |row| row.get(0))?;
            return self.put_settled(id, place, false, settled);
        }
        self.put_fan(found)
    }

    pub(super) fn conclude(&mut self, id: FanId, outcome: &FanOutcome) -> Result<(), FileProblem> {
        let Some(mut found) = self.find_fan(id)? else { return Ok(()) };
        if let Some(CallRow { outcome: row, .. }) = &mut found.record.call {
            *row = match outcome {
                FanOutcome::Open => OutcomeRow::Open,
                FanOutcome::Dropped => OutcomeRow::Dropped,
                FanOutcome::Decided { order, result } => {
                    OutcomeRow::Decided { order: *order, result: self.result(id, result)?.write() }
                }
            };
        }
        self.put_fan(found)
    }

    /// Makes the result name answers by position: those kept already, and new rows for the others.
    fn result(
        &mut self,
        id: FanId,
        result: &Result<Vec<SettledRecord>, systole_core::vocab::Fault>,
    ) -> Result<ResultText, FileProblem> {
        let answers = match result {
            Err(fault) => return Ok(ResultText::Fault(FaultText::of(fault))),
            Ok(answers) => answers,
        };
        let kept = self.settled_of(id)?;
        let mut next = u32::try_from(kept.len()).unwrap_or(u32::MAX);
        let mut places = Vec::with_capacity(answers.len());
        for answer in answers {
            let place = match kept.iter().find(|row| row.settled == *answer) {
                Some(row) => row.place,
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

    fn settled_of(&mut self, id: FanId) -> Result<Vec<SettledRow>, FileProblem> {
        let sql = [SettledRow::SELECT, "WHERE message = ?1 AND call = ?2 AND ended IS NULL ORDER BY place"].concat();
        let mut statement = self.db.prepare_cached(&sql)?;
        let mut rows = statement.query([id.message.cast_signed(), call_number(id.call)])?;
        let mut settled = Vec::new();
        while let Some(row) = rows.next()? {
            settled.push(load(row, self.sums)?.record);
        }
        Ok(settled)
    }
}
