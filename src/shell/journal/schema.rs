//! The tables, version by version.

use rusqlite::Connection;

use super::error::Problem;

/// `SyJ1`: what says in the header of a file that it is a journal.
pub(super) const APPLICATION_ID: i32 = 0x5379_4a31;

/// What makes version n + 1 out of version n, from nothing on.
const MIGRATIONS: [&str; 4] =
    [include_str!("schema.sql"), include_str!("requeue.sql"), include_str!("tasks.sql"), include_str!("history.sql")];

/// The first version in which each step has a moment of its own, and which knows what is missing.
pub(super) const ORDERED: i64 = 4;

/// The version that this program writes.
pub(super) const VERSION: i64 = MIGRATIONS.len() as i64;

/// Brings the tables from a version to [`VERSION`], within a transaction of the caller.
pub(super) fn migrate(db: &Connection, from: i64) -> Result<(), Problem> {
    step(db, from, VERSION)?;
    db.pragma_update(None, "user_version", VERSION)?;
    Ok(())
}

/// Refuses a file whose tables are not those of a version: names and types are not in any checksum.
pub(super) fn compare(db: &Connection, version: i64) -> Result<(), Problem> {
    let model = Connection::open_in_memory()?;
    step(&model, 0, version)?;
    if tables(db)? == tables(&model)? {
        return Ok(());
    }
    Err(Problem::damaged("its tables and indexes are not those of a journal"))
}

fn step(db: &Connection, from: i64, to: i64) -> Result<(), Problem> {
    for (version, migration) in (0..).zip(MIGRATIONS) {
        if (from..to).contains(&version) {
            db.execute_batch(migration)?;
        }
    }
    Ok(())
}

fn tables(db: &Connection) -> rusqlite::Result<Vec<(String, String, Option<String>)>> {
    // ANALYZE leaves tables of its own.
    let sql = "SELECT name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name";
    db.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}
