//! Problems of a journal in a database.

use std::error::Error as _;
use std::fmt;

use systole_core::journal::{JournalError, JournalErrorKind};
use tokio_postgres::error::{DbError, SqlState};

use super::address::Address;

/// A problem of a journal in a database, and the way out of it.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum Problem {
    #[error("there is none in this database yet: start its organism")]
    Missing,
    #[error("its organism runs: it appends by backend {backend} of the server")]
    InUse { backend: i32 },
    #[error(
        "another process has started the organism and taken its journal over, in epoch {epoch}: see to it that one runs, \
         and start this one again only if the other has ended"
    )]
    Fenced { epoch: i64 },
    #[error(
        "the server has lost entry {seq} of the log, which it had confirmed: was a standby promoted that lagged? Start the \
         organism again to go on with what is there"
    )]
    Lost { seq: i64 },
    #[error("the lease of this node has ended: what it did not confirm may be there or not")]
    NoLease,
    #[error("its organism runs on the node '{node}', which has the lease (`systole cluster` tells more)")]
    Leased { node: String },
    #[error("no answer: {cause}")]
    Unanswered { cause: String },
    #[error("its layout is version {found}, and this program knows version {known}: run the program of that version")]
    Layout { found: i32, known: i32 },
    #[error("this database has a journal already: name another database")]
    Exists,
    #[error(
        "it belongs to the organism '{owner}', not to '{organism}'; `systole journal rename` gives it to another name"
    )]
    NotOwned { owner: String, organism: String },
    #[error("this server is a standby: name the one that it follows")]
    Standby,
    #[error("'{user}' may not create the schema systole: GRANT CREATE ON DATABASE, or make it the owner")]
    MayNotCreate { user: String },
    #[error("{what} is not as it was written")]
    Damaged { what: String },
    #[error("no answer within {seconds} s; the last failure was: {cause}")]
    Unreachable { seconds: u64, cause: String },
    #[error("it can't be reached by TLS: {0}")]
    Tls(String),
    #[error("{0}")]
    Server(Refusal),
    #[error("the thread that talks to it has ended")]
    Ended,
    #[error("its image can't be kept in {folder}: {cause}; TMPDIR names another folder")]
    Image { folder: String, cause: String },
}

/// A refusal of the server, with the advice that fits it.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    code: SqlState,
    message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let advice = match &self.code {
            code if *code == SqlState::INVALID_CATALOG_NAME => ": create it, for instance by `createdb`",
            code if *code == SqlState::INVALID_PASSWORD => ": write the password into the address, or into PGPASSWORD",
            code if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                ": the user must own the database, or may CREATE in it, for the schema `systole`"
            }
            code if *code == SqlState::LOCK_NOT_AVAILABLE => ": another transaction uses the tables; try again",
            _ => "",
        };
        f.write_str(advice)
    }
}

impl Problem {
    /// The error of a journal at that address.
    pub(super) fn of(self, address: &Address) -> JournalError {
        let kind = match &self {
            Self::Missing => JournalErrorKind::Missing,
            Self::InUse { .. } | Self::Leased { .. } => JournalErrorKind::InUse,
            Self::Fenced { .. } | Self::NoLease => JournalErrorKind::Fenced,
            Self::Layout { .. } => JournalErrorKind::Version,
            Self::Damaged { .. } | Self::Lost { .. } => JournalErrorKind::Damaged,
            Self::Exists | Self::NotOwned { .. } | Self::Standby | Self::MayNotCreate { .. } | Self::Tls(_) => {
                JournalErrorKind::Unusable
            }
            Self::Server(refusal) if refusal.code == SqlState::DISK_FULL => JournalErrorKind::Full,
            Self::Server(refusal) if refusal.code == SqlState::INSUFFICIENT_PRIVILEGE => JournalErrorKind::ReadOnly,
            Self::Server(_) => JournalErrorKind::Unusable,
            Self::Ended => JournalErrorKind::Panicked,
            Self::Unreachable { .. } | Self::Unanswered { .. } | Self::Image { .. } => JournalErrorKind::Other,
        };
        JournalError::new(kind, format!("journal {address}: {self}"))
    }
}

/// A failure of a statement.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The connection is lost, or the server takes no work for a while: a statement may be tried again.
    Passing(String),
    /// Trying again would be in vain.
    Lasting(Problem),
}

impl From<Problem> for Trouble {
    fn from(problem: Problem) -> Self {
        Self::Lasting(problem)
    }
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            let tls = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
            return match tls.and_then(std::io::Error::get_ref).filter(|inner| inner.is::<rustls::Error>()) {
                Some(tls) => Self::Lasting(Problem::Tls(tls.to_string())),
                // What the client can't encode or decode is no trouble of the connection.
                None if error.to_string().contains("serializ") => {
                    Self::Lasting(Problem::Damaged { what: format!("a value ({error}{cause})") })
                }
                None => Self::Passing(format!("{error}{cause}")),
            };
        };
        if passes(db) {
            Self::Passing(db.message().to_owned())
        } else {
            Self::Lasting(Problem::Server(Refusal { code: db.code().clone(), message: db.message().to_owned() }))
        }
    }
}

/// Returns whether a refusal may be over in a moment: the server starts, stops, is a standby that will be promoted, or has
/// no room.
fn passes(db: &DbError) -> bool {
    const PASSING: [SqlState; 6] = [
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    // Classes: connection exception, insufficient resources, operator intervention.
    let class = db.code().code().get(..2).unwrap_or_default();
    PASSING.contains(db.code()) || matches!(class, "08" | "53" | "57")
}
