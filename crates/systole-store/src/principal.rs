//! Principals: clients, remote listeners, people and admins that the gateway knows.

use systole_core::vocab::{Name, Time};

/// A principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The name of the principal, which is the sender of its messages.
    pub name: Name,
    /// The kind, which decides on the principal's permissions.
    pub kind: PrincipalKind,
    /// Time of the admission.
    pub created: Time,
}

/// Kind of a principal, which decides on its permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrincipalKind {
    /// Sends messages, and reads their answers.
    Client,
    /// Handles the mailbox of its name.
    Listener,
    /// Answers the questions that are addressed to it.
    Person,
    /// Operates every mailbox.
    Admin,
}

impl Principal {
    /// Checks for an admin, which has access to every mailbox.
    pub fn is_admin(&self) -> bool {
        self.kind == PrincipalKind::Admin
    }

    /// Checks for a remote listener, which has access to the mailbox of its name.
    pub fn is_listener(&self) -> bool {
        self.kind == PrincipalKind::Listener
    }

    /// Checks for a client, which sends messages.
    pub fn is_client(&self) -> bool {
        self.kind == PrincipalKind::Client
    }
}

impl PrincipalKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Client, Self::Listener, Self::Person, Self::Admin];

    /// Returns the name of the kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Listener => "listener",
            Self::Person => "person",
            Self::Admin => "admin",
        }
    }

    /// Parses the name of a kind.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The hash of a token, the only part that is kept. A look-up leaks nothing about a secret by its time: the hash of a
/// guess is unrelated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash(pub [u8; 32]);
