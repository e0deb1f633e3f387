//! Formats of files: id, version and tables.

use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use super::problem::FileProblem;

/// Identification and tables of a kind of file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    /// The name of the format.
    pub(crate) name: &'static str,
    /// The application id in the header of a file.
    pub(crate) id: i32,
    /// The only version that this program reads and writes.
    pub(crate) version: i64,
    /// Statements that make the tables in an empty file.
    pub(crate) schema: &'static str,
}

impl Format {
    /// Refuses a file of another version.
    pub(super) fn judge(&self, found: i64) -> Result<(), FileProblem> {
        let known = self.version;
        match found {
            found if found == known => Ok(()),
            found if found > known => Err(FileProblem::Newer { found, known }),
            found if found < 1 => Err(FileProblem::damaged(format!("its version is {found}"))),
            found => Err(FileProblem::Older { found, known }),
        }
    }

    /// Makes the tables in an empty file, within a transaction of the caller.
    pub(super) fn make(&self, db: &Connection) -> Result<(), FileProblem> {
        db.pragma_update(None, "application_id", self.id)?;
        db.pragma_update(None, "user_version", self.version)?;
        Ok(db.execute_batch(self.schema)?)
    }

    /// Refuses a file of another version, and one whose tables differ from those of the format: names and types are in
    /// no checksum.
    pub(super) fn check(&self, db: &Connection) -> Result<(), FileProblem> {
        self.judge(db.pragma_query_value(None, "user_version", |row| row.get(0))?)?;
        if self.agrees(&tables(db)?)? {
            return Ok(());
        }
        Err(FileProblem::damaged(format!("its tables and indexes are not those of a {}", self.name)))
    }

    /// Compares tables with those of the format, which are made once in a process.
    fn agrees(&self, found: &Tables) -> Result<bool, FileProblem> {
        static MADE: Mutex<Vec<(i32, Tables)>> = Mutex::new(Vec::new());
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, model)) = made.iter().find(|(of, _)| *of == self.id) {
            return Ok(model == found);
        }
        let model = Connection::open_in_memory()?;
        model.execute_batch(self.schema)?;
        let model = tables(&model)?;
        let agrees = model == *found;
        made.push((self.id, model));
        Ok(agrees)
    }
}

/// Tables and indexes of a file: name, table, statement.
type Tables = Vec<(String, String, Option<String>)>;

fn tables(db: &Connection) -> rusqlite::Result<Tables> {
    // ANALYZE creates tables of its own.
    let sql = "SELECT name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name";
    db.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}
