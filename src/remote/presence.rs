//! Presence of an agent at its gateway.

use super::BoxFuture;
use super::error::RemoteError;

/// State of an agent, as the admin sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentState {
    /// The agent works.
    Active,
    /// The agent is paused until an admin resumes it.
    Paused,
    /// The agent was removed.
    Removed,
}

impl AgentState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Active, Self::Paused, Self::Removed];

    /// The name of the state.
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

/// Receiver of an agent's heartbeats.
pub trait Presence: Send + Sync {
    /// Sends a heartbeat; returns the state of the agent.
    ///
    /// # Errors
    /// [`RemoteError`] if no gateway answers; that is no reason to end.
    fn heartbeat(&self) -> BoxFuture<'_, Result<AgentState, RemoteError>>;
}
