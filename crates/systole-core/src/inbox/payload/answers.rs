//! Payloads of an inbox: answers, and the messages to submitters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_xml::ladder::Canonical;

use super::context::{self, ContextPayload, WriteError};
use super::is_false;
use super::requests::reference;
use crate::inbox::{Artifact, InboxProblem, Status, Task, TaskEvent, TaskEventKind};
use crate::protocol::{display, display_option};
use crate::vocab::{Name, TaskId, Time};

reference! {
    /// Acknowledges an event or a result that was sent.
    Noted;
}

/// A question of the owner to the submitter. Answered by input.
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

/// Acknowledges the submission of a detached task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submitted {
    /// The task.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// The status of the task.
    #[serde(rename = "@status")]
    pub status: Status,
    /// True if the task is new, false if an earlier task has the key.
    #[serde(rename = "@new")]
    pub new: bool,
}

/// Acknowledges a change of a task, with the status that the task has now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// The task.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// The status of the task.
    #[serde(rename = "@status")]
    pub status: Status,
}

/// Tasks, in order of arrival.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tasks {
    /// The number of tasks that follow: list again, after the place of the last task here.
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
    /// The status of the task.
    #[serde(rename = "@status")]
    pub status: Status,
    /// The place in the order of arrival.
    #[serde(rename = "@place")]
    pub place: u64,
    /// The submitter.
    #[serde(rename = "@agent", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub agent: Name,
    /// The job on whose behalf the task was submitted.
    #[serde(rename = "@job", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub job: Name,
    /// The description.
    #[serde(rename = "$text", default)]
    pub description: String,
}

/// A whole task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskPayload {
    /// The id of the task.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// The status of the task.
    #[serde(rename = "@status")]
    pub status: Status,
    /// The place in the order of arrival.
    #[serde(rename = "@place")]
    pub place: u64,
    /// The submitter.
    #[serde(rename = "@agent", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub agent: Name,
    /// The job on whose behalf the task was submitted.
    #[serde(rename = "@job", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub job: Name,
    /// The job that is to do the task.
    #[serde(rename = "@target", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub target: Name,
    /// The time of the submission.
    #[serde(rename = "@created", with = "display")]
    #[schemars(schema_with = "super::date_time")]
    pub created: Time,
    /// The time of the last event.
    #[serde(rename = "@changed", with = "display")]
    #[schemars(schema_with = "super::date_time")]
    pub changed: Time,
    /// The time at which the task fails at the latest.
    #[serde(rename = "@deadline", default, with = "display_option", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::date_time")]
    pub deadline: Option<Time>,
    /// The number of times that the task was accepted.
    #[serde(rename = "@attempts")]
    pub attempts: u32,
    /// True if the submitter doesn't wait for the task.
    #[serde(rename = "@detached", default, skip_serializing_if = "is_false")]
    pub detached: bool,
    /// The work to be done.
    #[schemars(length(min = 1))]
    pub description: String,
    /// Data that helps to do the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
    /// The progress, as the owner reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressPayload>,
    /// Questions to the submitter, in order.
    #[serde(default)]
    pub exchange: Vec<ExchangePayload>,
    /// The pieces of the result.
    #[serde(default)]
    pub artifact: Vec<ResultPiece>,
    /// The result of a completed task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The reason why the task failed, was rejected or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason why a message could not be delivered to the submitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undelivered: Option<String>,
}

/// The progress of a task, as the owner reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "progress-so-far")]
pub struct ProgressPayload {
    /// The percentage that is done.
    #[serde(rename = "@percent", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    pub percent: Option<u8>,
    /// The time of the report.
    #[serde(rename = "@at", with = "display")]
    #[schemars(schema_with = "super::date_time")]
    pub at: Time,
    /// The progress in words; may be empty.
    #[serde(rename = "$text", default)]
    pub text: String,
}

/// A question to the submitter, and its answer if there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "exchange")]
pub struct ExchangePayload {
    /// The question of the owner.
    #[schemars(length(min = 1))]
    pub question: String,
    /// The answer of the submitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub answer: Option<String>,
}

/// A piece of the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "artifact")]
pub struct ResultPiece {
    /// The name of the piece.
    #[serde(rename = "@name")]
    #[schemars(length(min = 1))]
    pub name: String,
    /// True if the piece is whole.
    #[serde(rename = "@last", default, skip_serializing_if = "is_false")]
    pub last: bool,
    /// The text of the piece.
    #[serde(rename = "$text", default)]
    pub text: String,
}

/// The end of a task. It answers submit; to the submitter of a detached task it is sent, and may be answered by noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResultPayload {
    /// The task.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// The status with which the task ended.
    #[serde(rename = "@status")]
    pub status: Status,
    /// The result of a completed task, else the reason.
    pub text: String,
    /// The pieces of the result.
    #[serde(default)]
    pub artifact: Vec<ResultPiece>,
}

/// An event of a detached task that is watched. May be answered by noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventPayload {
    /// The task.
    #[serde(rename = "@id", with = "display")]
    #[schemars(schema_with = "super::id")]
    pub id: TaskId,
    /// The number among the events of the task, from 1.
    #[serde(rename = "@number")]
    pub number: u32,
    /// The kind of the event.
    #[serde(rename = "@kind")]
    pub kind: TaskEventKind,
    /// The time of the event.
    #[serde(rename = "@at", with = "display")]
    #[schemars(schema_with = "super::date_time")]
    pub at: Time,
    /// The percentage that is done, if the owner reported one.
    #[serde(rename = "@percent", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    pub percent: Option<u8>,
    /// The text of the event; may be empty.
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

impl From<&TaskEvent> for EventPayload {
    fn from(event: &TaskEvent) -> Self {
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

fn pieces(artifacts: &[Artifact]) -> Vec<ResultPiece> {
    let piece = |one: &Artifact| ResultPiece { name: one.name.clone(), last: one.ended, text: one.text.clone() };
    artifacts.iter().map(piece).collect()
}
