//! Principals that may come in over a network.

#![cfg_attr(not(feature = "gateway"), expect(unreachable_pub, reason = "the gateway shows them"))]

use systole_core::vocab::{Name, Time};

/// Somebody who is known to the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Whom messages are stamped with.
    pub name: Name,
    /// The kind, which decides on what the principal may do.
    pub kind: Kind,
    /// Since when.
    pub created: Time,
}

/// Kind of a principal: it decides on what the principal may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Send messages, and read what came of them.
    Client,
    /// See to the mailbox of its name.
    Listener,
    /// See to every mailbox.
    Admin,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Client, Self::Listener, Self::Admin];

    /// The kind's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Listener => "listener",
            Self::Admin => "admin",
        }
    }

    /// Kind of that name.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The hash of a token, which is all that is kept. A look-up takes no time that depends on a secret: a guess has no
/// hash that is near.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TokenHash(pub(crate) [u8; 32]);
