//! What clients sent, and what came back.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row};

use super::items::{Item, uuid};
use super::principals::time;
use super::{Store, StoreError, letters};
use crate::vocab::{MessageId, Name, ThreadId, Time};

/// A message on its way into the organism.
#[derive(Debug, Clone)]
pub(crate) struct Submission {
    pub(crate) id: MessageId,
    pub(crate) principal: Name,
    /// The conversation that it opens: by it the organism's journal knows whether it has it.
    pub(crate) root: ThreadId,
    pub(crate) envelope: Bytes,
    pub(crate) at: Time,
    /// `Idempotency-Key`, and the digest of what came with it.
    pub(crate) key: Option<(String, [u8; 32])>,
}

/// What came of accepting a message.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// It is kept.
    Kept,
    /// It came before, under the same key.
    Before(MessageId),
    /// Another message came before under the same key.
    KeyReused,
    /// As many as may wait for the organism do.
    Full,
}

/// What is known of a message that a client sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) id: MessageId,
    pub(crate) principal: String,
    pub(crate) root: ThreadId,
    pub(crate) at: Time,
    pub(crate) queued: bool,
    pub(crate) attempts: u32,
    pub(crate) error: Option<String>,
    pub(crate) replies: Vec<Reply>,
}

/// Something that came back.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// Its number in the organism's journal.
    pub(crate) number: u64,
    pub(crate) from: String,
    pub(crate) payload: String,
    pub(crate) envelope: String,
    /// The code of the fault, if it is one.
    pub(crate) fault: Option<String>,
}

impl Store {
    /// Keeps a message until the organism has it; `cap` may wait for that.
    pub(crate) async fn accept(&self, submission: Submission, cap: usize) -> Result<Accepted, StoreError> {
        self.write(move |db| {
            let principal = submission.principal.as_str();
            if let Some((key, digest)) = &submission.key {
                let sql = "SELECT digest, message FROM idempotency WHERE principal = ?1 AND key = ?2";
                let found: Option<([u8; 32], [u8; 16])> = db
                    .prepare_cached(sql)?
                    .query_row((principal, key), |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?;
                match found {
                    Some((found, message)) if found == *digest => {
                        return Ok(Accepted::Before(MessageId::from_uuid(uuid(message))));
                    }
                    Some(_) => return Ok(Accepted::KeyReused),
                    None => {}
                }
            }
            let waiting = "SELECT count(*) FROM sent WHERE state = 'accepted'";
            let waiting: i64 = db.prepare_cached(waiting)?.query_row([], |row| row.get(0))?;
            if waiting as usize >= cap {
                return Ok(Accepted::Full);
            }
            keep(db, &submission)?;
            Ok(Accepted::Kept)
        })
        .await
    }

    /// What the organism is not known to have, oldest first.
    pub(crate) async fn accepted(&self) -> Result<Vec<Submission>, StoreError> {
        self.read(|db| {
            let sql = "SELECT id, principal, root, envelope, at FROM sent WHERE state = 'accepted' ORDER BY at, id";
            let mut all = db.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                let principal: String = row.get(1)?;
                Ok(Submission {
                    id: MessageId::from_uuid(uuid(row.get(0)?)),
                    principal: Name::parse(&principal).map_err(|_| super::principals::strange(1, &principal))?,
                    root: ThreadId::from_uuid(uuid(row.get(2)?)),
                    envelope: row.get::<_, String>(3)?.into(),
                    at: time(row, 4)?,
                    key: None,
                })
            };
            all.query_map([], read)?.collect()
        })
        .await
    }

    /// The organism has a message.
    pub(crate) async fn queued(&self, id: MessageId) -> Result<(), StoreError> {
        let sql = "UPDATE sent SET state = 'queued', attempts = attempts + 1, error = NULL WHERE id = ?1";
        self.write(move |db| db.prepare_cached(sql)?.execute([id.as_uuid().as_bytes()]).map(drop)).await
    }

    /// The organism did not take a message.
    pub(crate) async fn refused(&self, id: MessageId, why: String) -> Result<(), StoreError> {
        let sql = "UPDATE sent SET attempts = attempts + 1, error = ?2 WHERE id = ?1";
        self.write(move |db| db.prepare_cached(sql)?.execute((id.as_uuid().as_bytes(), why)).map(drop)).await
    }

    /// Something came back. The same once more, after a crash, is nothing new.
    /// `copy` is put into its mailbox with it.
    pub(crate) async fn answered(
        &self,
        id: MessageId,
        reply: Reply,
        copy: Option<Item>,
        now: Time,
    ) -> Result<(), StoreError> {
        self.write(move |db| {
            let (key, now) = (*id.as_uuid().as_bytes(), now.as_nanos().cast_signed());
            let sql = "INSERT OR IGNORE INTO answer SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 \
                       WHERE EXISTS (SELECT 1 FROM sent WHERE id = ?1)";
            let number = reply.number.cast_signed();
            let row = (key, number, reply.from, reply.payload, reply.envelope, reply.fault, now);
            let new = db.prepare_cached(sql)?.execute(row)? > 0;
            if let Some(copy) = copy.filter(|_| new) {
                letters::put(db, &copy)?;
            }
            let sql = "UPDATE sent SET state = 'queued', ended = ?2 WHERE id = ?1";
            db.prepare_cached(sql)?.execute((key, now)).map(drop)
        })
        .await
    }

    /// What is known of a message.
    pub(crate) async fn sent(&self, id: MessageId) -> Result<Option<Sent>, StoreError> {
        self.read(move |db| {
            let key = id.as_uuid().as_bytes();
            let sql = "SELECT principal, root, at, state, attempts, error FROM sent WHERE id = ?1";
            let found = db.prepare_cached(sql)?.query_row([key], |row| sent(row, id)).optional()?;
            let Some(mut sent) = found else { return Ok(None) };
            let sql = "SELECT number, sender, type, envelope, fault FROM answer WHERE message = ?1 ORDER BY at, number";
            let mut replies = db.prepare_cached(sql)?;
            sent.replies = replies.query_map([key], reply)?.collect::<rusqlite::Result<_>>()?;
            Ok(Some(sent))
        })
        .await
    }
}

fn keep(db: &Connection, submission: &Submission) -> rusqlite::Result<()> {
    let Submission { id, principal, root, envelope, at, key } = submission;
    let (id, principal) = (id.as_uuid().as_bytes(), principal.as_str());
    let envelope = String::from_utf8_lossy(envelope);
    let sql = "INSERT INTO sent VALUES (?1, ?2, ?3, ?4, ?5, 'accepted', 0, NULL, NULL)";
    let at = at.as_nanos().cast_signed();
    db.prepare_cached(sql)?.execute((id, principal, root.as_uuid().as_bytes(), envelope, at))?;
    if let Some((key, digest)) = key {
        let sql = "INSERT INTO idempotency VALUES (?1, ?2, ?3, ?4)";
        db.prepare_cached(sql)?.execute((principal, key, digest, id))?;
    }
    Ok(())
}

fn sent(row: &Row<'_>, id: MessageId) -> rusqlite::Result<Sent> {
    Ok(Sent {
        id,
        principal: row.get(0)?,
        root: ThreadId::from_uuid(uuid(row.get(1)?)),
        at: time(row, 2)?,
        queued: row.get::<_, String>(3)? == "queued",
        attempts: row.get(4)?,
        error: row.get(5)?,
        replies: Vec::new(),
    })
}

fn reply(row: &Row<'_>) -> rusqlite::Result<Reply> {
    Ok(Reply {
        number: row.get::<_, i64>(0)?.cast_unsigned(),
        from: row.get(1)?,
        payload: row.get(2)?,
        envelope: row.get(3)?,
        fault: row.get(4)?,
    })
}
