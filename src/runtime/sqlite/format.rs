//! Formats of files: id, version and migrations.

use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use super::problem::FileProblem;

/// Identification and migrations of a kind of file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    /// The name of the format.
    pub(crate) name: &'static str,
    /// The application id in the header of a file.
    pub(crate) id: i32,
    /// Statements that bring version n to version n + 1, starting with an empty file.
    pub(crate) migrations: &'static [&'static str],
}

impl Format {
    /// Returns the version that this program writes.
    pub(crate) const fn version(&self) -> i64 {
        self.migrations.len() as i64
    }

    /// Reads the version of a file.
    ///
    /// # Errors
    /// [`FileProblem`] if this program doesn't know the version.
    pub(crate) fn version_of(&self, db: &Connection) -> Result<i64, FileProblem> {
        self.judge(db.pragma_query_value(None, "user_version", |row| row.get(0))?)
    }

    /// Returns the version, if this program knows it.
    pub(super) fn judge(&self, found: i64) -> Result<i64, FileProblem> {
        let known = self.version();
        match found {
            found if found > known => Err(FileProblem::Newer { found, known }),
            found if found < 1 => Err(FileProblem::damaged(format!("its version is {found}"))),
            found => Ok(found),
        }
    }

    /// Migrates the tables from a version to the latest, within a transaction of the caller.
    pub(super) fn migrate(&self, db: &Connection, from: i64) -> Result<(), FileProblem> {
        self.step(db, from, self.version())?;
        db.pragma_update(None, "user_version", self.version())?;
        Ok(())
    }

    /// Refuses a file whose tables differ from those of its version: names and types are in no checksum.
    pub(super) fn compare(&self, db: &Connection, version: i64) -> Result<(), FileProblem> {
        if self.agrees(&tables(db)?, version)? {
            return Ok(());
        }
        Err(FileProblem::damaged(format!("its tables and indexes are not those of a {}", self.name)))
    }

    /// Compares tables with those that the migrations make, which are made once in a process for each version.
    fn agrees(&self, found: &Tables, version: i64) -> Result<bool, FileProblem> {
        static MADE: Mutex<Vec<((i32, i64), Tables)>> = Mutex::new(Vec::new());
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, model)) = made.iter().find(|(of, _)| *of == (self.id, version)) {
            return Ok(model == found);
        }
        let model = Connection::open_in_memory()?;
        self.step(&model, 0, version)?;
        let model = tables(&model)?;
        let agrees = model == *found;
        made.push(((self.id, version), model));
        Ok(agrees)
    }

    fn step(&self, db: &Connection, from: i64, to: i64) -> Result<(), FileProblem> {
        for (version, migration) in (0..).zip(self.migrations) {
            if (from..to).contains(&version) {
                db.execute_batch(migration)?;
            }
        }
        Ok(())
    }
}

/// Tables and indexes of a file: name, table, statement.
type Tables = Vec<(String, String, Option<String>)>;

fn tables(db: &Connection) -> rusqlite::Result<Tables> {
    // ANALYZE creates tables of its own.
    let sql = "SELECT name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name";
    db.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}
