//! The layout of a database: its version, and how it comes from one to the next.

use tokio_postgres::Client;

use super::problem::{Problem, Trouble};

/// The statements that lead from each version of the layout to the next, from an empty database on. They are never
/// changed, only added to.
const MIGRATIONS: [&str; 2] = [include_str!("schema.sql"), include_str!("cluster.sql")];

/// The version that this program reads and writes.
const VERSION: i32 = MIGRATIONS.len() as i32;

/// Time for which a migration waits for a lock that another transaction holds.
const LOCK_TIMEOUT: &str = "5s";

/// Reads the version of a database; none if no journal is in it.
async fn version(client: &Client) -> Result<Option<i32>, Trouble> {
    let found = client.query_typed("SELECT to_regclass('systole.layout') IS NOT NULL", &[]).await?;
    if !found.first().is_some_and(|row| row.get(0)) {
        return Ok(None);
    }
    Ok(client.query_typed("SELECT version FROM systole.layout", &[]).await?.first().map(|row| row.get(0)))
}

/// Checks that a database has a journal in the layout of this program.
pub(super) async fn check(client: &Client) -> Result<(), Trouble> {
    match version(client).await? {
        None => Err(Problem::Missing.into()),
        Some(VERSION) => Ok(()),
        Some(found) => Err(Problem::Layout { found, known: VERSION }.into()),
    }
}

/// Brings a database to the layout of this program, each step in a transaction of its own.
pub(super) async fn migrate(client: &Client) -> Result<(), Trouble> {
    loop {
        let from = version(client).await?.unwrap_or(0);
        if from == VERSION {
            return Ok(());
        }
        let step = usize::try_from(from).ok().and_then(|from| MIGRATIONS.get(from));
        let Some(step) = step else { return Err(Problem::Layout { found: from, known: VERSION }.into()) };
        let to = from + 1;
        // The first statement of a migration locks what a second process that migrates waits for. It fails then, and
        // finds the next version.
        let lock = match from {
            0 => "CREATE SCHEMA systole",
            _ => "LOCK TABLE systole.layout",
        };
        let note = match from {
            0 => format!("INSERT INTO systole.layout (version) VALUES ({to})"),
            _ => format!("UPDATE systole.layout SET version = {to} WHERE version = {from}"),
        };
        let whole = format!("BEGIN; SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'; {lock}; {step}; {note}; COMMIT");
        match client.batch_execute(&whole).await {
            Ok(()) => tracing::info!(from, to, "the database has a new layout of its journal"),
            Err(error) => {
                // The connection may have been lost with it.
                let _ = client.batch_execute("ROLLBACK").await;
                if version(client).await?.unwrap_or(0) == from {
                    return Err(error.into());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rusqlite::Connection;

    use super::super::table::{Kind, tables};

    #[test]
    fn each_table_has_the_columns_and_the_key_that_it_has_in_a_file() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("../schema.sql")).unwrap();
        let mut written = BTreeMap::new();
        for table in include_str!("schema.sql").split("CREATE TABLE systole.").skip(1) {
            let (name, columns) = table.split_once(' ').unwrap();
            let columns = columns.strip_prefix('(').unwrap_or_default();
            let columns = columns.split_once("\n);").map_or("", |(columns, _)| columns);
            written.insert(name, columns.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        for table in tables(&db).unwrap() {
            let columns = table.columns.iter().map(|column| {
                let kind = match column.kind {
                    Kind::Integer => "bigint",
                    Kind::Text if table.key.contains(&column.name) => "text COLLATE \"C\"",
                    Kind::Text => "text",
                    Kind::Blob => "bytea",
                };
                let key = table.key.contains(&column.name);
                format!("{} {kind}{}", column.name, if column.required || key { " NOT NULL" } else { "" })
            });
            let columns: Vec<_> = std::iter::once("log smallint NOT NULL".to_owned()).chain(columns).collect();
            let key = format!("PRIMARY KEY (log, {})", table.key.join(", "));
            let expected = format!("{}, {key}", columns.join(", "));
            let found = written.remove(&*table.name).unwrap_or_default();
            assert_eq!(found.replace(", UNIQUE (log, token)", ""), expected, "{}", table.name);
        }
        let own: Vec<_> = written.into_keys().collect();
        assert_eq!(own, ["fed", "layout", "log"], "the log has tables of its own");
    }
}
