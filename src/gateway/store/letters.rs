//! Answers to a client that are put into a mailbox, too: to be read there, in the order of all that comes.

use rusqlite::{Connection, named_params};

use super::items::Item;

/// Puts an answer into its mailbox, once. Nobody waits for an answer to it, so it is over from the start.
pub(super) fn put(db: &Connection, item: &Item) -> rusqlite::Result<()> {
    let sql = "INSERT OR IGNORE INTO item (mailbox, id, thread, sender, in_reply_to, type, envelope, at, state, live, \
               deliveries, due, ended) VALUES (:mailbox, :id, :thread, :sender, :in_reply_to, :type, :envelope, :at, \
               :state, 0, 0, 0, :at)";
    db.prepare_cached(sql)?.execute(named_params! {
        ":mailbox": item.mailbox.as_str(),
        ":id": item.id.as_uuid().as_bytes(),
        ":thread": item.thread.as_uuid().as_bytes(),
        ":sender": item.from,
        ":in_reply_to": item.in_reply_to.map(|id| *id.as_uuid().as_bytes()),
        ":type": item.payload,
        ":envelope": item.envelope,
        ":at": item.at.as_nanos().cast_signed(),
        ":state": item.state.as_str(),
    })?;
    Ok(())
}
