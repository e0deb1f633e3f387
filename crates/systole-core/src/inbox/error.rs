//! Errors of an inbox.

use std::fmt;

use super::principal::InboxPrincipal;
use super::status::{Status, Transition};
use crate::vocab::{NameError, TaskId, Time};

/// The refusal of a request by an inbox. Nothing has changed then.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InboxError {
    /// A required text is empty, or holds only white space.
    #[error("the {field} is empty: write at least one character that is no space")]
    Empty {
        /// The empty text.
        field: Field,
    },
    /// A text that must be a name is none.
    #[error("the {field} is no name: {error}")]
    Name {
        /// The text that is no name.
        field: Field,
        /// The rule that it breaks.
        error: NameError,
    },
    /// A text holds a character that XML can't carry.
    #[error("the {field} holds {character:?} at byte {at}, which XML can't carry: remove it or encode the text")]
    Character {
        /// The text with the character.
        field: Field,
        /// The character.
        character: char,
        /// The place of the character, in bytes from the start of the text.
        at: usize,
    },
    /// A text is too long.
    #[error("the {field} has {bytes} bytes in XML, at most {limit} are taken: shorten it")]
    TooLong {
        /// The text, or the texts that are too long together.
        field: Field,
        /// The length as written in XML, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The task has the greatest number of parts of one kind.
    #[error("the task has {limit} {field}s, its limit")]
    TooMany {
        /// The kind of the parts.
        field: Field,
        /// The limit.
        limit: usize,
    },
    /// The inbox has no room for another task.
    #[error(
        "the inbox has no room: this would make {open} tasks, {limit} may be, with {bytes} bytes, {limit_bytes} may be; try again later"
    )]
    Full {
        /// The number of open tasks, with the new one.
        open: usize,
        /// The limit on tasks.
        limit: usize,
        /// The bytes of these tasks as written in XML.
        bytes: usize,
        /// The limit on bytes.
        limit_bytes: usize,
    },
    /// No task has the id.
    #[error("there is no task {id} here: ids are given when a task is submitted; list names those that are open")]
    Unknown {
        /// The id.
        id: TaskId,
    },
    /// Only the owner of the inbox may do this.
    #[error("{actor} may not {transition}: only the owner of the inbox moves its tasks")]
    NotOwner {
        /// The principal that tried.
        actor: InboxPrincipal,
        /// The transition that was tried.
        transition: Transition,
    },
    /// Only the submitter of the task may do this.
    #[error("{actor} may not {transition} for task {id}: only its submitter may")]
    NotSubmitter {
        /// The task.
        id: TaskId,
        /// The principal that tried.
        actor: InboxPrincipal,
        /// The transition that was tried.
        transition: Transition,
    },
    /// The lifecycle has no such step.
    #[error("task {id} is {from}: {transition} {}", transition.way())]
    Transition {
        /// The task.
        id: TaskId,
        /// The status of the task.
        from: Status,
        /// The transition that was tried.
        transition: Transition,
    },
    /// An idempotency key came again with another body.
    #[error("the key '{}' was used for task {id} with another body: choose a new key for a new task", key.escape_debug())]
    KeyTaken {
        /// The key.
        key: String,
        /// The task that has it.
        id: TaskId,
    },
    /// The id is that of another task.
    #[error("task {id} is there already with another body: choose a new id for a new task")]
    IdTaken {
        /// The id.
        id: TaskId,
    },
    /// The task, or a part of it, isn't as it must be.
    #[error("{0}")]
    Problem(#[from] InboxProblem),
}

crate::vocab::debug_is_display!(InboxError);

/// A mistake in a task, beside the length of its texts.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InboxProblem {
    /// The deadline has passed.
    #[error("the deadline {deadline} has passed, it is {now}: leave it out or choose a later one")]
    Deadline {
        /// The deadline.
        deadline: Time,
        /// The time.
        now: Time,
    },
    /// Two entries of the context have one key.
    #[error("the context has the key '{}' twice: use each key once", key.escape_debug())]
    KeyTwice {
        /// The key.
        key: String,
    },
    /// The context is no XML.
    #[error("the context is no XML: {0}")]
    Xml(String),
    /// The submitter wants events, but waits for the result.
    #[error("events are sent for detached tasks only: set detached, or leave watched out")]
    EventsNeedDetached,
    /// The submitter wants events, and the job sends none.
    #[error("this job sends no events: leave watched out")]
    NoEvents,
    /// The percentage is greater than 100.
    #[error("{percent} percent are done: write 0 to 100")]
    Percent {
        /// The percentage.
        percent: u8,
    },
    /// An artifact is finished.
    #[error("the artifact '{}' had its last part: choose another name", name.escape_debug())]
    ArtifactEnded {
        /// The name of the artifact.
        name: String,
    },
    /// An artifact that is to be appended to was never started.
    #[error("there is no artifact '{}' to append to: send its first part without append", name.escape_debug())]
    NoArtifact {
        /// The name of the artifact.
        name: String,
    },
    /// The submitter has not acknowledged the events so far.
    #[error("{waiting} events wait until the submitter acknowledges them: try again later")]
    Outbox {
        /// The number of events that wait.
        waiting: usize,
    },
}

crate::vocab::debug_is_display!(InboxProblem);

/// A part of a task, for errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// The name of the acting principal.
    Agent,
    /// The name of the job on whose behalf the task is submitted.
    SourceJob,
    /// The name of the job that is to do the task.
    Job,
    /// The description of the task.
    Description,
    /// The context of the task.
    Context,
    /// A key of the context.
    ContextKey,
    /// A value of the context.
    ContextValue,
    /// The idempotency key.
    Key,
    /// The progress, in words.
    Progress,
    /// A piece of the result.
    Artifact,
    /// The name of such a piece.
    ArtifactName,
    /// A question of the owner.
    Question,
    /// An answer of the submitter.
    Answer,
    /// The result of a completed task.
    Result,
    /// The reason of a task that ended without a result.
    Reason,
    /// A skill of a job.
    Skill,
    /// The whole task.
    Task,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agent => "name of the agent",
            Self::SourceJob => "name of the submitting job",
            Self::Job => "name of the job",
            Self::Description => "description",
            Self::Context => "context",
            Self::ContextKey => "context key",
            Self::ContextValue => "context value",
            Self::Key => "idempotency key",
            Self::Progress => "progress",
            Self::Artifact => "artifact",
            Self::ArtifactName => "name of the artifact",
            Self::Question => "question",
            Self::Answer => "answer",
            Self::Result => "result",
            Self::Reason => "reason",
            Self::Skill => "skill",
            Self::Task => "task",
        })
    }
}
