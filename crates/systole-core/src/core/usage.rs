//! The use that listeners make of models: tokens, and their cost by the prices of the operator.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::vocab::{Amounts, Fault, Millionths};

/// Tokens of a request to a model and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Tokens of the request that the provider had in its cache.
    pub cached: u64,
    /// Tokens of the request that the provider wrote into its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub written: u64,
    /// Cost, in the currency of the operator's prices.
    pub cost: Millionths,
}

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

/// An answer of a model to a listener, for operators.
#[derive(Debug, Clone)]
pub struct ModelAnswer {
    /// Name of the backend.
    pub backend: Arc<str>,
    /// The model, as the provider names it.
    pub model: Arc<str>,
    /// Tokens and cost.
    pub usage: Usage,
    /// The time of the attempt that got it.
    pub took: Duration,
    /// The answer.
    pub text: Arc<str>,
    /// The reason, if the listener refused it.
    pub fault: Option<Fault>,
}

/// A request of a listener to a model that got no answer, for operators.
#[derive(Debug, Clone)]
pub struct ModelFailure {
    /// Name of the backend.
    pub backend: Arc<str>,
    /// The number of the attempt at this backend, from 1.
    pub attempt: u32,
    /// The failure with the provider's words.
    pub error: Arc<str>,
    /// Tokens and cost that are charged.
    pub usage: Usage,
    /// The time of the attempt.
    pub took: Duration,
}

impl Usage {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            written: self.written.saturating_add(other.written),
            cost: Millionths(self.cost.0.saturating_add(other.cost.0)),
        }
    }
}

impl From<Usage> for Amounts {
    fn from(usage: Usage) -> Self {
        let tokens = usage.input.saturating_add(usage.output);
        Self { tokens, cost: usage.cost, ..Self::default() }
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input, output, cached, written, cost } = self;
        write!(f, "{input} input tokens ({cached} cached")?;
        if *written > 0 {
            write!(f, ", {written} written to the cache")?;
        }
        write!(f, "), {output} output tokens, cost {cost}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_survives_json() {
        let usage = Usage { input: 1200, output: 80, cached: 900, written: 0, cost: Millionths(2_370) };
        let json = serde_json::to_string(&usage).unwrap();
        assert_eq!(json, r#"{"input":1200,"output":80,"cached":900,"cost":0.00237}"#);
        assert_eq!(serde_json::from_str::<Usage>(&json).unwrap(), usage);
        assert_eq!(usage.plus(usage).to_string(), "2400 input tokens (1800 cached), 160 output tokens, cost 0.00474");
        let usage = Usage { written: 200, ..usage };
        let json = serde_json::to_string(&usage).unwrap();
        assert_eq!(json, r#"{"input":1200,"output":80,"cached":900,"written":200,"cost":0.00237}"#);
        assert_eq!(serde_json::from_str::<Usage>(&json).unwrap(), usage);
        assert_eq!(
            usage.plus(usage).to_string(),
            "2400 input tokens (1800 cached, 400 written to the cache), 160 output tokens, cost 0.00474"
        );
    }
}
