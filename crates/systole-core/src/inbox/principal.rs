//! Principals that act on an inbox.

use std::fmt;

use super::error::{Field, InboxError};
use crate::vocab::Name;

/// The principal that acts on an inbox, as the pump or the caller knows it; never by the claim of a body.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InboxPrincipal(Name);

impl InboxPrincipal {
    /// Makes the principal of a name.
    pub const fn new(name: Name) -> Self {
        Self(name)
    }

    /// Makes a principal whose name is a text.
    ///
    /// # Errors
    /// [`InboxError::Empty`] and [`InboxError::Name`] if it is none.
    pub fn parse(name: &str) -> Result<Self, InboxError> {
        super::checks::name(Field::Agent, name).map(Self)
    }

    /// The name.
    pub const fn name(&self) -> &Name {
        &self.0
    }
}

impl fmt::Display for InboxPrincipal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
