//! Deliveries as rows.

use std::time::Duration;

use bytes::Bytes;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use systole_core::vocab::{MessageId, Name, Time};

use super::End;
use crate::outbound::answer::{DeliveryAnswer, Taken};
use crate::outbound::delivery::{OutboundDelivery, shown};
use crate::outbound::error::{DeliveryOutcome, Undelivered};
use crate::outbound::store::Job;
use crate::runtime::sqlite::FileProblem;

/// The report on a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryReport {
    /// The delivery.
    pub id: MessageId,
    /// The target.
    pub target: Name,
    /// The URL.
    pub url: String,
    /// The time at which the delivery was accepted.
    pub created: Time,
    /// Attempts that were begun.
    pub attempts: u32,
    /// Time that the delivery took of its budget, as far as that is written.
    pub spent: Duration,
    /// Time of the next attempt, while the delivery backs off.
    pub next: Option<Time>,
    /// Message of the last failed attempt.
    pub last_error: Option<String>,
    /// The end; none if the delivery is open.
    pub outcome: Option<DeliveryOutcome>,
}

/// A delivery that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledDelivery {
    /// The delivery.
    pub id: MessageId,
    /// The target.
    pub target: Name,
    /// The end.
    pub outcome: DeliveryOutcome,
}

pub(super) fn key(id: MessageId) -> [u8; 16] {
    *id.as_uuid().as_bytes()
}

pub(super) fn time(time: Time) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

pub(super) fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

fn damaged() -> FileProblem {
    FileProblem::damaged("a delivery is not as it was written")
}

pub(super) fn name(value: ValueRef<'_>) -> Result<Name, FileProblem> {
    value.as_str().ok().and_then(|text| text.parse().ok()).ok_or_else(damaged)
}

pub(super) fn id(value: ValueRef<'_>) -> Result<MessageId, FileProblem> {
    let bytes = value.as_blob().map_err(|_| damaged())?;
    uuid::Uuid::from_slice(bytes).map(MessageId::from_uuid).map_err(|_| damaged())
}

/// A number that SQLite counted.
pub(super) fn count(value: i64) -> u64 {
    value.max(0).unsigned_abs()
}

pub(super) fn time_of(value: i64) -> Time {
    Time::from_nanos(count(value))
}

fn duration(value: i64) -> Duration {
    Duration::from_nanos(count(value))
}

fn text(value: ValueRef<'_>) -> Result<String, FileProblem> {
    value.as_str().map(ToOwned::to_owned).map_err(|_| damaged())
}

pub(super) fn insert(
    db: &Connection,
    delivery: &OutboundDelivery,
    digest: &[u8; 32],
    now: Time,
) -> Result<(), FileProblem> {
    let headers = serde_json::to_string(&delivery.headers).map_err(|error| FileProblem::Io(error.into()))?;
    let sql = "INSERT INTO delivery \
               (id, target, url, headers, signed, digest, body, created, attempts, spent, told) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, 0)";
    db.prepare_cached(sql)?.execute(params![
        key(delivery.id),
        delivery.target.as_str(),
        delivery.url,
        headers,
        delivery.signed,
        digest,
        &delivery.body[..],
        time(now),
    ])?;
    Ok(())
}

pub(super) fn head(db: &Connection, target: &Name) -> Result<Option<Job>, FileProblem> {
    let sql = "SELECT id, url, headers, signed, body, attempts, spent, next, error FROM delivery \
               WHERE target = ?1 AND settled IS NULL ORDER BY place LIMIT 1";
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query([target.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(Job {
        delivery: OutboundDelivery {
            id: id(row.get_ref(0)?)?,
            target: target.clone(),
            url: text(row.get_ref(1)?)?,
            headers: serde_json::from_str(&text(row.get_ref(2)?)?).map_err(|_| damaged())?,
            signed: row.get(3)?,
            body: Bytes::copy_from_slice(row.get_ref(4)?.as_blob().map_err(|_| damaged())?),
        },
        attempts: row.get(5)?,
        spent: duration(row.get(6)?),
        next: row.get::<_, Option<i64>>(7)?.map(time_of),
        last_error: row.get(8)?,
    }))
}

/// The columns of a `DeliveryReport`.
const COLUMNS: &str = "id, target, url, created, attempts, spent, next, error, outcome, status, content_type, answer, \
                       allowed, digest, turn";

pub(super) fn find(db: &Connection, id: MessageId) -> Result<Option<(DeliveryReport, [u8; 32])>, FileProblem> {
    let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM delivery WHERE id = ?1"))?;
    let mut rows = statement.query([key(id)])?;
    match rows.next()? {
        Some(row) => Ok(Some((report(row)?, row.get(13)?))),
        None => Ok(None),
    }
}

pub(super) fn untold(db: &Connection, after: i64) -> Result<Option<(i64, SettledDelivery)>, FileProblem> {
    let sql = format!(
        "SELECT {COLUMNS} FROM delivery WHERE settled IS NOT NULL AND told = 0 AND turn > ?1 ORDER BY turn LIMIT 1"
    );
    let mut statement = db.prepare_cached(&sql)?;
    let mut rows = statement.query([after])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let DeliveryReport { id, target, outcome, .. } = report(row)?;
    Ok(Some((row.get(14)?, SettledDelivery { id, target, outcome: outcome.ok_or_else(damaged)? })))
}

fn report(row: &Row<'_>) -> Result<DeliveryReport, FileProblem> {
    let mut report = DeliveryReport {
        id: id(row.get_ref(0)?)?,
        target: name(row.get_ref(1)?)?,
        url: text(row.get_ref(2)?)?,
        created: time_of(row.get(3)?),
        attempts: row.get(4)?,
        spent: duration(row.get(5)?),
        next: row.get::<_, Option<i64>>(6)?.map(time_of),
        last_error: row.get(7)?,
        outcome: None,
    };
    report.outcome = match row.get::<_, Option<String>>(8)?.as_deref() {
        None => None,
        Some(kind @ ("answered" | "queued")) => Some(Ok(DeliveryAnswer {
            taken: if kind == "queued" { Taken::Queued } else { Taken::Answered },
            status: row.get(9)?,
            content_type: row.get(10)?,
            body: row.get::<_, Vec<u8>>(11)?.into(),
        })),
        Some(cause) => Some(Err(Undelivered {
            id: report.id,
            target: report.target.clone(),
            url: shown(&report.url),
            cause: cause.parse().map_err(|_| damaged())?,
            message: report.last_error.clone().ok_or_else(damaged)?,
            attempts: report.attempts,
            limit: row.get(12)?,
            elapsed: report.spent,
        })),
    };
    Ok(report)
}

pub(super) fn settle(db: &Connection, id: MessageId, end: &End<'_>, turn: i64) -> Result<(), FileProblem> {
    let (outcome, answer, failed) = match end.outcome {
        Ok(answer) if answer.taken == Taken::Queued => ("queued", Some(answer), None),
        Ok(answer) => ("answered", Some(answer), None),
        Err(undelivered) => (undelivered.cause.as_str(), None, Some(undelivered)),
    };
    let sql = "UPDATE delivery SET body = NULL, next = NULL, settled = ?2, spent = ?3, outcome = ?4, status = ?5, \
               content_type = ?6, answer = ?7, error = ifnull(?8, error), allowed = ?9, turn = ?10, told = ?11 \
               WHERE id = ?1";
    db.prepare_cached(sql)?.execute(params![
        key(id),
        time(end.now),
        nanos(end.spent),
        outcome,
        answer.map(|answer| answer.status),
        answer.and_then(|answer| answer.content_type.as_deref()),
        answer.map(|answer| &answer.body[..]),
        failed.map(|failed| failed.message.as_str()),
        failed.map(|failed| failed.limit),
        turn,
        end.told,
    ])?;
    Ok(())
}
