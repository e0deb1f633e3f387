//! Faults: the kind of a failure, a sentence, and the broken rule.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{MessageId, Position};

/// The kind of a failure, as the receiver may know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultCode {
    /// The bytes are no XML, and repair could not make them so.
    Malformed,
    /// The XML is no envelope.
    Envelope,
    /// The payload breaks its schema.
    Payload,
    /// No listener accepts this payload from this sender.
    Route,
    /// The organism has no room for a new call; try again later.
    Overload,
    /// A bound was reached.
    Limit,
    /// A budget of tokens, cost, calls or threads is spent.
    Budget,
    /// A deadline or a handler's timeout passed.
    Timeout,
    /// The thread was cancelled.
    Cancelled,
    /// The listener panicked, or can't be made.
    ListenerFailed,
    /// A bug in the pump.
    Internal,
    /// The listener ended without an answer.
    Silent,
    /// The listener reported a failure.
    Failed,
}

/// A text that is no code of a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no code of a fault: write one of {}", FaultCode::ALL.map(FaultCode::as_str).join(", "))]
pub struct UnknownCode {
    text: String,
}

impl FromStr for FaultCode {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, UnknownCode> {
        Self::named(text).ok_or_else(|| UnknownCode { text: text.to_owned() })
    }
}

impl FaultCode {
    /// All codes.
    pub const ALL: [Self; 13] = [
        Self::Malformed,
        Self::Envelope,
        Self::Payload,
        Self::Route,
        Self::Overload,
        Self::Limit,
        Self::Timeout,
        Self::Cancelled,
        Self::ListenerFailed,
        Self::Internal,
        Self::Silent,
        Self::Failed,
        Self::Budget,
    ];

    /// The code as it stands in `<code>`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Envelope => "envelope",
            Self::Payload => "payload",
            Self::Route => "route",
            Self::Overload => "overload",
            Self::Limit => "limit",
            Self::Budget => "budget",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::ListenerFailed => "listener-failed",
            Self::Internal => "internal",
            Self::Silent => "silent",
            Self::Failed => "failed",
        }
    }

    /// Returns the code of a text, as it stands in `<code>`.
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }

    /// The local name of the element that carries it: `agent-error` for what the listener did,
    /// `system-error` for what the pump found.
    pub const fn element(self) -> &'static str {
        match self {
            Self::Silent | Self::Failed => "agent-error",
            Self::Malformed
            | Self::Envelope
            | Self::Payload
            | Self::Route
            | Self::Overload
            | Self::Limit
            | Self::Budget
            | Self::Timeout
            | Self::Cancelled
            | Self::ListenerFailed
            | Self::Internal => "system-error",
        }
    }
}

impl fmt::Display for FaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A payload that reports a failure. It travels like a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kind of the failure.
    pub code: FaultCode,
    /// A sentence that stays true while the fault is passed on: in the third person, without the name of any listener,
    /// without a thread path.
    pub message: Arc<str>,
    /// True if the same request may succeed later.
    pub retryable: bool,
    /// The message that this answers, once it is known.
    pub in_reply_to: Option<MessageId>,
    /// The rule of a contract which the receiver may see.
    pub rule: Option<Box<BrokenRule>>,
}

/// The rule of a schema that a payload breaks, and how to do better.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenRule {
    /// The text of the rule: the value that was found and the value that was expected.
    pub rule: String,
    /// The position in the sender's document.
    pub at: Option<Position>,
    /// A valid instance to send instead, canonical: of the payload, or of an envelope.
    pub example: Option<String>,
}

/// The fields of a fault for operators, without those that have no value. The example of a rule is left out: it is long,
/// and the schema has it.
impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("code", &self.code)?;
        fields.serialize_entry("message", &*self.message)?;
        fields.serialize_entry("retryable", &self.retryable)?;
        if let Some(id) = &self.in_reply_to {
            fields.serialize_entry("in_reply_to", id)?;
        }
        if let Some(broken) = &self.rule {
            fields.serialize_entry("rule", &broken.rule)?;
            if let Some(at) = broken.at {
                fields.serialize_entry("line", &at.line)?;
                fields.serialize_entry("column", &at.column)?;
            }
        }
        fields.end()
    }
}

impl Fault {
    /// A fault of a code with a sentence; retryable where the code always is.
    pub fn new(code: FaultCode, message: impl Into<Arc<str>>) -> Self {
        let retryable = matches!(code, FaultCode::Overload);
        Self { code, message: message.into(), retryable, in_reply_to: None, rule: None }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        if let Some(rule) = &self.rule {
            write!(f, " ({}", rule.rule)?;
            if let Some(at) = rule.at {
                write!(f, " at {at}")?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
