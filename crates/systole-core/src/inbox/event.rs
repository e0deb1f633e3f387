use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::display;
use crate::vocab::{TaskId, Time};

/// Something that happened to a task: once, and after everything of a smaller number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The task.
    #[serde(with = "display")]
    pub task: TaskId,
    /// Its number among the events of the task, from 1, without gaps.
    pub number: u32,
    /// When.
    #[serde(with = "display")]
    pub at: Time,
    /// What.
    pub kind: EventKind,
    /// How much is done, in percent, if somebody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// What was said: the progress, the name of the artifact, the question, the answer, the result or the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// What happened to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "event-kind")]
pub enum EventKind {
    /// It was taken.
    Submitted,
    /// It is in the inbox of a job that is there.
    Routed,
    /// The owner took it on.
    Accepted,
    /// The owner said how far it is.
    Progress,
    /// The owner handed in a piece of the result.
    Artifact,
    /// The owner asks the submitter.
    InputRequired,
    /// The submitter answered.
    Input,
    /// The job was removed or registered anew: it is pending again.
    Released,
    /// It is done.
    Completed,
    /// It could not be done, or its deadline passed.
    Failed,
    /// The owner didn't take it on.
    Rejected,
    /// The submitter doesn't want it any more.
    Cancelled,
}

impl EventKind {
    /// The word for it in XML and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Routed => "routed",
            Self::Accepted => "accepted",
            Self::Progress => "progress",
            Self::Artifact => "artifact",
            Self::InputRequired => "input-required",
            Self::Input => "input",
            Self::Released => "released",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing happens to the task afterwards.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Rejected | Self::Cancelled)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
