use std::fmt;

use super::principal::Principal;
use super::status::{Act, Status};
use crate::vocab::{NameError, TaskId, Time};

/// Why an inbox refuses. Nothing has changed then.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboxError {
    /// A text that must say something says nothing, or holds only white space.
    #[error("the {field} is empty: write at least one character that is no space")]
    Empty {
        /// Which text.
        field: Field,
    },
    /// A text that must be a name is none.
    #[error("the {field} is no name: {error}")]
    Name {
        /// Which text.
        field: Field,
        /// Why.
        error: NameError,
    },
    /// A text holds a character that XML can't carry.
    #[error("the {field} holds {character:?} at byte {at}, which XML can't carry: remove it or encode the text")]
    Character {
        /// Which text.
        field: Field,
        /// The character.
        character: char,
        /// Where, in bytes from the start of the text.
        at: usize,
    },
    /// A text is too long.
    #[error("the {field} has {bytes} bytes in XML, at most {limit} are taken: shorten it")]
    TooLong {
        /// Which text, or what several make together.
        field: Field,
        /// How long it is, as it stands in XML.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// There is too much of something.
    #[error("the task has {limit} {field}s, and takes no more")]
    TooMany {
        /// Of what.
        field: Field,
        /// How many may be.
        limit: usize,
    },
    /// The inbox has no room for another task.
    #[error(
        "the inbox has no room: this would make {open} tasks, {limit} may be, with {bytes} bytes, {limit_bytes} may be; try again later"
    )]
    Full {
        /// Tasks that would not be over.
        open: usize,
        /// How many may be.
        limit: usize,
        /// Their bytes then, as they stand in XML.
        bytes: usize,
        /// How many may be.
        limit_bytes: usize,
    },
    /// There is no such task.
    #[error("there is no task {id} here: ids are given when a task is submitted; list names those that are open")]
    Unknown {
        /// The id.
        id: TaskId,
    },
    /// Only the owner of the inbox may do this.
    #[error("{actor} may not {act}: only the owner of the inbox moves its tasks")]
    NotOwner {
        /// Who tried.
        actor: Principal,
        /// What.
        act: Act,
    },
    /// Only the submitter of the task may do this.
    #[error("{actor} may not {act} for task {id}: only who submitted it may")]
    NotSubmitter {
        /// The task.
        id: TaskId,
        /// Who tried.
        actor: Principal,
        /// What.
        act: Act,
    },
    /// The lifecycle has no such step.
    #[error("task {id} is {from}: {act} {}", act.way())]
    Transition {
        /// The task.
        id: TaskId,
        /// Where it is.
        from: Status,
        /// What was tried.
        act: Act,
    },
    /// The same idempotency key came with another body.
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

/// What is wrong with a task, beside the length of its texts.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboxProblem {
    /// Its deadline has passed.
    #[error("the deadline {deadline} has passed, it is {now}: leave it out or choose a later one")]
    Deadline {
        /// The deadline.
        deadline: Time,
        /// The time.
        now: Time,
    },
    /// Two entries of its context have one key.
    #[error("the context has the key '{}' twice: use each key once", key.escape_debug())]
    KeyTwice {
        /// The key.
        key: String,
    },
    /// Its context is no XML.
    #[error("the context is no XML: {0}")]
    Xml(String),
    /// Its submitter wants events, but waits for the result.
    #[error("events are sent to those who submit detached: set detached, or leave events out")]
    EventsNeedDetached,
    /// Its submitter wants events, and the job sends none.
    #[error("this job sends no events: leave watched out")]
    NoEvents,
    /// More than all of it is done.
    #[error("{percent} percent are done: write 0 to 100")]
    Percent {
        /// How much.
        percent: u8,
    },
    /// An artifact is finished.
    #[error("the artifact '{}' had its last part: choose another name", name.escape_debug())]
    ArtifactEnded {
        /// Its name.
        name: String,
    },
    /// An artifact that is to be appended to was never started.
    #[error("there is no artifact '{}' to append to: send its first part without append", name.escape_debug())]
    NoArtifact {
        /// Its name.
        name: String,
    },
    /// Its submitter has not taken what happened so far.
    #[error("{waiting} events wait for the submitter, who has not taken them: try again later")]
    Outbox {
        /// How many wait.
        waiting: usize,
    },
}

crate::vocab::debug_is_display!(InboxProblem);

/// A part of a task, for errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// The name of whoever acts.
    Agent,
    /// The name of the job for which somebody submits.
    SourceJob,
    /// The name of the job that is to do it.
    Job,
    /// What is to be done.
    Description,
    /// What helps to do it.
    Context,
    /// A key of the context.
    ContextKey,
    /// A value of the context.
    ContextValue,
    /// The idempotency key.
    Key,
    /// How far it is, in words.
    Progress,
    /// A piece of the result.
    Artifact,
    /// The name of such a piece.
    ArtifactName,
    /// What the owner asks.
    Question,
    /// What the submitter answers.
    Answer,
    /// What came of it.
    Result,
    /// Why it ended without a result.
    Reason,
    /// What a job can do.
    Skill,
    /// All of the task.
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
