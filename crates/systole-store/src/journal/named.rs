//! A journal by its name: the path of a file, or the URL of a database.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use systole_core::journal::{Durability, JournalError, JournalErrorKind};

use super::Journaled;
#[cfg(feature = "postgres")]
use super::Postgres;
use super::lease::{ClusterState, LeaseStore, NodeCard};
use super::store::Store;
use crate::sqlite::Retention;
use crate::tenure::Tenure;

/// A journal by the name that an operator writes: the path of an SQLite file, or `postgres://USER@HOST/DATABASE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedJournal {
    kind: Kind,
    /// The path beside which the socket for operators is.
    beside: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    File(Journaled),
    #[cfg(feature = "postgres")]
    Database(Postgres),
}

impl NamedJournal {
    /// A journal in that file.
    pub fn file(file: impl Into<PathBuf>) -> Self {
        let journaled = Journaled::new(file);
        Self { beside: Some(journaled.file.clone()), kind: Kind::File(journaled) }
    }

    /// The journal of that name. A path is one in `directory`; so is the place of the socket of a journal in a database,
    /// beside `systole.journal`. Without a directory a database has none. The password of a URL without one is that in
    /// `PGPASSWORD`.
    ///
    /// # Errors
    /// The reason as a sentence, if it is a URL that can't be used.
    pub fn parse(name: &str, directory: Option<&Path>) -> Result<Self, String> {
        let within = |path: &str| directory.map_or_else(|| PathBuf::from(path), |directory| directory.join(path));
        if !is_url(name) {
            return Ok(Self::file(within(name)));
        }
        #[cfg(feature = "postgres")]
        {
            let password = std::env::var("PGPASSWORD").ok().filter(|password| !password.is_empty());
            let database = Postgres::new(name, password).map_err(|error| error.to_string())?;
            Ok(Self { kind: Kind::Database(database), beside: directory.map(|_| within("systole.journal")) })
        }
        #[cfg(not(feature = "postgres"))]
        Err("this program is built without the feature `postgres`: name a file, or build it with the feature"
            .to_owned())
    }

    /// Sets the failures that written steps survive. A database has its own.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        match &mut self.kind {
            Kind::File(file) => file.durability = durability,
            #[cfg(feature = "postgres")]
            Kind::Database(_) => {}
        }
        self
    }

    /// Sets time and size for which ended rows are kept.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.kind = match self.kind {
            Kind::File(file) => Kind::File(file.retention(retention)),
            #[cfg(feature = "postgres")]
            Kind::Database(database) => Kind::Database(database.retention(retention)),
        };
        self
    }

    /// Lets the organism of a journal in a database run for as long as this node has that lease.
    #[must_use]
    #[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "a file has no nodes"))]
    pub fn within(self, tenure: &Tenure) -> Self {
        let kind = match self.kind {
            Kind::File(file) => Kind::File(file),
            #[cfg(feature = "postgres")]
            Kind::Database(database) => Kind::Database(database.within(tenure.clone())),
        };
        Self { kind, ..self }
    }

    /// Returns the lease of the organism for one of several nodes, which a journal in a database has.
    ///
    /// # Errors
    /// [`JournalError`] if it is a file, or the database can't be used.
    #[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "a file has no nodes"))]
    pub fn leases(&self, organism: &str, card: NodeCard) -> Result<Box<dyn LeaseStore>, JournalError> {
        match &self.kind {
            Kind::File(_) => Err(self.has_no_nodes()),
            #[cfg(feature = "postgres")]
            Kind::Database(database) => database.leases(organism, card),
        }
    }

    /// Reads the nodes of the organism, and the lease, which a journal in a database has.
    ///
    /// # Errors
    /// [`JournalError`] if it is a file, or the database can't be read.
    pub fn cluster(&self) -> Result<ClusterState, JournalError> {
        match &self.kind {
            Kind::File(_) => Err(self.has_no_nodes()),
            #[cfg(feature = "postgres")]
            Kind::Database(database) => database.cluster(),
        }
    }

    fn has_no_nodes(&self) -> JournalError {
        let message =
            format!("{self}: a journal in a file has one node: nodes need journal: postgres://USER@HOST/DATABASE");
        JournalError::new(JournalErrorKind::Unusable, message)
    }

    /// The path beside which a running organism has its socket for operators; none for a database whose organism is not
    /// known.
    pub fn beside(&self) -> Option<&Path> {
        self.beside.as_deref()
    }

    /// The journal in a file; none for a database.
    pub fn as_file(&self) -> Option<&Journaled> {
        match &self.kind {
            Kind::File(file) => Some(file),
            #[cfg(feature = "postgres")]
            Kind::Database(_) => None,
        }
    }

    /// Copies this journal to another one, which doesn't exist yet: one of them is a file, the other a database. The
    /// organism must not run. Afterwards both have the same contents, and the same id.
    ///
    /// # Errors
    /// The reason as a sentence: the store that can't be read or written, or two stores of the same kind.
    pub fn copy(&self, to: &Self) -> Result<(), String> {
        match (&self.kind, &to.kind) {
            #[cfg(feature = "postgres")]
            (Kind::File(file), Kind::Database(database)) => database.import(file).map_err(|error| error.to_string()),
            #[cfg(feature = "postgres")]
            (Kind::Database(database), Kind::File(file)) => {
                database.export(&file.file).map_err(|error| error.to_string())
            }
            #[cfg(feature = "postgres")]
            (Kind::Database(_), Kind::Database(_)) => Err(format!("{self} and {to} are databases: use pg_dump")),
            (Kind::File(_), Kind::File(_)) => {
                Err(format!("{self} and {to} are files: copy the file while its organism is stopped (docs/back-up.md)"))
            }
        }
    }
}

impl Deref for NamedJournal {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        match &self.kind {
            Kind::File(file) => file,
            #[cfg(feature = "postgres")]
            Kind::Database(database) => database,
        }
    }
}

impl From<NamedJournal> for Arc<dyn Store> {
    fn from(named: NamedJournal) -> Self {
        match named.kind {
            Kind::File(file) => Arc::new(file),
            #[cfg(feature = "postgres")]
            Kind::Database(database) => Arc::new(database),
        }
    }
}

impl fmt::Display for NamedJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

/// Returns whether the name of a journal is the URL of a database, not a path.
pub fn is_url(name: &str) -> bool {
    name.starts_with("postgres://") || name.starts_with("postgresql://")
}
