//! What is kept of pushes: where they go, how far they have come.

use rusqlite::{OptionalExtension, Row};

use super::items::uuid;
use super::{Store, StoreError};
use crate::vocab::{MessageId, Name, Time};

/// Until when nobody leases a message whose listener has said that it has it.
pub(crate) const TAKEN: Time = Time::from_nanos(i64::MAX as u64);

/// Where a listener wants its messages.
#[derive(Debug, Clone)]
pub(crate) struct Registered {
    pub(crate) mode: &'static str,
    /// Where to push them; without it, to what is declared.
    pub(crate) url: Option<String>,
    /// What is declared.
    pub(crate) declared: Option<String>,
}

impl Store {
    /// A remote listener is there.
    pub(crate) async fn register(&self, name: Name, place: Registered, now: Time) -> Result<(), StoreError> {
        self.write(move |db| {
            let sql = "INSERT OR REPLACE INTO listener (name, mode, at, url, declared) VALUES (?1, ?2, ?3, ?4, ?5)";
            let row = (name.as_str(), place.mode, now.as_nanos().cast_signed(), place.url, place.declared);
            db.prepare_cached(sql)?.execute(row).map(drop)
        })
        .await
    }

    /// Where a listener wants its messages pushed to, if it has said so since this was declared.
    pub(crate) async fn registered_url(&self, name: Name, declared: String) -> Result<Option<String>, StoreError> {
        self.read(move |db| {
            let sql = "SELECT url FROM listener WHERE name = ?1 AND url IS NOT NULL AND declared = ?2";
            db.prepare_cached(sql)?.query_row((name.as_str(), declared), |row| row.get(0)).optional()
        })
        .await
    }

    /// The messages of a mailbox that somebody waits for, oldest first.
    pub(crate) async fn awaited(&self, mailbox: Name) -> Result<Vec<MessageId>, StoreError> {
        self.read(move |db| {
            let sql = "SELECT id FROM item WHERE mailbox = ?1 AND state = 'waiting' AND live > 0 ORDER BY seq";
            let id = |row: &Row<'_>| Ok(MessageId::from_uuid(uuid(row.get(0)?)));
            db.prepare_cached(sql)?.query_map([mailbox.as_str()], id)?.collect()
        })
        .await
    }

    /// The dead letters of a mailbox, all of them or one.
    pub(crate) async fn dead(&self, mailbox: Name, one: Option<MessageId>) -> Result<Vec<MessageId>, StoreError> {
        self.read(move |db| {
            let sql =
                "SELECT id FROM item WHERE mailbox = ?1 AND state = 'dead' AND (?2 IS NULL OR id = ?2) ORDER BY seq";
            let id = |row: &Row<'_>| Ok(MessageId::from_uuid(uuid(row.get(0)?)));
            let one = one.map(|id| *id.as_uuid().as_bytes());
            db.prepare_cached(sql)?.query_map((mailbox.as_str(), one), id)?.collect()
        })
        .await
    }

    /// So many attempts were begun to push a message; what was said when the last one failed.
    pub(crate) async fn attempted(
        &self,
        id: MessageId,
        attempts: u32,
        error: Option<String>,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE item SET deliveries = ?2, error = coalesce(?3, error) WHERE id = ?1 AND state = 'waiting'";
        self.write(move |db| db.prepare_cached(sql)?.execute((id.as_uuid().as_bytes(), attempts, error)).map(drop))
            .await
    }

    /// The listener has a message that was pushed, and will answer it; a lease of an earlier run is over.
    pub(crate) async fn taken(&self, id: MessageId) -> Result<(), StoreError> {
        let sql = "UPDATE item SET due = ?2, receipt = NULL WHERE id = ?1 AND state = 'waiting'";
        let until = TAKEN.as_nanos().cast_signed();
        self.write(move |db| db.prepare_cached(sql)?.execute((id.as_uuid().as_bytes(), until)).map(drop)).await
    }

    /// Lets the messages of a mailbox be leased that were pushed by an earlier run. What a reader holds has a receipt,
    /// and stays with it.
    pub(crate) async fn pull(&self, mailbox: Name, deliveries: u32) -> Result<(), StoreError> {
        let sql = "UPDATE item SET due = 0, deliveries = 0 WHERE mailbox = ?1 AND state = 'waiting' \
                   AND receipt IS NULL AND (due = ?2 OR deliveries >= ?3)";
        let taken = TAKEN.as_nanos().cast_signed();
        self.write(move |db| db.prepare_cached(sql)?.execute((mailbox.as_str(), taken, deliveries)).map(drop)).await
    }
}
