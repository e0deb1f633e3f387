//! Causes of undelivered messages.

use std::fmt;

/// Reason why a delivery was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// Every attempt failed in the transport.
    AttemptsExhausted,
    /// The time budget of the delivery is used up.
    TotalBudgetExhausted,
    /// The peer refused: the status is not 2xx.
    Rejected,
    /// The circuit of its target stays open for longer than the budget lasts.
    CircuitOpen,
    /// The address of its target is not allowed.
    AddressRefused,
    /// The answer is not HTTP, or its body contradicts its head.
    Unparsable,
    /// The peer's runtime reported an error.
    PeerError,
    /// The answer is longer than the limit.
    AnswerTooLarge,
    /// The delivery has to be signed, and there is no secret for its target.
    NoSecret,
    /// The request can't be made.
    Bug,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 10] = [
        Self::AttemptsExhausted,
        Self::TotalBudgetExhausted,
        Self::Rejected,
        Self::CircuitOpen,
        Self::AddressRefused,
        Self::Unparsable,
        Self::PeerError,
        Self::AnswerTooLarge,
        Self::NoSecret,
        Self::Bug,
    ];

    /// The name of the cause.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::TotalBudgetExhausted => "total_budget_exhausted",
            Self::Rejected => "rejected",
            Self::CircuitOpen => "circuit_open",
            Self::AddressRefused => "address_refused",
            Self::Unparsable => "unparsable",
            Self::PeerError => "peer_error",
            Self::AnswerTooLarge => "answer_too_large",
            Self::NoSecret => "no_secret",
            Self::Bug => "bug",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
