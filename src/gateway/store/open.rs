//! How the file is opened: as any file of ours, with the secret of its cursors in it from the start.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::shell::entropy::Entropy;
use crate::shell::sqlite::{self, Database, Durability, Format, Opened, Opening, Problem};

/// `SyG1`, and its tables.
pub(super) const FORMAT: Format = Format {
    name: "file of a gateway",
    id: 0x5379_4731,
    migrations: &[
        include_str!("schema.sql"),
        include_str!("push.sql"),
        include_str!("notices.sql"),
        include_str!("pauses.sql"),
    ],
};

/// Why the file of a gateway can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", .file.display())]
pub struct OpenError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// The file of the gateway of an organism with that journal.
pub fn beside(journal: &Path) -> PathBuf {
    sqlite::beside(journal, ".gateway")
}

/// Opens the file while somebody may serve it: then it is known to be in order. Else it is looked at, or made, and the
/// lock is given back at once, so that nobody waits for it who wants to serve.
pub(super) fn open_beside(file: &Path, durability: Durability) -> Result<Database, Problem> {
    match open(file, durability) {
        Ok(mut db) => {
            db.share();
            Ok(db)
        }
        Err(Problem::InUse { .. }) => sqlite::join(file, FORMAT, durability),
        Err(problem) => Err(problem),
    }
}

/// Opens the file for whoever serves it, or makes it; nobody else does until it is dropped.
pub(super) fn open(file: &Path, durability: Durability) -> Result<Database, Problem> {
    let fill = |db: &Connection| {
        db.execute("INSERT INTO meta VALUES (1, ?1)", [Entropy::Real.secret()])?;
        Ok(())
    };
    let (read, renew) = (|_: &Connection, _| Ok(()), |_: &Connection, _, _: &_| Ok(()));
    let opening = Opening { format: FORMAT, durability, cut: false, fill: &fill, read: &read, renew: &renew };
    let Opened { db, cut, .. } = opening.open(file)?;
    if let Some(cut) = cut {
        tracing::warn!(file = %file.display(), at = cut.at, bytes = cut.bytes,
            "the end of the log of the gateway's file was not written whole, and is cut off");
    }
    Ok(db)
}
