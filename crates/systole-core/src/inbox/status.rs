//! Statuses and transitions of tasks: the lifecycle.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "status")]
pub enum Status {
    /// The task waits until its owner accepts it.
    Pending,
    /// The owner of the inbox works on it.
    Accepted,
    /// The owner works on the task, and waits for an answer of the submitter.
    InputRequired,
    /// The owner completed the task.
    Completed,
    /// The owner gave the task up, or the deadline passed.
    Failed,
    /// The owner rejected the task.
    Rejected,
    /// The submitter cancelled the task.
    Cancelled,
}

/// A transition of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transition {
    /// The owner accepts the task.
    Accept,
    /// The owner reports the progress.
    Progress,
    /// The owner hands in a piece of the result.
    Artifact,
    /// The owner asks the submitter.
    Ask,
    /// The submitter answers.
    Answer,
    /// The owner is done.
    Complete,
    /// The owner gives the task up, or the deadline passes.
    Fail,
    /// The owner rejects the task.
    Reject,
    /// The submitter cancels the task.
    Cancel,
    /// The job is removed or registered anew.
    Release,
}

impl Status {
    /// All statuses, in the order of the lifecycle.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Accepted,
        Self::InputRequired,
        Self::Completed,
        Self::Failed,
        Self::Rejected,
        Self::Cancelled,
    ];

    /// The word for it in XML and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Accepted => "accepted",
            Self::InputRequired => "input-required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns whether no further transition is possible.
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Rejected | Self::Cancelled)
    }

    /// The status that a transition leads to; `None` if it isn't possible. This is the whole lifecycle.
    pub const fn after(self, transition: Transition) -> Option<Self> {
        match (self, transition) {
            (Self::Pending, Transition::Accept) => Some(Self::Accepted),
            (Self::Pending, Transition::Reject) => Some(Self::Rejected),
            (Self::Pending | Self::Accepted | Self::InputRequired, Transition::Complete) => Some(Self::Completed),
            (Self::Pending | Self::Accepted | Self::InputRequired, Transition::Fail) => Some(Self::Failed),
            (Self::Pending | Self::Accepted | Self::InputRequired, Transition::Cancel) => Some(Self::Cancelled),
            (Self::Accepted | Self::InputRequired, Transition::Progress | Transition::Artifact) => Some(self),
            (Self::Accepted, Transition::Ask) => Some(Self::InputRequired),
            (Self::InputRequired, Transition::Answer) => Some(Self::Accepted),
            (Self::Accepted | Self::InputRequired, Transition::Release) => Some(Self::Pending),
            _ => None,
        }
    }
}

impl Transition {
    /// All transitions.
    pub const ALL: [Self; 10] = [
        Self::Accept,
        Self::Progress,
        Self::Artifact,
        Self::Ask,
        Self::Answer,
        Self::Complete,
        Self::Fail,
        Self::Reject,
        Self::Cancel,
        Self::Release,
    ];

    /// The name of the payload that makes the transition; `release` for the one that no payload makes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Progress => "progress",
            Self::Artifact => "artifact",
            Self::Ask => "input-required",
            Self::Answer => "input",
            Self::Complete => "complete",
            Self::Fail => "fail",
            Self::Reject => "reject",
            Self::Cancel => "cancel",
            Self::Release => "release",
        }
    }

    /// Describes the statuses that the transition leads from and to, for an error text.
    pub(super) fn way(self) -> String {
        let from: Vec<_> = Status::ALL.into_iter().filter(|status| status.after(self).is_some()).collect();
        let names = from.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(" or ");
        match from.first().and_then(|status| status.after(self)) {
            Some(to) if !from.contains(&to) => format!("leads from {names} to {to}"),
            _ => format!("is for tasks that are {names}"),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
