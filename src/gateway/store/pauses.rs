//! Which agents are told to rest: until somebody tells them to work, whatever happens to the organism meanwhile.

use super::{Store, StoreError};
use crate::vocab::{Name, Time};

impl Store {
    /// An agent is to rest from now on; one that does goes on resting.
    pub(crate) async fn pause(&self, name: Name, now: Time) -> Result<(), StoreError> {
        let sql = "INSERT OR IGNORE INTO pause (name, at) VALUES (?1, ?2)";
        let at = now.as_nanos().cast_signed();
        self.write(move |db| db.prepare_cached(sql)?.execute((name.as_str(), at)).map(drop)).await
    }

    /// An agent is to work again.
    pub(crate) async fn resume(&self, name: Name) -> Result<(), StoreError> {
        let sql = "DELETE FROM pause WHERE name = ?1";
        self.write(move |db| db.prepare_cached(sql)?.execute([name.as_str()]).map(drop)).await
    }

    /// Whether an agent is to rest.
    pub(crate) async fn is_paused(&self, name: Name) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM pause WHERE name = ?1";
        self.read(move |db| db.prepare_cached(sql)?.exists([name.as_str()])).await
    }
}
