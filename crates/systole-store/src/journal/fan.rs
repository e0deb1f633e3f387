//! Fan-outs as rows: one for the calls, and one for each answer to an awaited call, so that each answer is written
//! once, however many come.

use rusqlite::types::ToSqlOutput;
use systole_core::journal::{AnswerRecord, CallRecord, FanId, FanOutcome, FanRecord, Number, SettledRecord};
use systole_core::vocab::{MessageId, Time};

use super::records::message_id;
use super::row::{Cells, Record, blob, number, optional_number, optional_owned_text, optional_text, statements, text};
use super::text::{self as write, ResultText};

/// A [`FanRecord`] without the answers to awaited calls.
pub(super) struct FanRow {
    pub(super) id: FanId,
    pub(super) thread: Number,
    source: MessageId,
    pub(super) total: u32,
    pub(super) delivered: u32,
    pub(super) counted_off: u32,
    pub(super) call: Option<CallRow>,
}

/// A [`CallRecord`] without its answers; requests, join and result stay text until they are needed.
pub(super) struct CallRow {
    requests: String,
    awaited: String,
    pub(super) outcome: OutcomeRow,
}

pub(super) enum OutcomeRow {
    Open,
    Decided { order: Number, result: String },
    Dropped,
}

/// An answer to one of several awaited calls.
pub(super) struct SettledRow {
    pub(super) fan: FanId,
    /// Position among the answers of the fan-out.
    pub(super) place: u32,
    /// True if the answer is in the result alone.
    pub(super) extra: bool,
    pub(super) settled: SettledRecord,
}

/// Encodes the number of an awaited call; the calls of a response have none.
pub(super) fn call_number(call: Option<u32>) -> i64 {
    call.map_or(-1, i64::from)
}

fn fan_id(cells: &mut Cells<'_>) -> Option<FanId> {
    let message = cells.number()?;
    let call = cells.value()?.as_i64().ok()?;
    Some(FanId { message, call: if call == -1 { None } else { Some(call.try_into().ok()?) } })
}

impl FanRow {
    pub(super) fn of(fan: &FanRecord) -> Self {
        let call = fan.call.as_ref().map(|call| CallRow {
            requests: write::requests(&call.requests),
            awaited: awaited(call),
            outcome: OutcomeRow::Open,
        });
        Self {
            id: fan.id,
            thread: fan.thread,
            source: fan.source,
            total: fan.total,
            delivered: fan.delivered,
            counted_off: fan.counted_off,
            call,
        }
    }

    /// Joins the row with its answers; `None` if the row can't be parsed.
    pub(super) fn record(self, settled: Vec<SettledRow>) -> Option<FanRecord> {
        let call = match self.call {
            None => None,
            Some(call) => Some(CallRecord {
                requests: write::parse_requests(&call.requests)?,
                join: call.join().to_owned(),
                until: call.until()?,
                outcome: match call.outcome {
                    OutcomeRow::Open => FanOutcome::Open,
                    OutcomeRow::Dropped => FanOutcome::Dropped,
                    OutcomeRow::Decided { order, result } => FanOutcome::Decided {
                        order,
                        result: match ResultText::parse(&result)? {
                            ResultText::Fault(fault) => Err(fault.fault()?),
                            ResultText::Settled(places) => {
                                let at = |place| Some(settled.iter().find(|row| row.place == place)?.settled.clone());
                                Ok(places.into_iter().map(at).collect::<Option<_>>()?)
                            }
                        },
                    },
                },
                settled: settled.into_iter().filter(|row| !row.extra).map(|row| row.settled).collect(),
            }),
        };
        Some(FanRecord {
            id: self.id,
            thread: self.thread,
            source: self.source,
            total: self.total,
            delivered: self.delivered,
            counted_off: self.counted_off,
            call,
        })
    }
}

/// The rule by which the waiting ends: a join, and a time behind it where there is one.
fn awaited(call: &CallRecord) -> String {
    match call.until {
        None => call.join.clone(),
        Some(until) => format!("{}{UNTIL}{until}", call.join),
    }
}

const UNTIL: &str = " until ";

impl CallRow {
    fn join(&self) -> &str {
        self.awaited.split_once(UNTIL).map_or(&self.awaited, |(join, _)| join)
    }

    /// `None` for a text that is no time.
    fn until(&self) -> Option<Option<Time>> {
        match self.awaited.split_once(UNTIL) {
            None => Some(None),
            Some((_, until)) => until.parse().ok().map(Some),
        }
    }
}

impl Record for FanRow {
    statements!(
        "fan",
        "message = ?1 AND call = ?2",
        "ended",
        "message, call, thread, source, total, delivered, counted_off, requests, awaited, outcome, decided, result",
        "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
    );
    const HEAVY: &'static [usize] = &[7, 11];

    fn cells(&self, cell: &mut dyn FnMut(ToSqlOutput<'_>) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        cell(number(self.id.message))?;
        cell(call_number(self.id.call).into())?;
        cell(number(self.thread))?;
        cell(blob(self.source.as_uuid().as_bytes()))?;
        cell(number(self.total.into()))?;
        cell(number(self.delivered.into()))?;
        cell(number(self.counted_off.into()))?;
        let Some(call) = &self.call else { return (0..5).try_for_each(|_| cell(optional_number(None))) };
        cell(text(call.requests.as_bytes()))?;
        cell(text(call.awaited.as_bytes()))?;
        let (outcome, decided, result) = match &call.outcome {
            OutcomeRow::Open => ("open", None, None),
            OutcomeRow::Dropped => ("dropped", None, None),
            OutcomeRow::Decided { order, result } => ("decided", Some(*order), Some(result.as_str())),
        };
        cell(text(outcome.as_bytes()))?;
        cell(optional_number(decided))?;
        cell(optional_text(result))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            id: fan_id(cells)?,
            thread: cells.number()?,
            source: message_id(cells)?,
            total: cells.small()?,
            delivered: cells.small()?,
            counted_off: cells.small()?,
            call: match cells.optional_text()? {
                None => None,
                Some(requests) => Some(CallRow {
                    requests: requests.to_owned(),
                    awaited: cells.text()?.to_owned(),
                    outcome: match (cells.text()?, cells.optional_number()?, cells.optional_text()?) {
                        ("open", None, None) => OutcomeRow::Open,
                        ("dropped", None, None) => OutcomeRow::Dropped,
                        ("decided", Some(order), Some(result)) => {
                            OutcomeRow::Decided { order, result: result.to_owned() }
                        }
                        _ => return None,
                    },
                }),
            },
        })
    }
}

impl Record for SettledRow {
    statements!(
        "settled",
        "message = ?1 AND call = ?2 AND place = ?3",
        "ended",
        "message, call, place, extra, answer_to, sender, payload, fault",
        "?, ?, ?, ?, ?, ?, ?, ?"
    );
    const HEAVY: &'static [usize] = &[6];

    fn cells(&self, cell: &mut dyn FnMut(ToSqlOutput<'_>) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        cell(number(self.fan.message))?;
        cell(call_number(self.fan.call).into())?;
        cell(number(self.place.into()))?;
        cell(i64::from(self.extra).into())?;
        cell(number(self.settled.index.into()))?;
        match &self.settled.outcome {
            Ok(answer) => {
                cell(text(answer.from.as_str().as_bytes()))?;
                cell(text(&answer.payload))?;
                cell(optional_text(None))
            }
            Err(fault) => {
                cell(optional_text(None))?;
                cell(optional_text(None))?;
                cell(optional_owned_text(Some(write::fault(fault))))
            }
        }
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        let fan = fan_id(cells)?;
        let (place, extra, index) = (cells.small()?, cells.flag()?, cells.small()?);
        let outcome = match cells.optional_name()? {
            Some(from) => Ok(AnswerRecord { from, payload: cells.bytes()? }),
            None => {
                cells.value()?;
                Err(write::parse_fault(cells.text()?)?)
            }
        };
        Some(Self { fan, place, extra, settled: SettledRecord { index, outcome } })
    }
}
