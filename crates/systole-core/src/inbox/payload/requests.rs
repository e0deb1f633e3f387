use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_xml::ladder::Canonical;

use super::context::{self, ContextPayload, WriteError};
use super::is_false;
use crate::inbox::{InboxProblem, Status, TaskContext};
use crate::protocol::{display, display_option};
use crate::vocab::{Name, TaskId, Time};

/// Do this, please. Answered by result when the task has ended; by submitted at once if it is detached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submit {
    /// An idempotency key: the same one with the same body gives the same task, with another body it is refused.
    #[serde(rename = "@key", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub key: Option<String>,
    /// When the task fails at the latest.
    #[serde(rename = "@deadline", default, with = "display_option", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::moment")]
    pub deadline: Option<Time>,
    /// Whether the submitter doesn't wait: what comes of it opens a new conversation.
    #[serde(rename = "@detached", default, skip_serializing_if = "is_false")]
    pub detached: bool,
    /// Whether every event is sent, rather than questions and the result alone; if detached.
    #[serde(rename = "@watched", default, skip_serializing_if = "is_false")]
    pub watched: bool,
    /// The job that is to do it, where several have their inboxes in one place.
    #[serde(rename = "@to", default, with = "display_option", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::name")]
    pub to: Option<Name>,
    /// The job for which it is asked; left out: the name of the submitter.
    #[serde(default, with = "display_option", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::name")]
    pub job: Option<Name>,
    /// What is to be done.
    #[schemars(length(min = 1))]
    pub description: String,
    /// What helps to do it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
}

impl Submit {
    /// A task that is waited for.
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

    /// A task that isn't waited for.
    pub fn detached(description: impl Into<String>) -> Self {
        Self { detached: true, ..Self::new(description) }
    }

    /// The same for a job that has registered, or will.
    #[must_use]
    pub fn to(self, job: Name) -> Self {
        Self { to: Some(job), ..self }
    }

    /// The same with what helps to do it. An element of any name is sent with [`write`](Self::write).
    #[must_use]
    pub fn with_context(self, context: &TaskContext) -> Self {
        Self { context: context.into(), ..self }
    }
}

context::carries_context!(Submit);

/// A request about one task that says nothing else.
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

/// A text about one task that says something.
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
    /// All of a task that one owns or submitted, please. Answered by task.
    Get;
    /// I take a pending task on.
    Accept;
}

words! {
    /// A task isn't wanted any more, for a reason that may be empty. Answered by changed.
    Cancel;
    /// A task is done; this is the result, which may be empty.
    Complete;
}

telling_words! {
    /// The answer to a question. Answered by changed, unless it answers question itself.
    Input;
    /// A question to the submitter of an accepted task, who gets it as question.
    InputRequired;
    /// A task can't be done, for this reason.
    Fail;
    /// I don't take a pending task on, for this reason.
    Reject;
}

/// The tasks that one owns or submitted, in order of arrival, please. Answered by tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct List {
    /// The job whose tasks are meant, where several have their inboxes in one place.
    #[serde(rename = "@job", default, with = "display_option", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::name")]
    pub job: Option<Name>,
    /// Only those; left out: all that have not ended.
    #[serde(rename = "@status", default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Only those behind that place.
    #[serde(rename = "@after", default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// So far I am with an accepted task: in words, in percent, or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// The task.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// How much is done.
    #[serde(rename = "@percent", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    pub percent: Option<u8>,
    /// In words; may be empty.
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
    /// Whether it is added to the parts before, rather than replacing them.
    #[serde(rename = "@append", default, skip_serializing_if = "is_false")]
    pub append: bool,
    /// Whether no other part follows.
    #[serde(rename = "@last", default, skip_serializing_if = "is_false")]
    pub last: bool,
    /// The part; may be empty.
    #[serde(rename = "$text", default)]
    pub text: String,
}
