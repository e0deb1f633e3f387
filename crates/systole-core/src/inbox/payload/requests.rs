//! Payloads to an inbox: the requests of submitters and owners.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_xml::ladder::Canonical;

use super::context::{self, ContextPayload, WriteError};
use super::is_false;
use crate::inbox::{InboxProblem, Status, TaskContext};
use crate::protocol::{display, display_option};
use crate::vocab::{Name, TaskId, Time};

/// Submits a task. Answered by result when the task has ended; by submitted at once if the task is detached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submit {
    /// An idempotency key: a repeated key with the same body gives the same task; with another body it is refused.
    #[serde(rename = "@key", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub key: Option<String>,
    /// The time at which the task fails at the latest.
    #[serde(rename = "@deadline", default, with = "display_option", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::date_time")]
    pub deadline: Option<Time>,
    /// True if the submitter doesn't wait: the messages about the task open threads of their own.
    #[serde(rename = "@detached", default, skip_serializing_if = "is_false")]
    pub detached: bool,
    /// True if every event of a detached task is sent, false for questions and the result alone.
    #[serde(rename = "@watched", default, skip_serializing_if = "is_false")]
    pub watched: bool,
    /// The job that is to do the task, where several have their inboxes in one place.
    #[serde(rename = "@to", default, with = "display_option", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::name")]
    pub to: Option<Name>,
    /// The job on whose behalf the task is submitted; left out: the name of the submitter.
    #[serde(default, with = "display_option", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::name")]
    pub job: Option<Name>,
    /// The work to be done.
    #[schemars(length(min = 1))]
    pub description: String,
    /// Data that helps to do the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
}

impl Submit {
    /// A task for whose result the submitter waits.
    pub fn new(description: impl Into<String>) -> Self {
        Self {
            key: None,
            deadline: None,
            detached: false,
            watched: false,
            to: None,
            job: None,
            description: description.into(),
            context: None,
        }
    }

    /// A task for whose result the submitter doesn't wait.
    pub fn detached(description: impl Into<String>) -> Self {
        Self { detached: true, ..Self::new(description) }
    }

    /// Addresses the task to a job that has registered, or will.
    #[must_use]
    pub fn to(self, job: Name) -> Self {
        Self { to: Some(job), ..self }
    }

    /// Adds a context. An element of any name is sent with [`write`](Self::write).
    #[must_use]
    pub fn with_context(self, context: &TaskContext) -> Self {
        Self { context: context.into(), ..self }
    }
}

context::carries_context!(Submit);

/// A request that names a task, and nothing else.
macro_rules! reference {
    ($(#[$doc:meta] $type:ident;)*) => {
        $(#[$doc]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct $type {
            /// The task.
            #[serde(rename = "@id", with = "display")]
            #[schemars(schema_with = "crate::inbox::payload::id")]
            pub id: TaskId,
        })*
    };
}
pub(super) use reference;

/// A text about one task that may be empty.
macro_rules! words {
    ($(#[$doc:meta] $type:ident;)*) => {
        $(#[$doc]
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct $type {
            /// The task.
            #[serde(rename = "@id", with = "display")]
            #[schemars(schema_with = "crate::inbox::payload::id")]
            pub id: TaskId,
            /// The text; may be empty.
            #[serde(rename = "$text", default)]
            pub text: String,
        })*
    };
}

/// A text about one task that isn't empty.
macro_rules! telling_words {
    ($(#[$doc:meta] $type:ident;)*) => {
        $(#[$doc]
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct $type {
            /// The task.
            #[serde(rename = "@id", with = "display")]
            #[schemars(schema_with = "crate::inbox::payload::id")]
            pub id: TaskId,
            /// The text.
            #[serde(rename = "$text")]
            #[schemars(length(min = 1))]
            pub text: String,
        })*
    };
}

reference! {
    /// Asks for a task that the sender owns or submitted. Answered by task.
    Get;
    /// Accepts a pending task.
    Accept;
}

words! {
    /// Cancels a task, with a reason that may be empty. Answered by changed.
    Cancel;
    /// Completes a task, with its result, which may be empty.
    Complete;
}

telling_words! {
    /// The answer to a question. Answered by changed, unless it answers question itself.
    Input;
    /// A question to the submitter of an accepted task, delivered to the submitter as question.
    InputRequired;
    /// Fails a task, with the reason.
    Fail;
    /// Rejects a pending task, with the reason.
    Reject;
}

/// Asks for the tasks that the sender owns or submitted, in order of arrival. Answered by tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct List {
    /// The job whose tasks are meant, where several have their inboxes in one place.
    #[serde(rename = "@job", default, with = "display_option", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::name")]
    pub job: Option<Name>,
    /// Only tasks of that status; left out: all that have not ended.
    #[serde(rename = "@status", default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Only tasks behind that place.
    #[serde(rename = "@after", default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// Reports the progress of an accepted task: in words, in percent, or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// The task.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// The percentage that is done.
    #[serde(rename = "@percent", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    pub percent: Option<u8>,
    /// The progress in words; may be empty.
    #[serde(rename = "$text", default)]
    pub text: String,
}

/// A piece of the result of an accepted task, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactPayload {
    /// The task.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// The name of the piece; no two of one task have the same.
    #[serde(rename = "@name")]
    #[schemars(length(min = 1))]
    pub name: String,
    /// True if the part is added to the parts before, false if it replaces them.
    #[serde(rename = "@append", default, skip_serializing_if = "is_false")]
    pub append: bool,
    /// True if no other part follows.
    #[serde(rename = "@last", default, skip_serializing_if = "is_false")]
    pub last: bool,
    /// The part; may be empty.
    #[serde(rename = "$text", default)]
    pub text: String,
}
