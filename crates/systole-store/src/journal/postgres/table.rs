//! The tables of a journal, as they are moved between SQLite and PostgreSQL: columns as arrays, and rows as values.

use std::fmt::Write;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row};
use tokio_postgres::types::{ToSql, Type};

use super::problem::Problem;

/// The table of an SQLite file that another database has no use for: steps that are not in the other tables yet.
const BATCHES: &str = "batch";

/// The table that other processes write while the organism runs: it is not fed.
pub(super) const PRINCIPALS: &str = "principal";

/// A table.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// The names of the columns of its key, in order.
    pub(super) key: Vec<String>,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// True if it is never `NULL`.
    #[cfg_attr(not(test), expect(dead_code, reason = "the layout of a database is compared with it"))]
    pub(super) required: bool,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Text,
    Blob,
}

/// Reads the tables of a journal in an SQLite file.
pub(super) fn tables(db: &Connection) -> rusqlite::Result<Vec<Table>> {
    let mut names =
        db.prepare("SELECT name FROM main.sqlite_master WHERE type = 'table' AND name <> ?1 ORDER BY name")?;
    let names = names.query_map([BATCHES], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    names.into_iter().map(|name| table(db, name)).collect()
}

fn table(db: &Connection, name: String) -> rusqlite::Result<Table> {
    let mut info = db.prepare("SELECT name, type, \"notnull\", pk FROM pragma_table_info(?1) ORDER BY cid")?;
    let rows = info.query_map([&name], |row| {
        let kind = match row.get_ref(1)?.as_str()? {
            "INTEGER" => Kind::Integer,
            "BLOB" => Kind::Blob,
            _ => Kind::Text,
        };
        Ok((Column { name: row.get(0)?, kind, required: row.get(2)? }, row.get::<_, i64>(3)?))
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut key: Vec<_> =
        rows.iter().filter(|(_, place)| *place > 0).map(|(of, place)| (*place, of.name.clone())).collect();
    key.sort();
    let key = key.into_iter().map(|(_, name)| name).collect();
    Ok(Table { name, columns: rows.into_iter().map(|(column, _)| column).collect(), key })
}

impl Table {
    /// The names of all columns.
    pub(super) fn names(&self) -> String {
        self.columns.iter().map(|column| &*column.name).collect::<Vec<_>>().join(", ")
    }

    /// Makes empty arrays, one for each of these columns.
    fn arrays<'a>(&self, names: impl Iterator<Item = &'a String>) -> Vec<Array> {
        let kind = |name: &String| self.columns.iter().find(|column| column.name == *name).map(|column| column.kind);
        names.map(|name| Array::new(kind(name).unwrap_or(Kind::Text))).collect()
    }

    /// Makes empty arrays for whole rows.
    pub(super) fn rows(&self) -> Vec<Array> {
        self.arrays(self.columns.iter().map(|column| &column.name))
    }
}

/// The values of a column.
#[derive(Debug)]
pub(super) enum Array {
    Integer(Vec<Option<i64>>),
    Text(Vec<Option<String>>),
    Blob(Vec<Option<Vec<u8>>>),
}

impl Array {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Self::Integer(Vec::new()),
            Kind::Text => Self::Text(Vec::new()),
            Kind::Blob => Self::Blob(Vec::new()),
        }
    }

    fn push(&mut self, value: ValueRef<'_>) -> rusqlite::Result<()> {
        match self {
            Self::Integer(all) => all.push(value.as_i64_or_null()?),
            Self::Text(all) => all.push(value.as_str_or_null()?.map(escape)),
            Self::Blob(all) => all.push(value.as_blob_or_null()?.map(<[u8]>::to_vec)),
        }
        Ok(())
    }

    fn parameter(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Self::Integer(all) => (all, Type::INT8_ARRAY),
            Self::Text(all) => (all, Type::TEXT_ARRAY),
            Self::Blob(all) => (all, Type::BYTEA_ARRAY),
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::Integer(_) => "bigint[]",
            Self::Text(_) => "text[]",
            Self::Blob(_) => "bytea[]",
        }
    }
}

/// Adds a row of SQLite, from a column on, to arrays.
pub(super) fn push(arrays: &mut [Array], row: &Row<'_>, from: usize) -> rusqlite::Result<()> {
    arrays.iter_mut().enumerate().try_for_each(|(at, array)| array.push(row.get_ref(from + at)?))
}

/// Changes of a table: rows that are there, and keys of rows that are gone.
#[derive(Debug)]
pub(super) struct Change {
    table: Table,
    rows: Vec<Array>,
    count: usize,
    gone: Vec<Array>,
    gone_count: usize,
}

impl Change {
    pub(super) fn new(table: &Table) -> Self {
        Self { rows: table.rows(), gone: table.arrays(table.key.iter()), table: table.clone(), count: 0, gone_count: 0 }
    }

    /// Adds a row of all columns, from a column of `row` on.
    pub(super) fn put(&mut self, row: &Row<'_>, from: usize) -> rusqlite::Result<()> {
        self.count += 1;
        push(&mut self.rows, row, from)
    }

    /// Adds the key of a row that is gone: the first columns of `row`.
    pub(super) fn remove(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        self.gone_count += 1;
        push(&mut self.gone, row, 0)
    }

    /// Number of rows that changed.
    pub(super) fn len(&self) -> usize {
        self.count + self.gone_count
    }

    /// Writes the parts of a statement that make the changes, if its part `fence` has a row. `parameters` has those of
    /// before.
    pub(super) fn write<'a>(&'a self, sql: &mut String, parameters: &mut Vec<(&'a (dyn ToSql + Sync), Type)>) {
        let Self { table, rows, gone, .. } = self;
        let mut arrays = |arrays: &'a [Array]| {
            let each = arrays.iter().map(|array| {
                parameters.push(array.parameter());
                format!("${}::{}", parameters.len(), array.type_name())
            });
            each.collect::<Vec<_>>().join(", ")
        };
        let (name, names, key) = (&table.name, table.names(), table.key.join(", "));
        if self.gone_count > 0 {
            let gone = arrays(gone);
            let same = table.key.iter().map(|key| format!("old.{key} = gone.{key}")).collect::<Vec<_>>().join(" AND ");
            // Writing to a text can't fail.
            let _ = write!(
                sql,
                ", gone_{name} AS (DELETE FROM systole.{name} old USING unnest({gone}) gone ({key}) \
                 WHERE old.log = 0 AND {same} AND EXISTS (SELECT FROM fence))"
            );
        }
        if self.count > 0 {
            let rows = arrays(rows);
            let others = table.columns.iter().filter(|column| !table.key.contains(&column.name));
            let set = others.map(|column| format!("{0} = excluded.{0}", column.name)).collect::<Vec<_>>().join(", ");
            let _ = write!(
                sql,
                ", put_{name} AS (INSERT INTO systole.{name} (log, {names}) SELECT 0, put.* FROM unnest({rows}) put \
                 WHERE EXISTS (SELECT FROM fence) ON CONFLICT (log, {key}) DO UPDATE SET {set})"
            );
        }
    }
}

/// Reads a row of PostgreSQL as values of SQLite.
pub(super) fn values(table: &Table, row: &tokio_postgres::Row) -> Result<Vec<Value>, Problem> {
    let damaged =
        |error: tokio_postgres::Error| Problem::Damaged { what: format!("a row of {} ({error})", table.name) };
    let value = |(at, column): (usize, &Column)| {
        let value = match column.kind {
            Kind::Integer => row.try_get::<_, Option<i64>>(at).map(|value| value.map(Value::Integer)),
            Kind::Text => row.try_get::<_, Option<&str>>(at).map(|value| value.map(|text| Value::Text(unescape(text)))),
            Kind::Blob => row.try_get::<_, Option<Vec<u8>>>(at).map(|value| value.map(Value::Blob)),
        };
        value.map(|value| value.unwrap_or(Value::Null)).map_err(damaged)
    };
    table.columns.iter().enumerate().map(value).collect()
}

/// The mark before a zero byte, which PostgreSQL's texts can't have, and before itself: a character of a private plane,
/// which nothing else assigns.
const MARK: char = '\u{f0000}';
const ZERO: char = '0';

fn escape(text: &str) -> String {
    if !text.contains(['\0', MARK]) {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\0' => escaped.extend([MARK, ZERO]),
            MARK => escaped.extend([MARK, MARK]),
            other => escaped.push(other),
        }
    }
    escaped
}

fn unescape(text: &str) -> String {
    if !text.contains(MARK) {
        return text.to_owned();
    }
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = rest.next() {
        match c {
            MARK => plain.extend(rest.next().map(|escaped| if escaped == ZERO { '\0' } else { escaped })),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_text_comes_back_and_has_no_zero_byte_meanwhile(text in "[\\x00a0\u{f0000}é]*") {
            let escaped = escape(&text);
            prop_assert!(!escaped.contains('\0'));
            prop_assert_eq!(unescape(&escaped), text);
        }
    }

    #[test]
    fn tables_have_their_columns_in_order_and_their_keys() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("../schema.sql")).unwrap();
        let tables = tables(&db).unwrap();
        let act = tables.iter().find(|table| table.name == "act").unwrap();
        assert_eq!(act.key, ["at", "place"]);
        assert!(act.names().starts_with("place, operator, act"), "{}", act.names());
        assert!(tables.iter().all(|table| table.name != BATCHES && !table.key.is_empty()));
    }
}
