//! How messages of a mailbox end: replies, failures, acknowledgements, dead letters.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension};

use super::items::{State, uuid};
use super::principals::strange;
use super::pushed::TAKEN;
use super::{Store, StoreError};
use crate::vocab::{MessageId, Name, Time};

/// How the handler of a message ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// With what was written, dirty or not.
    Reply(Bytes),
    /// With an `agent-error`.
    Fail(String),
    /// Without a word.
    Silent,
}

/// What a reader does with a message that it has leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Handle {
    /// It is done.
    Ack,
    /// It can't be done now: somebody may have it again after `after`.
    Nack { error: Option<String>, due: Time },
    /// It takes longer.
    Extend { due: Time },
    /// It has it, and answers later: nobody leases it any more.
    Hold,
    /// Nobody shall have it again.
    Term { error: Option<String> },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It is so; what its handler ends with, if it does.
    Done(Option<Settlement>),
    /// It is so from before.
    Already,
    /// There is no such message in that mailbox.
    Unknown,
    /// Somebody else has it, or nobody.
    Stale,
    /// It has ended otherwise.
    Over(State),
}

/// What a message that was settled in an earlier run ended with.
pub(super) fn settlement(state: &str, answer: Option<Vec<u8>>) -> rusqlite::Result<Option<Settlement>> {
    let text = |answer: Option<Vec<u8>>| String::from_utf8_lossy(&answer.unwrap_or_default()).into_owned();
    Ok(match state {
        "waiting" | "gone" => None,
        "replied" => Some(Settlement::Reply(answer.unwrap_or_default().into())),
        "acked" | "terminated" => Some(Settlement::Silent),
        "dead" => Some(Settlement::Fail(text(answer))),
        other => return Err(strange(9, other)),
    })
}

impl Store {
    /// Ends a message with a reply or a failure. The same once more is no mistake.
    pub(crate) async fn settle(&self, id: MessageId, with: Settlement, now: Time) -> Result<Settled, StoreError> {
        self.write(move |db| {
            let sql = "SELECT state, answer FROM item WHERE id = ?1";
            let found: Option<(String, Option<Vec<u8>>)> = db
                .prepare_cached(sql)?
                .query_row([id.as_uuid().as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((state, answer)) = found else { return Ok(Settled::Unknown) };
            match state_of(&state)? {
                State::Waiting => {}
                _ if settlement(&state, answer)?.as_ref() == Some(&with) => return Ok(Settled::Already),
                other => return Ok(Settled::Over(other)),
            }
            let (state, answer, error) = match &with {
                Settlement::Reply(reply) => (State::Replied, Some(reply.to_vec()), None),
                Settlement::Fail(why) => (State::Dead, Some(why.clone().into_bytes()), Some(why.clone())),
                Settlement::Silent => (State::Acked, None, None),
            };
            end(db, id, state, answer, error.as_deref(), now)?;
            Ok(Settled::Done(Some(with)))
        })
        .await
    }

    /// Does something with a message that was leased, if that lease still holds.
    pub(crate) async fn handle(
        &self,
        mailbox: Name,
        id: MessageId,
        receipt: [u8; 16],
        with: Handle,
        (now, deliveries): (Time, u32),
    ) -> Result<Settled, StoreError> {
        self.write(move |db| {
            let sql = "SELECT state, receipt, due, deliveries FROM item WHERE id = ?1 AND mailbox = ?2";
            let found: Option<(String, Option<[u8; 16]>, i64, u32)> = db
                .prepare_cached(sql)?
                .query_row((id.as_uuid().as_bytes(), mailbox.as_str()), |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
                })
                .optional()?;
            let Some((state, shown, due, delivered)) = found else { return Ok(Settled::Unknown) };
            if shown != Some(receipt) {
                return Ok(Settled::Stale);
            }
            let held = due.cast_unsigned() == TAKEN.as_nanos();
            match (state_of(&state)?, &with) {
                // What was asked before may come behind it: it stays.
                (State::Waiting, Handle::Hold | Handle::Extend { .. }) if held => return Ok(Settled::Already),
                (State::Waiting, _) if due.cast_unsigned() > now.as_nanos() => {}
                (State::Waiting, _) => return Ok(Settled::Stale),
                (State::Replied | State::Acked, Handle::Ack | Handle::Hold)
                | (State::Terminated, Handle::Term { .. }) => {
                    return Ok(Settled::Already);
                }
                (other, _) => return Ok(Settled::Over(other)),
            }
            apply(db, id, with, now, delivered >= deliveries)
        })
        .await
    }

    /// Ends what was delivered as often as it may be, and leased by nobody any more. Gives back what ended, and when
    /// the next lease ends.
    pub(crate) async fn lapse(&self, now: Time, deliveries: u32) -> Result<(Vec<MessageId>, Option<Time>), StoreError> {
        self.write(move |db| {
            let sql = "SELECT id FROM item WHERE state = 'waiting' AND live > 0 AND due > 0 AND due <= ?1 AND deliveries >= ?2";
            let mut lapsed = db.prepare_cached(sql)?;
            let ids = lapsed.query_map((now.as_nanos().cast_signed(), deliveries), |row| row.get(0))?;
            let ids: Vec<[u8; 16]> = ids.collect::<rusqlite::Result<_>>()?;
            let ids: Vec<_> = ids.into_iter().map(|id| MessageId::from_uuid(uuid(id))).collect();
            for &id in &ids {
                let why = too_often(deliveries);
                end(db, id, State::Dead, Some(why.clone().into_bytes()), Some(&why), now)?;
            }
            let sql = "SELECT min(due) FROM item WHERE state = 'waiting' AND live > 0 AND due > ?1";
            let next: Option<i64> = db.prepare_cached(sql)?.query_row([now.as_nanos().cast_signed()], |row| row.get(0))?;
            Ok((ids, next.map(|next| Time::from_nanos(next.cast_unsigned()))))
        })
        .await
    }

    /// Puts dead letters of a mailbox behind its last message, all of them or one, to be read, leased or pushed again;
    /// whoever asked has had an answer.
    pub(crate) async fn redrive(&self, mailbox: Name, id: Option<MessageId>) -> Result<usize, StoreError> {
        self.write(move |db| {
            let id = id.map(|id| *id.as_uuid().as_bytes());
            let sql =
                "SELECT seq FROM item WHERE mailbox = ?1 AND state = 'dead' AND (?2 IS NULL OR id = ?2) ORDER BY seq";
            let dead = db
                .prepare_cached(sql)?
                .query_map((mailbox.as_str(), id), |row| row.get(0))?
                .collect::<Result<Vec<i64>, _>>()?;
            // A row that is inserted would have this place.
            let sql = "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'item' RETURNING seq";
            let mut place = db.prepare_cached(sql)?;
            let sql = "UPDATE item SET seq = ?2, state = 'waiting', live = 2, deliveries = 0, due = 0, receipt = NULL, \
                       answer = NULL, ended = NULL WHERE seq = ?1";
            let mut again = db.prepare_cached(sql)?;
            for seq in &dead {
                again.execute((seq, place.query_row([], |row| row.get::<_, i64>(0))?))?;
            }
            Ok(dead.len())
        })
        .await
    }

    /// Forgets dead letters of a mailbox, all of them or one.
    pub(crate) async fn bury(&self, mailbox: Name, id: Option<MessageId>) -> Result<usize, StoreError> {
        self.write(move |db| {
            let id = id.map(|id| *id.as_uuid().as_bytes());
            let sql = "DELETE FROM item WHERE mailbox = ?1 AND state = 'dead' AND (?2 IS NULL OR id = ?2)";
            db.prepare_cached(sql)?.execute((mailbox.as_str(), id))
        })
        .await
    }
}

fn apply(db: &Connection, id: MessageId, with: Handle, now: Time, last: bool) -> rusqlite::Result<Settled> {
    let key = id.as_uuid().as_bytes();
    match with {
        Handle::Ack => {
            end(db, id, State::Acked, None, None, now)?;
            Ok(Settled::Done(Some(Settlement::Silent)))
        }
        Handle::Term { error } => {
            end(db, id, State::Terminated, None, error.as_deref(), now)?;
            Ok(Settled::Done(Some(Settlement::Silent)))
        }
        Handle::Nack { error, .. } if last => {
            let why = error.unwrap_or_else(|| "the listener gave it back as often as it may".to_owned());
            end(db, id, State::Dead, Some(why.clone().into_bytes()), Some(&why), now)?;
            Ok(Settled::Done(Some(Settlement::Fail(why))))
        }
        Handle::Nack { error, due } => {
            let sql = "UPDATE item SET due = ?2, receipt = NULL, error = coalesce(?3, error) WHERE id = ?1";
            db.prepare_cached(sql)?.execute((key, due.as_nanos().cast_signed(), error))?;
            Ok(Settled::Done(None))
        }
        Handle::Extend { due } => put_off(db, id, due),
        Handle::Hold => put_off(db, id, TAKEN),
    }
}

fn put_off(db: &Connection, id: MessageId, due: Time) -> rusqlite::Result<Settled> {
    let sql = "UPDATE item SET due = ?2 WHERE id = ?1";
    db.prepare_cached(sql)?.execute((id.as_uuid().as_bytes(), due.as_nanos().cast_signed()))?;
    Ok(Settled::Done(None))
}

/// The receipt stays: whoever replied may still acknowledge.
fn end(
    db: &Connection,
    id: MessageId,
    state: State,
    answer: Option<Vec<u8>>,
    error: Option<&str>,
    now: Time,
) -> rusqlite::Result<()> {
    let sql =
        "UPDATE item SET state = ?2, live = 0, answer = ?3, error = coalesce(?4, error), ended = ?5 WHERE id = ?1";
    let now = now.as_nanos().cast_signed();
    db.prepare_cached(sql)?.execute((id.as_uuid().as_bytes(), state.as_str(), answer, error, now))?;
    Ok(())
}

pub(crate) fn too_often(deliveries: u32) -> String {
    format!("the listener took this message {deliveries} times and never answered")
}

fn state_of(text: &str) -> rusqlite::Result<State> {
    State::of(text).ok_or_else(|| strange(0, text))
}
