//! Messages that ride on responses: leased to a session without a time, until it confirms them or is over.

use rusqlite::{Connection, named_params};

use super::items::{COLUMNS, Item, item, uuid};
use super::{Store, StoreError};
use crate::gateway::notices::Room;
use crate::vocab::{MessageId, Name, Time};

/// When a message is due that a session has.
const NEVER: i64 = i64::MAX;

/// How long a token is known after it was confirmed, in nanoseconds: an hour.
const KNOWN: i64 = 3600 * 1_000_000_000;

/// Which messages a session asks for.
#[derive(Debug)]
pub(crate) struct Reserve {
    pub(crate) mailbox: Name,
    pub(crate) session: [u8; 16],
    pub(crate) token: [u8; 16],
    pub(crate) now: Time,
    /// How often a message is given out.
    pub(crate) deliveries: u32,
    /// The first message comes in any case.
    pub(crate) room: Room,
}

/// A message that a session has confirmed.
#[derive(Debug)]
pub(crate) struct Confirmed {
    pub(crate) id: MessageId,
    /// Whether it ended by that: it may have had an answer before.
    pub(crate) ended: bool,
}

impl Store {
    /// Whether a mailbox holds something that nobody has.
    pub(crate) async fn pending(&self, mailbox: Name, now: Time, deliveries: u32) -> Result<bool, StoreError> {
        self.read(move |db| {
            let sql = "SELECT EXISTS (SELECT 1 FROM item WHERE mailbox = ?1 AND state = 'waiting' AND live > 0 \
                       AND due <= ?2 AND deliveries < ?3)";
            db.prepare_cached(sql)?
                .query_row((mailbox.as_str(), now.as_nanos().cast_signed(), deliveries), |row| row.get(0))
        })
        .await
    }

    /// Gives the oldest messages that nobody has to a session.
    ///
    /// # Cancel safety
    /// Once called, it happens without being awaited.
    pub(crate) fn reserve(&self, wanted: Reserve) -> impl Future<Output = Result<Vec<Item>, StoreError>> + use<> {
        self.write(move |db| {
            let items = free(db, &wanted)?;
            let mut take = db.prepare_cached("UPDATE item SET due = ?2, receipt = ?3 WHERE seq = ?1")?;
            let mut note = db.prepare_cached("INSERT INTO notice VALUES (?1, ?2, ?3, ?4, NULL)")?;
            for (number, item) in items.iter().enumerate() {
                take.execute((item.seq.cast_signed(), NEVER, wanted.token))?;
                note.execute((wanted.token, number as i64, wanted.session, item.id.as_uuid().as_bytes()))?;
            }
            Ok(items)
        })
    }

    /// A session has what came under a token: it ends like a message that is acknowledged. The same once more gives the
    /// same; a token that the session doesn't have gives nothing.
    pub(crate) async fn confirm(
        &self,
        session: [u8; 16],
        token: [u8; 16],
        now: Time,
    ) -> Result<Vec<Confirmed>, StoreError> {
        self.write(move |db| {
            let now = now.as_nanos().cast_signed();
            db.prepare_cached("DELETE FROM notice WHERE session = ?1 AND confirmed < ?2")?
                .execute((session, now.saturating_sub(KNOWN)))?;
            let sql = "SELECT item FROM notice WHERE token = ?1 AND session = ?2 ORDER BY number";
            let mut rows = db.prepare_cached(sql)?;
            let ids: Vec<[u8; 16]> =
                rows.query_map((token, session), |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            let sql = "UPDATE notice SET confirmed = coalesce(confirmed, ?3) WHERE token = ?1 AND session = ?2";
            db.prepare_cached(sql)?.execute((token, session, now))?;
            let sql = "UPDATE item SET state = 'acked', live = 0, ended = ?3 \
                       WHERE id = ?1 AND receipt = ?2 AND state = 'waiting'";
            let mut end = db.prepare_cached(sql)?;
            let mut confirm = |id| {
                let ended = end.execute((id, token, now))? > 0;
                Ok(Confirmed { id: MessageId::from_uuid(uuid(id)), ended })
            };
            ids.into_iter().map(&mut confirm).collect()
        })
        .await
    }

    /// What a session did not confirm is free again: all that it has, or what came under one token. The mailboxes that
    /// hold something of it.
    ///
    /// # Cancel safety
    /// Once called, it happens without being awaited.
    pub(crate) fn release(
        &self,
        session: [u8; 16],
        token: Option<[u8; 16]>,
    ) -> impl Future<Output = Result<Vec<Name>, StoreError>> + use<> {
        self.write(move |db| {
            let sql = "UPDATE item SET due = 0, receipt = NULL WHERE state = 'waiting' AND due = ?3 AND id IN \
                       (SELECT item FROM notice WHERE session = ?1 AND (?2 IS NULL OR token = ?2) AND token = receipt) \
                       RETURNING mailbox";
            let mut free = db.prepare_cached(sql)?;
            let freed = free.query_map((session, token, NEVER), |row| row.get::<_, String>(0))?;
            let mut freed = freed.collect::<rusqlite::Result<Vec<_>>>()?;
            db.prepare_cached("DELETE FROM notice WHERE session = ?1 AND (?2 IS NULL OR token = ?2)")?
                .execute((session, token))?;
            freed.sort();
            freed.dedup();
            Ok(freed.iter().filter_map(|name| Name::parse(name).ok()).collect())
        })
    }
}

/// What a session of an earlier run had is free again: it ended with the process.
pub(super) fn release_all(db: &Connection) -> rusqlite::Result<()> {
    let sql = "UPDATE item SET due = 0, receipt = NULL WHERE state = 'waiting' AND due = ?1 AND id IN \
               (SELECT item FROM notice)";
    db.execute(sql, [NEVER])?;
    db.execute("DELETE FROM notice", []).map(drop)
}

/// The oldest messages that nobody has, as many as there is room for; the first in any case.
fn free(db: &Connection, wanted: &Reserve) -> rusqlite::Result<Vec<Item>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM item WHERE mailbox = :mailbox AND state = 'waiting' AND live > 0 AND due <= :now \
         AND deliveries < :deliveries ORDER BY seq LIMIT :rows"
    );
    let mut free = db.prepare_cached(&sql)?;
    let free = free.query_map(
        named_params! {
            ":mailbox": wanted.mailbox.as_str(),
            ":now": wanted.now.as_nanos().cast_signed(),
            ":deliveries": wanted.deliveries,
            ":rows": wanted.room.rows as i64,
        },
        item,
    )?;
    let (mut items, mut bytes) = (Vec::new(), 0);
    for item in free {
        let item = item?;
        bytes += item.envelope.len();
        if bytes > wanted.room.bytes && !items.is_empty() {
            break;
        }
        items.push(item);
    }
    Ok(items)
}

#[cfg(test)]
mod tests;
