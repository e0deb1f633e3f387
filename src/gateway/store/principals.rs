use rusqlite::{OptionalExtension, Row};

use super::{Store, StoreError};
use crate::gateway::token::Token;
use crate::shell::principal::{Kind, Principal, TokenHash};
use crate::vocab::{Name, NameError, Time};

impl Store {
    /// Lets somebody in from now on, with a new token: an older one of that name is good no more.
    ///
    /// # Errors
    /// [`StoreError`]: nothing has changed.
    pub async fn admit(&self, name: Name, kind: Kind, now: Time) -> Result<Token, StoreError> {
        let token = Token::draw();
        let hash = token.hash();
        self.write(move |db| {
            let sql = "INSERT OR REPLACE INTO principal VALUES (?1, ?2, ?3, ?4)";
            db.execute(sql, (name.as_str(), kind.as_str(), hash.0, now.as_nanos().cast_signed()))
        })
        .await?;
        Ok(token)
    }

    /// Lets somebody in no more; whether it was let in before.
    ///
    /// # Errors
    /// [`StoreError`]: nothing has changed.
    pub async fn dismiss(&self, name: Name) -> Result<bool, StoreError> {
        let gone = self.write(move |db| db.execute("DELETE FROM principal WHERE name = ?1", [name.as_str()])).await?;
        Ok(gone > 0)
    }

    /// Everybody who may come in, by name.
    ///
    /// # Errors
    /// [`StoreError`] if they can't be read.
    pub async fn principals(&self) -> Result<Vec<Principal>, StoreError> {
        self.read(|db| {
            let mut all = db.prepare_cached("SELECT name, kind, created FROM principal ORDER BY name")?;
            all.query_map([], principal)?.collect()
        })
        .await
    }

    /// Whose token that is.
    pub(crate) async fn bearer(&self, token: TokenHash) -> Result<Option<Principal>, StoreError> {
        self.read(move |db| {
            let mut one = db.prepare_cached("SELECT name, kind, created FROM principal WHERE token = ?1")?;
            one.query_row([token.0], principal).optional()
        })
        .await
    }
}

fn principal(row: &Row<'_>) -> rusqlite::Result<Principal> {
    let (name, kind): (String, String) = (row.get(0)?, row.get(1)?);
    Ok(Principal {
        name: Name::parse(&name).map_err(|error: NameError| strange(0, &error.to_string()))?,
        kind: Kind::parse(&kind).ok_or_else(|| strange(1, &kind))?,
        created: time(row, 2)?,
    })
}

/// A column that holds what nobody wrote.
pub(super) fn strange(column: usize, found: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, found.to_owned().into())
}

pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Time> {
    Ok(Time::from_nanos(row.get::<_, i64>(column)?.cast_unsigned()))
}
