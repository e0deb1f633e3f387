//! Principals in the database: written and read there, whether the organism runs or not.

use std::sync::Arc;

use rusqlite::{Connection, params_from_iter};
use systole_core::journal::JournalError;
use systole_core::vocab::{Name, Time};
use tokio_postgres::types::Type;

use super::super::principal::PrincipalRow;
use super::super::query::{Bearers, QueryError};
use super::super::row::{Record, load, write};
use super::super::store::{Answering, PrincipalStore};
use super::super::sum::Sums;
use super::problem::Problem;
use super::server::{Link, Server};
use super::table::{Change, PRINCIPALS, Table, tables, values};
use crate::principal::{Principal, PrincipalKind, TokenHash};
use crate::sqlite::FileProblem;
use crate::token::Token;

/// Principals of a journal in a database.
pub(super) struct PostgresPrincipals {
    server: Server,
    link: Arc<Link>,
    /// A table in memory, in which rows get their columns and their sums.
    db: Connection,
    table: Table,
}

impl PostgresPrincipals {
    pub(super) fn open(server: Server) -> Result<Self, JournalError> {
        let made = || {
            let db = Connection::open_in_memory()?;
            db.execute_batch(include_str!("../schema.sql"))?;
            let table = tables(&db)?.into_iter().find(|table| table.name == PRINCIPALS);
            Ok::<_, rusqlite::Error>(table.map(|table| (db, table)))
        };
        let made = made().ok().flatten();
        let (db, table) = made.ok_or_else(|| Problem::Ended.of(&server.address))?;
        Ok(Self { link: Link::new(&server.address), server, db, table })
    }

    fn told(&self, error: impl Into<FileProblem>) -> JournalError {
        Problem::Damaged { what: format!("table principal ({})", error.into()) }.of(&self.server.address)
    }

    /// Reads the principals that match a condition into memory, and returns them.
    fn read(&self) -> Result<Vec<Principal>, JournalError> {
        let (link, table) = (self.link.clone(), self.table.clone());
        let rows = self.server.wait(move || async move {
            let sql = format!("SELECT {} FROM systole.principal WHERE log = 0 ORDER BY name", table.names());
            link.briefly(async |client, _| {
                let rows = client.query_typed(&sql, &[]).await?;
                Ok(rows.iter().map(|row| values(&table, row)).collect::<Result<Vec<_>, _>>()?)
            })
            .await
        })?;
        let read = || -> Result<Vec<Principal>, FileProblem> {
            self.db.execute("DELETE FROM principal", [])?;
            let mut insert = self.db.prepare(&format!(
                "INSERT INTO principal ({}) VALUES ({})",
                self.table.names(),
                vec!["?"; self.table.columns.len()].join(", ")
            ))?;
            rows.into_iter().try_for_each(|row| insert.execute(params_from_iter(row)).map(drop))?;
            let mut select = self.db.prepare(&[PrincipalRow::SELECT, "ORDER BY name"].concat())?;
            let (mut rows, mut found) = (select.query([])?, Vec::new());
            while let Some(row) = rows.next()? {
                found.push(load::<PrincipalRow>(row, &mut Sums::default())?.record.principal);
            }
            Ok(found)
        };
        read().map_err(|problem| self.told(problem))
    }
}

impl PrincipalStore for PostgresPrincipals {
    fn admit(&mut self, name: Name, kind: PrincipalKind, now: Time) -> Result<Token, JournalError> {
        let token = Token::draw();
        let row = PrincipalRow { principal: Principal { name, kind, created: now }, token: token.hash() };
        let change = || -> rusqlite::Result<Change> {
            self.db.execute("DELETE FROM principal", [])?;
            let mut insert = self.db.prepare(PrincipalRow::INSERT)?;
            write(&mut insert, &row, now.as_nanos().cast_signed(), &mut Sums::default())?;
            let mut change = Change::new(&self.table);
            let mut select = self.db.prepare(&format!("SELECT {} FROM principal", self.table.names()))?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                change.put(row, 0)?;
            }
            Ok(change)
        };
        let change = change().map_err(|error| self.told(error))?;
        let link = self.link.clone();
        self.server.wait(move || async move {
            let (mut sql, mut parameters) = ("WITH fence AS (SELECT)".to_owned(), Vec::new());
            change.write(&mut sql, &mut parameters);
            sql.push_str(" SELECT FROM fence");
            link.briefly(async |client, _| Ok(client.query_typed(&sql, &parameters).await.map(drop)?)).await
        })?;
        Ok(token)
    }

    fn dismiss(&mut self, name: &Name) -> Result<bool, JournalError> {
        let (link, name) = (self.link.clone(), name.as_str().to_owned());
        self.server.wait(move || async move {
            link.briefly(async |client, attempt| {
                let dismiss = "DELETE FROM systole.principal WHERE log = 0 AND name = $1 RETURNING name";
                let rows = client.query_typed(dismiss, &[(&name, Type::TEXT)]).await?;
                // After a lost answer it may be gone by the attempt before.
                Ok(!rows.is_empty() || attempt > 0)
            })
            .await
        })
    }

    fn list(&self) -> Result<Vec<Principal>, JournalError> {
        self.read()
    }
}

/// Finds principals by their tokens, for the queries of a running organism.
pub(super) struct PostgresBearers {
    server: Arc<Server>,
    link: Arc<Link>,
    /// True if queries are answered on the calling threads.
    here: bool,
}

impl PostgresBearers {
    pub(super) fn new(server: Arc<Server>, here: bool) -> Self {
        Self { link: Link::new(&server.address), server, here }
    }
}

impl Bearers for PostgresBearers {
    fn find(&self, token: TokenHash) -> Answering<'_, Option<Principal>> {
        let (tell, told) = tokio::sync::oneshot::channel();
        let link = self.link.clone();
        let begun = self.server.begin(move || async move {
            let find = "SELECT name, kind, created FROM systole.principal WHERE log = 0 AND token = $1";
            let token = token.0.to_vec();
            let found = link
                .briefly(async |client, _| {
                    let rows = client.query_typed(find, &[(&token, Type::BYTEA)]).await?;
                    let damaged = || Problem::Damaged { what: "a row of table principal".to_owned() };
                    let read = |row: &tokio_postgres::Row| {
                        let name = Name::parse(row.try_get::<_, &str>(0).ok()?).ok()?;
                        let kind = PrincipalKind::parse(row.try_get(1).ok()?)?;
                        let created = Time::from_nanos(row.try_get::<_, i64>(2).ok()?.cast_unsigned());
                        Some(Principal { name, kind, created })
                    };
                    Ok(rows.first().map(|row| read(row).ok_or_else(damaged)).transpose()?)
                })
                .await;
            // The request may have been dropped.
            let _ = tell.send(found);
            Ok(())
        });
        if self.here {
            // The only thread may wait for nothing else.
            let _ = begun.wait(&self.server);
        }
        Box::pin(async move {
            let found = told.await.unwrap_or(Err(Problem::Ended));
            found.map_err(|problem| {
                let text = problem.to_string();
                QueryError::new(problem.of(&self.server.address), text)
            })
        })
    }
}
