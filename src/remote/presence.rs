use super::BoxFuture;
use super::error::RemoteError;

/// What an agent is to whoever runs the organism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentState {
    /// It is to work.
    Active,
    /// It is to rest until somebody starts it again.
    Paused,
    /// It is let in no more.
    Removed,
}

impl AgentState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Active, Self::Paused, Self::Removed];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Removed => "removed",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// Where an agent says that it is there, and hears what it is.
pub trait Presence: Send + Sync {
    /// Says that it is there.
    ///
    /// # Errors
    /// [`RemoteError`] if nobody hears it; that is no reason to end.
    fn heartbeat(&self) -> BoxFuture<'_, Result<AgentState, RemoteError>>;
}
