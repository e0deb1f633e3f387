//! Principals as rows.

use rusqlite::types::ToSqlOutput;
use systole_core::vocab::Time;

use super::row::{Cells, Record, blob, number, statements, text};
use crate::principal::{Principal, PrincipalKind, TokenHash};

/// A principal with the hash of its token.
pub(super) struct PrincipalRow {
    pub(super) principal: Principal,
    pub(super) token: TokenHash,
}

impl Record for PrincipalRow {
    statements!("principal", "0", "NULL", "name, kind, created, token", "?, ?, ?, ?");

    fn cells(&self, cell: &mut dyn FnMut(ToSqlOutput<'_>) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        let Principal { name, kind, created } = &self.principal;
        cell(text(name.as_str().as_bytes()))?;
        cell(text(kind.as_str().as_bytes()))?;
        cell(number(created.as_nanos()))?;
        cell(blob(&self.token.0))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        let principal = Principal {
            name: cells.name()?,
            kind: PrincipalKind::parse(cells.text()?)?,
            created: Time::from_nanos(cells.number()?),
        };
        Some(Self { principal, token: TokenHash(cells.blob()?) })
    }
}
