//! The log in the database: compare and append.

use std::sync::Arc;

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::entry::{Entry, Kind, sum};
use super::lease::Guard;
use super::problem::{Problem, Trouble};
use super::server::Link;
use super::table::Change;

/// The end of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) seq: i64,
    pub(super) epoch: i64,
}

/// An entry to append.
#[derive(Debug)]
pub(super) struct New {
    pub(super) id: Uuid,
    pub(super) epoch: i64,
    pub(super) kind: Kind,
    pub(super) body: Vec<u8>,
}

/// Appends an entry behind the end of the log, as its owner knows it, and returns the new end.
///
/// # Errors
/// [`Problem::Fenced`] if another entry is there: then nothing was appended.
pub(super) async fn append(link: &Link, head: Head, new: Arc<New>) -> Result<Head, Problem> {
    link.persist(async |client, attempt| {
        // The answer to the attempt before may be lost, not its work.
        if attempt > 0
            && let Some(end) = settle(client, head, &new).await?
        {
            return Ok(end);
        }
        match try_append(client, head, &new, None).await {
            Ok(true) => Ok(Head { seq: head.seq + 1, epoch: new.epoch }),
            // No entry to follow, or one in its place already, which may be this one: an attempt whose connection was
            // lost went on in the server.
            Ok(false) => match settle(client, head, &new).await? {
                Some(end) => Ok(end),
                None => Err(lost(client, head).await?.into()),
            },
            Err(trouble) => Err(trouble),
        }
    })
    .await
}

/// Appends an entry if the one before it is there, none is in its place, and the guard allows it.
async fn try_append(client: &Client, head: Head, new: &New, guard: Option<&Guard>) -> Result<bool, Trouble> {
    let (kind, sum) = (new.kind as i16, sum(&new.body));
    let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = vec![
        (&head.seq, Type::INT8),
        (&head.epoch, Type::INT8),
        (&new.epoch, Type::INT8),
        (&new.id, Type::UUID),
        (&kind, Type::INT2),
        (&sum, Type::INT8),
        (&new.body, Type::BYTEA),
    ];
    let allowed = guard.map_or_else(String::new, |guard| format!(" AND {}", guard.condition(&mut parameters)));
    let append = format!(
        "INSERT INTO systole.log (part, seq, epoch, id, kind, sum, body) \
         SELECT part, seq + 1, $3, $4, $5, $6, $7 FROM systole.log WHERE part = 0 AND seq = $1 AND epoch = $2{allowed} \
         RETURNING seq"
    );
    match client.query_typed(&append, &parameters).await {
        Ok(rows) => Ok(!rows.is_empty()),
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Rereads the place behind the end: the end if this entry is there, nothing if none is.
async fn settle(client: &Client, head: Head, new: &New) -> Result<Option<Head>, Trouble> {
    let seq = head.seq + 1;
    let read = "SELECT id, epoch FROM systole.log WHERE part = 0 AND seq = $1";
    let rows = client.query_typed(read, &[(&seq, Type::INT8)]).await?;
    match rows.first() {
        None => Ok(None),
        Some(row) if row.get::<_, Uuid>(0) == new.id => Ok(Some(Head { seq, epoch: new.epoch })),
        Some(row) => Err(Problem::Fenced { epoch: row.get(1) }.into()),
    }
}

/// The reason why the entry at the end is not there any more.
async fn lost(client: &Client, head: Head) -> Result<Problem, Trouble> {
    Ok(match self::head(client).await? {
        Some(found) if found.seq > head.seq || found.epoch > head.epoch => Problem::Fenced { epoch: found.epoch },
        Some(_) | None => Problem::Lost { seq: head.seq },
    })
}

/// Reads the end of the log; none if there is no journal.
pub(super) async fn head(client: &Client) -> Result<Option<Head>, Trouble> {
    let read = "SELECT seq, epoch FROM systole.log WHERE part = 0 ORDER BY seq DESC LIMIT 1";
    let rows = client.query_typed(read, &[]).await?;
    Ok(rows.first().map(|row| Head { seq: row.get(0), epoch: row.get(1) }))
}

/// Takes the log over, by an entry of a new epoch, and fences feeds of the owner before. Returns the new end.
///
/// # Errors
/// [`Problem::Leased`] and [`Problem::NoLease`] if the guard does not allow it.
pub(super) async fn take(link: &Link, kind: Kind, id: Uuid, guard: Guard) -> Result<Head, Problem> {
    link.persist(async |client, _| {
        loop {
            let Some(head) = self::head(client).await? else { return Err(Problem::Missing.into()) };
            // An operator's retry begins an epoch that only the tables have.
            let rows = client.query_typed("SELECT max(epoch) FROM systole.meta WHERE log = 0", &[]).await?;
            let known = rows.first().and_then(|row| row.get::<_, Option<i64>>(0)).unwrap_or(0);
            let new = New { id, epoch: head.epoch.max(known) + 1, kind, body: Vec::new() };
            // An attempt whose answer was lost.
            let rows = client
                .query_typed(
                    "SELECT seq, epoch FROM systole.log WHERE part = 0 AND seq = $1 AND id = $2",
                    &[(&head.seq, Type::INT8), (&id, Type::UUID)],
                )
                .await?;
            let taken = match rows.first() {
                Some(row) => Head { seq: row.get(0), epoch: row.get(1) },
                None if try_append(client, head, &new, Some(&guard)).await? => {
                    Head { seq: head.seq + 1, epoch: new.epoch }
                }
                // Another entry came meanwhile: its owner is fenced by the next attempt.
                None => {
                    guard.check(client).await?;
                    continue;
                }
            };
            fence(client, taken.epoch).await?;
            return Ok(taken);
        }
    })
    .await
}

/// Fences feeds of earlier epochs, after an entry of this one.
async fn fence(client: &Client, epoch: i64) -> Result<(), Trouble> {
    let fence = "UPDATE systole.fed SET epoch = $1, backend = NULL WHERE part = 0 AND epoch < $1";
    client.query_typed(fence, &[(&epoch, Type::INT8)]).await?;
    Ok(())
}

/// Fences feeds of earlier epochs of the same owner.
pub(super) async fn own(link: &Link, epoch: i64) -> Result<(), Problem> {
    link.persist(async |client, _| {
        fence(client, epoch).await?;
        link.name(client).await
    })
    .await
}

/// Checks that the log still ends where its owner knows it.
///
/// # Errors
/// [`Problem::Fenced`] if another process has taken it over, [`Problem::Lost`] if its last entry is gone.
pub(super) async fn check(link: &Link, head: Head) -> Result<(), Problem> {
    link.persist(async |client, _| match self::head(client).await? {
        Some(found) if found == head => Ok(()),
        Some(_) | None => Err(lost(client, head).await?.into()),
    })
    .await
}

/// Rows for the tables, which follow the log up to an entry.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) epoch: i64,
    /// The last entry that the tables have.
    pub(super) from: i64,
    /// The last entry that they have then.
    pub(super) to: i64,
    pub(super) changes: Vec<Change>,
}

/// Writes rows to the tables in one statement, and deletes the entries of the log that are in them.
///
/// # Errors
/// [`Problem::Fenced`] if another process has taken the log over.
pub(super) async fn feed(link: &Link, feed: Feed) -> Result<(), Problem> {
    let mut sql =
        "WITH fence AS (UPDATE systole.fed SET seq = $1 WHERE part = 0 AND epoch = $2 AND seq = $3 RETURNING seq), \
                   entries AS (DELETE FROM systole.log WHERE part = 0 AND seq < $1 AND EXISTS (SELECT FROM fence))"
            .to_owned();
    let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> =
        vec![(&feed.to, Type::INT8), (&feed.epoch, Type::INT8), (&feed.from, Type::INT8)];
    feed.changes.iter().for_each(|change| change.write(&mut sql, &mut parameters));
    sql.push_str(" SELECT seq FROM fence");
    link.persist(async |client, attempt| {
        if !client.query_typed(&sql, &parameters).await?.is_empty() {
            return Ok(());
        }
        let rows = client.query_typed("SELECT epoch, seq FROM systole.fed WHERE part = 0", &[]).await?;
        let found = rows.first().map(|row| (row.get::<_, i64>(0), row.get::<_, i64>(1)));
        match found {
            // The answer to an attempt before was lost.
            Some((epoch, seq)) if attempt > 0 && epoch == feed.epoch && seq == feed.to => Ok(()),
            Some((epoch, _)) if epoch != feed.epoch => Err(Problem::Fenced { epoch }.into()),
            Some(_) | None => Err(Problem::Damaged { what: "the place to which its tables are fed".to_owned() }.into()),
        }
    })
    .await
}

/// Makes a journal in a database without one, with these rows; they follow the first entry of the log. Nothing happens if
/// there is one already: returns whether it was made.
pub(super) async fn create(link: &Link, epoch: i64, id: Uuid, changes: Vec<Change>) -> Result<bool, Problem> {
    let mut sql = "WITH fence AS (INSERT INTO systole.fed (part, seq, epoch) VALUES (0, 1, $1) RETURNING seq), \
                   entries AS (INSERT INTO systole.log (part, seq, epoch, id, kind, sum, body) VALUES (0, 1, $1, $2, $3, $4, ''))"
        .to_owned();
    let (kind, sum) = (Kind::Epoch as i16, sum(&[]));
    let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> =
        vec![(&epoch, Type::INT8), (&id, Type::UUID), (&kind, Type::INT2), (&sum, Type::INT8)];
    changes.iter().for_each(|change| change.write(&mut sql, &mut parameters));
    sql.push_str(" SELECT seq FROM fence");
    link.persist(async |client, _| {
        let made = match client.query_typed(&sql, &parameters).await {
            Ok(_) => true,
            Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => false,
            Err(error) => return Err(error.into()),
        };
        let first = "SELECT FROM systole.log WHERE part = 0 AND seq = 1 AND id = $1";
        Ok(made || !client.query_typed(first, &[(&id, Type::UUID)]).await?.is_empty())
    })
    .await
}

/// Reads the entries behind one, in order.
pub(super) async fn entries(client: &Client, after: i64) -> Result<Vec<Entry>, Trouble> {
    let read = "SELECT seq, epoch, kind, sum, body FROM systole.log WHERE part = 0 AND seq > $1 ORDER BY seq";
    let rows = client.query_typed(read, &[(&after, Type::INT8)]).await?;
    let entry = |row: &tokio_postgres::Row| Entry {
        seq: row.get(0),
        epoch: row.get(1),
        kind: row.get(2),
        sum: row.get(3),
        body: row.get(4),
    };
    Ok(rows.iter().map(entry).collect())
}
