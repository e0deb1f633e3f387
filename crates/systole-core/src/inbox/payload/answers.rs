use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_xml::ladder::Canonical;

use super::context::{self, ContextPayload, WriteError};
use super::is_false;
use super::requests::reference;
use crate::inbox::{Artifact, Event, EventKind, InboxProblem, Status, Task};
use crate::protocol::{display, display_option};
use crate::vocab::{Name, TaskId, Time};

reference! {
    /// The answer to an event or a result that was sent: it has arrived.
    Noted;
}

/// The owner of an inbox asks the submitter. Answered by input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The task.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// The number of the event among those of the task, which tells this question from others.
    #[serde(rename = "@number")]
    pub number: u32,
    /// The text.
    #[serde(rename = "$text")]
    #[schemars(length(min = 1))]
    pub text: String,
}

/// A detached task was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submitted {
    /// The task.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// How far it has come.
    #[serde(rename = "@status")]
    pub status: Status,
    /// Whether it is a new task, rather than the one that has the key.
    #[serde(rename = "@new")]
    pub new: bool,
}

/// It is done; this is how far the task is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// The task.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// How far it has come.
    #[serde(rename = "@status")]
    pub status: Status,
}

/// Tasks, in order of arrival.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tasks {
    /// How many follow: list again, after the place of the last one here.
    #[serde(rename = "@more")]
    pub more: u32,
    /// The tasks, in short.
    #[serde(default)]
    pub brief: Vec<Brief>,
}

/// A task in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "brief")]
pub struct Brief {
    /// The task.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// How far it has come.
    #[serde(rename = "@status")]
    pub status: Status,
    /// Its place in the order of arrival.
    #[serde(rename = "@place")]
    pub place: u64,
    /// Who submitted it.
    #[serde(rename = "@agent", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub agent: Name,
    /// The job for which.
    #[serde(rename = "@job", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub job: Name,
    /// Its description.
    #[serde(rename = "$text", default)]
    pub description: String,
}

/// All of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskPayload {
    /// Its id.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// How far it has come.
    #[serde(rename = "@status")]
    pub status: Status,
    /// Its place in the order of arrival.
    #[serde(rename = "@place")]
    pub place: u64,
    /// Who submitted it.
    #[serde(rename = "@agent", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub agent: Name,
    /// The job for which.
    #[serde(rename = "@job", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub job: Name,
    /// The job that is to do it.
    #[serde(rename = "@target", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub target: Name,
    /// When it was submitted.
    #[serde(rename = "@created", with = "display")]
    #[schemars(schema_with = "super::moment")]
    pub created: Time,
    /// When the last thing happened to it.
    #[serde(rename = "@changed", with = "display")]
    #[schemars(schema_with = "super::moment")]
    pub changed: Time,
    /// When it fails at the latest.
    #[serde(rename = "@deadline", default, with = "display_option", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::moment")]
    pub deadline: Option<Time>,
    /// How often it was accepted.
    #[serde(rename = "@attempts")]
    pub attempts: u32,
    /// Whether the submitter doesn't wait for it.
    #[serde(rename = "@detached", default, skip_serializing_if = "is_false")]
    pub detached: bool,
    /// What is to be done.
    #[schemars(length(min = 1))]
    pub description: String,
    /// What helps to do it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
    /// How far the owner says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressPayload>,
    /// Questions to the submitter, in order.
    #[serde(default)]
    pub exchange: Vec<ExchangePayload>,
    /// The pieces of the result.
    #[serde(default)]
    pub artifact: Vec<Piece>,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why it failed, was rejected or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why its submitter could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undelivered: Option<String>,
}

/// How far the owner says a task is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "progress-so-far")]
pub struct ProgressPayload {
    /// How much is done.
    #[serde(rename = "@percent", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    pub percent: Option<u8>,
    /// When it was said.
    #[serde(rename = "@at", with = "display")]
    #[schemars(schema_with = "super::moment")]
    pub at: Time,
    /// In words; may be empty.
    #[serde(rename = "$text", default)]
    pub text: String,
}

/// A question to the submitter, and its answer if there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "exchange")]
pub struct ExchangePayload {
    /// What the owner asked.
    #[schemars(length(min = 1))]
    pub question: String,
    /// What the submitter answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub answer: Option<String>,
}

/// A piece of the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "artifact")]
pub struct Piece {
    /// Its name.
    #[serde(rename = "@name")]
    #[schemars(length(min = 1))]
    pub name: String,
    /// Whether it is whole.
    #[serde(rename = "@last", default, skip_serializing_if = "is_false")]
    pub last: bool,
    /// All of it.
    #[serde(rename = "$text", default)]
    pub text: String,
}

/// A task has ended. It answers submit; to the submitter of a detached task it is sent, and may be answered by noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResultPayload {
    /// The task.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// How it ended.
    #[serde(rename = "@status")]
    pub status: Status,
    /// The result of a completed task, else the reason.
    pub text: String,
    /// The pieces of the result.
    #[serde(default)]
    pub artifact: Vec<Piece>,
}

/// Something happened to a detached task that is watched. May be answered by noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventPayload {
    /// The task.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// Its number among the events of the task, from 1.
    #[serde(rename = "@number")]
    pub number: u32,
    /// What happened.
    #[serde(rename = "@kind")]
    pub kind: EventKind,
    /// When.
    #[serde(rename = "@at", with = "display")]
    #[schemars(schema_with = "super::moment")]
    pub at: Time,
    /// How much is done, if somebody said so.
    #[serde(rename = "@percent", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    pub percent: Option<u8>,
    /// What was said; may be empty.
    #[serde(rename = "$text", default)]
    pub text: String,
}

context::carries_context!(TaskPayload);

impl From<&Task> for TaskPayload {
    fn from(task: &Task) -> Self {
        let progress = task.progress.as_ref().map(|progress| ProgressPayload {
            percent: progress.percent,
            at: progress.at,
            text: progress.text.clone(),
        });
        let exchanges = task.questions.iter();
        Self {
            id: task.id,
            status: task.status,
            place: task.place,
            agent: task.source.agent.clone(),
            job: task.source.job.clone(),
            target: task.target.clone(),
            created: task.created,
            changed: task.changed,
            deadline: task.deadline,
            attempts: task.attempts,
            detached: task.detached,
            description: task.description.clone(),
            context: (&task.context).into(),
            progress,
            exchange: exchanges
                .map(|one| ExchangePayload { question: one.question.clone(), answer: one.answer.clone() })
                .collect(),
            artifact: pieces(&task.artifacts),
            result: task.result.clone(),
            reason: task.reason.clone(),
            undelivered: task.undelivered.clone(),
        }
    }
}

impl From<&Task> for Brief {
    fn from(task: &Task) -> Self {
        Self {
            id: task.id,
            status: task.status,
            place: task.place,
            agent: task.source.agent.clone(),
            job: task.source.job.clone(),
            description: task.description.clone(),
        }
    }
}

impl From<&Task> for ResultPayload {
    fn from(task: &Task) -> Self {
        let text = task.result.as_ref().or(task.reason.as_ref()).cloned().unwrap_or_default();
        Self { id: task.id, status: task.status, text, artifact: pieces(&task.artifacts) }
    }
}

impl From<&Event> for EventPayload {
    fn from(event: &Event) -> Self {
        Self {
            id: event.task,
            number: event.number,
            kind: event.kind,
            at: event.at,
            percent: event.percent,
            text: event.text.clone().unwrap_or_default(),
        }
    }
}

fn pieces(artifacts: &[Artifact]) -> Vec<Piece> {
    let piece = |one: &Artifact| Piece { name: one.name.clone(), last: one.ended, text: one.text.clone() };
    artifacts.iter().map(piece).collect()
}
