//! Failures to start an organism.

use std::fmt;
use std::io;

use systole_core::core::BlueprintProblem;
use systole_core::journal::JournalError;
use systole_core::vocab::{Name, NameError, QName, QNameError};
use systole_xml::schema::ContractError;

/// Failure to start an organism.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The contracts are wrong; lists all mistakes.
    #[error("the organism can't start:{}", Lines(.0))]
    Refused(Vec<StartRefusal>),
    /// The system refuses a thread.
    #[error("a thread of the organism could not be started: {0}")]
    Thread(#[source] io::Error),
    /// The journal can't be read.
    #[error("the journal can't be opened: {0}")]
    Journal(#[from] JournalError),
    /// A shard failed while it was made.
    #[error("a shard of the organism failed while it was made: see the panic above")]
    Shard,
}

systole_core::vocab::debug_is_display!(StartError);

/// A mistake that keeps an organism from starting.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StartRefusal {
    /// A text is no valid name.
    #[error("'{text}' can't name a listener or a client: {error}")]
    Name {
        /// The text.
        text: String,
        /// The rule that the name breaks.
        error: NameError,
    },
    /// A text is no valid name of a payload.
    #[error("'{party}' lists '{text}' as a payload: {error}")]
    Payload {
        /// The listener or client.
        party: Name,
        /// The text.
        text: String,
        /// The rule that the name breaks.
        error: QNameError,
    },
    /// A type or schema can't be a payload's contract.
    #[error("{}the payload {payload} can't be a contract: {error}", ByParty(.party))]
    Contract {
        /// The listener or client that lists it.
        party: Option<Name>,
        /// The Rust type, or the name of the schema.
        payload: String,
        /// The reason, and the text to write instead.
        error: ContractError,
    },
    /// A listener has two functions for one payload.
    #[error("'{party}' has two functions for {payload}: keep one of the two")]
    Functions {
        /// The listener.
        party: Name,
        /// The payload.
        payload: QName,
    },
    /// Two listeners are registries of jobs.
    #[error("jobs register with '{first}' and with '{second}': keep one of the two")]
    Registries {
        /// The name of the first.
        first: Name,
        /// The name of the second.
        second: Name,
    },
    /// Contracts don't fit each other.
    #[error(transparent)]
    Problem(#[from] BlueprintProblem),
}

systole_core::vocab::debug_is_display!(StartRefusal);

struct Lines<'a>(&'a [StartRefusal]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|refusal| write!(f, "\n  {refusal}"))
    }
}

struct ByParty<'a>(&'a Option<Name>);

impl fmt::Display for ByParty<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|name| write!(f, "'{name}': "))
    }
}
