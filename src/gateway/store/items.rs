//! Mailboxes of remote listeners: what comes in, and reading them in order.

use bytes::Bytes;
use rusqlite::{OptionalExtension, Row, named_params};
use uuid::Uuid;

use super::principals::{strange, time};
use super::settle::{Settlement, settlement};
use super::{Store, StoreError};
use crate::vocab::{MessageId, Name, ThreadId, Time};

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It has no answer; it may be leased.
    Waiting,
    /// It has a reply.
    Replied,
    /// It is done, without a reply.
    Acked,
    /// It was given up by its reader.
    Terminated,
    /// It failed, or was delivered too often: a dead letter.
    Dead,
    /// Whoever asked has gone.
    Gone,
}

impl State {
    const ALL: [Self; 6] = [Self::Waiting, Self::Replied, Self::Acked, Self::Terminated, Self::Dead, Self::Gone];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Replied => "replied",
            Self::Acked => "acked",
            Self::Terminated => "terminated",
            Self::Dead => "dead",
            Self::Gone => "gone",
        }
    }

    pub(super) fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A message in a mailbox.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Its place in the mailbox.
    pub(crate) seq: u64,
    pub(crate) mailbox: Name,
    pub(crate) id: MessageId,
    pub(crate) thread: ThreadId,
    pub(crate) from: String,
    pub(crate) in_reply_to: Option<MessageId>,
    /// The qualified name of its payload.
    pub(crate) payload: String,
    pub(crate) envelope: String,
    pub(crate) at: Time,
    pub(crate) state: State,
    pub(crate) deliveries: u32,
    /// From when on it can be leased.
    pub(crate) due: Time,
    pub(crate) error: Option<String>,
}

/// What came of putting a message into its mailbox.
#[derive(Debug)]
pub(crate) enum Put {
    /// It waits.
    Waits,
    /// It is there from an earlier run, and was answered.
    Settled(Settlement),
}

/// Which messages of a mailbox are asked for.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    pub(crate) mailbox: Name,
    /// Behind that place.
    pub(crate) after: u64,
    pub(crate) limit: usize,
    /// Of that payload.
    pub(crate) payload: Option<String>,
    /// From that sender.
    pub(crate) peer: Option<String>,
    /// That came earlier.
    pub(crate) before: Option<Time>,
    pub(crate) dead: bool,
}

/// Some messages of a mailbox.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) items: Vec<Item>,
    pub(crate) has_more: bool,
    pub(crate) position: Position,
}

/// What is left of a mailbox.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    /// Up to this place something was forgotten.
    pub(crate) pruned: u64,
    /// The place of the oldest message.
    pub(crate) oldest: Option<u64>,
}

pub(super) const COLUMNS: &str =
    "seq, mailbox, id, thread, sender, in_reply_to, type, envelope, at, state, deliveries, due, error";

impl Store {
    /// Puts a message into its mailbox, once: one that is there waits on, or has its answer. One that has run before
    /// and is run again is waited for again.
    pub(crate) async fn put(&self, item: Item) -> Result<Put, StoreError> {
        self.write(move |db| {
            let id = *item.id.as_uuid().as_bytes();
            let mut again = db.prepare_cached("SELECT state, answer FROM item WHERE id = ?1")?;
            let found: Option<(String, Option<Vec<u8>>)> =
                again.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            let Some((state, answer)) = found else {
                let sql = "INSERT INTO item (mailbox, id, thread, sender, in_reply_to, type, envelope, at, state, live, \
                           deliveries, due) VALUES (:mailbox, :id, :thread, :sender, :in_reply_to, :type, :envelope, :at, \
                           'waiting', 1, 0, 0)";
                db.prepare_cached(sql)?.execute(named_params! {
                    ":mailbox": item.mailbox.as_str(),
                    ":id": id,
                    ":thread": item.thread.as_uuid().as_bytes(),
                    ":sender": item.from,
                    ":in_reply_to": item.in_reply_to.map(|id| *id.as_uuid().as_bytes()),
                    ":type": item.payload,
                    ":envelope": item.envelope,
                    ":at": item.at.as_nanos().cast_signed(),
                })?;
                return Ok(Put::Waits);
            };
            if let Some(settled) = settlement(&state, answer)? {
                return Ok(Put::Settled(settled));
            }
            let sql = "UPDATE item SET state = 'waiting', live = 1, ended = NULL WHERE id = ?1";
            db.prepare_cached(sql)?.execute([id])?;
            Ok(Put::Waits)
        })
        .await
    }

    /// Nobody waits for the answer to a message any more.
    pub(crate) fn abandon(&self, id: MessageId, now: Time) {
        let sql = "UPDATE item SET state = 'gone', live = 0, ended = ?2 WHERE id = ?1 AND state = 'waiting'";
        // It happens without being awaited.
        drop(
            self.write(move |db| {
                db.prepare_cached(sql)?.execute((id.as_uuid().as_bytes(), now.as_nanos().cast_signed()))
            }),
        );
    }

    /// Messages in order of their places.
    pub(crate) async fn page(&self, range: Range) -> Result<Page, StoreError> {
        self.read(move |db| {
            let mailbox = range.mailbox.as_str();
            let sql = format!(
                "SELECT {COLUMNS} FROM item WHERE mailbox = :mailbox AND seq > :after \
                 AND (:type IS NULL OR type = :type) AND (:peer IS NULL OR sender = :peer) \
                 AND (:before IS NULL OR at < :before) AND (NOT :dead OR state = 'dead') ORDER BY seq LIMIT :limit"
            );
            let mut some = db.prepare_cached(&sql)?;
            let items = some.query_map(
                named_params! {
                    ":mailbox": mailbox,
                    ":after": range.after.cast_signed(),
                    ":type": range.payload,
                    ":peer": range.peer,
                    ":before": range.before.map(|before| before.as_nanos().cast_signed()),
                    ":dead": range.dead,
                    ":limit": range.limit as i64 + 1,
                },
                item,
            )?;
            let mut items = items.collect::<rusqlite::Result<Vec<_>>>()?;
            let has_more = items.len() > range.limit;
            items.truncate(range.limit);
            let pruned = "SELECT seq FROM pruned WHERE mailbox = ?1";
            let pruned: Option<i64> = db.prepare_cached(pruned)?.query_row([mailbox], |row| row.get(0)).optional()?;
            let oldest = "SELECT min(seq) FROM item WHERE mailbox = ?1";
            let oldest: Option<i64> = db.prepare_cached(oldest)?.query_row([mailbox], |row| row.get(0))?;
            let position =
                Position { pruned: pruned.map_or(0, i64::cast_unsigned), oldest: oldest.map(i64::cast_unsigned) };
            Ok(Page { items, has_more, position })
        })
        .await
    }

    /// One message of any mailbox, and what it was answered with.
    pub(crate) async fn item(&self, id: MessageId) -> Result<Option<(Item, Option<Bytes>)>, StoreError> {
        self.read(move |db| {
            let sql = format!("SELECT {COLUMNS}, answer FROM item WHERE id = ?1");
            let found = |row: &Row<'_>| Ok((item(row)?, row.get::<_, Option<Vec<u8>>>(13)?.map(Bytes::from)));
            db.prepare_cached(&sql)?.query_row([id.as_uuid().as_bytes()], found).optional()
        })
        .await
    }
}

pub(super) fn item(row: &Row<'_>) -> rusqlite::Result<Item> {
    let (mailbox, state): (String, String) = (row.get(1)?, row.get(9)?);
    Ok(Item {
        seq: row.get::<_, i64>(0)?.cast_unsigned(),
        mailbox: Name::parse(&mailbox).map_err(|_| strange(1, &mailbox))?,
        id: MessageId::from_uuid(uuid(row.get(2)?)),
        thread: ThreadId::from_uuid(uuid(row.get(3)?)),
        from: row.get(4)?,
        in_reply_to: row.get::<_, Option<[u8; 16]>>(5)?.map(|id| MessageId::from_uuid(uuid(id))),
        payload: row.get(6)?,
        envelope: row.get(7)?,
        at: time(row, 8)?,
        state: State::of(&state).ok_or_else(|| strange(9, &state))?,
        deliveries: row.get(10)?,
        due: time(row, 11)?,
        error: row.get(12)?,
    })
}

pub(super) fn uuid(bytes: [u8; 16]) -> Uuid {
    Uuid::from_bytes(bytes)
}
