//! Events of tasks.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::display;
use crate::vocab::{Name, TaskId, Time};

/// An event of a task. It happens once, after all events of the task that have a smaller number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskEvent {
    /// The task.
    #[serde(with = "display")]
    pub task: TaskId,
    /// The number among the events of the task, from 1, without gaps.
    pub number: u32,
    /// The time of the event.
    #[serde(with = "display")]
    pub at: Time,
    /// The kind of the event.
    pub kind: TaskEventKind,
    /// The percentage that is done, if the owner reported one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// The text of the event: progress, name of the artifact, question, answer, result or reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The kind of an event of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "event-kind")]
#[non_exhaustive]
pub enum TaskEventKind {
    /// The task was submitted.
    Submitted,
    /// The task is in the inbox of a registered job.
    Routed,
    /// The owner accepted the task.
    Accepted,
    /// The owner reported the progress.
    Progress,
    /// The owner handed in a piece of the result.
    Artifact,
    /// The owner asks the submitter.
    InputRequired,
    /// The submitter answered.
    Input,
    /// The job was removed or registered anew: the task is pending again.
    Released,
    /// The owner completed the task.
    Completed,
    /// The owner gave the task up, or the deadline passed.
    Failed,
    /// The owner rejected the task.
    Rejected,
    /// The submitter cancelled the task.
    Cancelled,
}

impl TaskEventKind {
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

    /// Returns whether this is the last event of a task.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Rejected | Self::Cancelled)
    }
}

impl fmt::Display for TaskEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The changes of a method of an inbox: events, and the tasks to write to the journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use = "a journal writes the records, and subscribers get the events"]
pub struct InboxChange {
    /// The events, in order. They are never reported again.
    pub events: Vec<TaskEvent>,
    /// The changed tasks, by inbox and id.
    pub saved: Vec<(Name, TaskId)>,
    /// The deleted tasks, by inbox and id.
    pub removed: Vec<(Name, TaskId)>,
}

impl InboxChange {
    /// Returns whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a later change behind this one.
    pub fn append(&mut self, mut more: Self) {
        self.events.append(&mut more.events);
        self.saved.append(&mut more.saved);
        self.removed.append(&mut more.removed);
    }
}
