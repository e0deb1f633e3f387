//! Looking through a mailbox: what came, from whom and when, whatever became of it.

use rusqlite::named_params;

use super::items::{COLUMNS, Item, item};
use super::{Store, StoreError};
use crate::vocab::{Name, QName, Time};

/// What is looked for in a mailbox.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) mailbox: Name,
    /// Behind that place.
    pub(crate) after: u64,
    pub(crate) limit: usize,
    /// Of that payload; or of its namespace alone, where the local name is not told.
    pub(crate) of: Of,
    /// From one of these senders.
    pub(crate) senders: Option<Vec<Name>>,
    /// That came at that time or later.
    pub(crate) since: Option<Time>,
    /// That came earlier.
    pub(crate) before: Option<Time>,
    /// That has no answer and can have one.
    pub(crate) waiting: bool,
}

/// Of which kind.
#[derive(Debug, Clone)]
pub(crate) enum Of {
    /// Of that payload.
    Payload(QName),
    /// Of any payload of that namespace.
    Namespace(&'static str),
}

impl Store {
    /// What is found, oldest first.
    pub(crate) async fn history(&self, of: History) -> Result<Vec<Item>, StoreError> {
        self.read(move |db| {
            let sql = format!(
                "SELECT {COLUMNS} FROM item WHERE mailbox = :mailbox AND seq > :after AND substr(type, 1, length(:type)) = :type \
                 AND (:whole = 0 OR type = :type) AND (:senders IS NULL OR sender IN (SELECT value FROM json_each(:senders))) \
                 AND (:since IS NULL OR at >= :since) AND (:before IS NULL OR at < :before) \
                 AND (NOT :waiting OR state = 'waiting') ORDER BY seq LIMIT :limit"
            );
            let (kind, whole) = match &of.of {
                Of::Payload(payload) => (payload.to_string(), true),
                Of::Namespace(namespace) => (format!("{{{namespace}}}"), false),
            };
            let names = |names: &Vec<Name>| serde_json::json!(names.iter().map(Name::as_str).collect::<Vec<_>>());
            let mut some = db.prepare_cached(&sql)?;
            let found = some.query_map(
                named_params! {
                    ":mailbox": of.mailbox.as_str(),
                    ":after": of.after.cast_signed(),
                    ":type": kind,
                    ":whole": whole,
                    ":senders": of.senders.as_ref().map(|senders| names(senders).to_string()),
                    ":since": of.since.map(|since| since.as_nanos().cast_signed()),
                    ":before": of.before.map(|before| before.as_nanos().cast_signed()),
                    ":waiting": of.waiting,
                    ":limit": i64::try_from(of.limit).unwrap_or(i64::MAX),
                },
                item,
            )?;
            found.collect()
        })
        .await
    }
}
