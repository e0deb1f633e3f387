use rusqlite::Connection;

use super::problem::Problem;

/// What a kind of file is known by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    /// What it is called.
    pub(crate) name: &'static str,
    /// What says in the header of a file that it is one.
    pub(crate) id: i32,
    /// What makes version n + 1 out of version n, from nothing on.
    pub(crate) migrations: &'static [&'static str],
}

impl Format {
    /// The version that this program writes.
    pub(crate) const fn version(&self) -> i64 {
        self.migrations.len() as i64
    }

    /// The version of a file, one that this program knows.
    pub(crate) fn version_of(&self, db: &Connection) -> Result<i64, Problem> {
        self.judge(db.pragma_query_value(None, "user_version", |row| row.get(0))?)
    }

    /// A version, if it is one that this program knows.
    pub(super) fn judge(&self, found: i64) -> Result<i64, Problem> {
        let known = self.version();
        match found {
            found if found > known => Err(Problem::Newer { found, known }),
            found if found < 1 => Err(Problem::damaged(format!("its version is {found}"))),
            found => Ok(found),
        }
    }

    /// Brings the tables from a version to the last one, within a transaction of the caller.
    pub(super) fn migrate(&self, db: &Connection, from: i64) -> Result<(), Problem> {
        self.step(db, from, self.version())?;
        db.pragma_update(None, "user_version", self.version())?;
        Ok(())
    }

    /// Refuses a file whose tables are not those of a version: names and types are not in any checksum.
    pub(super) fn compare(&self, db: &Connection, version: i64) -> Result<(), Problem> {
        let model = Connection::open_in_memory()?;
        self.step(&model, 0, version)?;
        if tables(db)? == tables(&model)? {
            return Ok(());
        }
        Err(Problem::damaged(format!("its tables and indexes are not those of a {}", self.name)))
    }

    fn step(&self, db: &Connection, from: i64, to: i64) -> Result<(), Problem> {
        for (version, migration) in (0..).zip(self.migrations) {
            if (from..to).contains(&version) {
                db.execute_batch(migration)?;
            }
        }
        Ok(())
    }
}

fn tables(db: &Connection) -> rusqlite::Result<Vec<(String, String, Option<String>)>> {
    // ANALYZE leaves tables of its own.
    let sql = "SELECT name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name";
    db.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}
