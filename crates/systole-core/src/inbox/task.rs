//! Tasks, with their progress, artifacts and questions.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checks::cost;
use super::context::TaskContext;
use super::event::TaskEvent;
use super::status::Status;
use crate::protocol::{display, display_option};
use crate::vocab::{Name, TaskId, Time};

/// A task of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Task {
    /// The id of the task.
    #[serde(with = "display")]
    pub id: TaskId,
    /// The place in the order of arrival.
    pub place: u64,
    /// The submitter.
    pub source: Submitter,
    /// The job that is to do the task.
    #[serde(with = "display")]
    pub target: Name,
    /// The work.
    pub description: String,
    /// The context of the work.
    pub context: TaskContext,
    /// The idempotency key, of which each submitter has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The time at which the task fails at the latest.
    #[serde(default, with = "display_option", skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// States whether the submitter doesn't wait for it: the result is sent.
    pub detached: bool,
    /// States whether all events are sent, rather than questions and the end alone.
    pub watched: bool,
    /// States whether its job was ever there.
    pub routed: bool,
    /// The state of the task.
    pub status: Status,
    /// The time of the submission.
    #[serde(with = "display")]
    pub created: Time,
    /// The time of the last event.
    #[serde(with = "display")]
    pub changed: Time,
    /// The number of times that the task was accepted.
    pub attempts: u32,
    /// The progress, as the owner reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<TaskProgress>,
    /// The pieces of the result, in order of their first parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The questions of the owner, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Exchange>,
    /// The result of a completed task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The reason why the task failed, was rejected or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number of events.
    pub events: u32,
    /// The events of a detached task that the submitter has yet to acknowledge, in order.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub outbox: VecDeque<TaskEvent>,
    /// The reason why the result could not be delivered to the submitter, once delivery was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undelivered: Option<String>,
    /// The digest of the submission of a task that is forgotten but for its key; its texts are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<String>,
}

/// The submitter of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Submitter {
    /// The job on whose behalf the task was submitted, as the submitter states it.
    #[serde(with = "display")]
    #[schemars(with = "String")]
    pub job: Name,
    /// The submitter, as the pump knows it.
    #[serde(with = "display")]
    #[schemars(with = "String")]
    pub agent: Name,
}

/// The progress of a task, as the owner reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskProgress {
    /// The percentage that is done, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    pub percent: Option<u8>,
    /// The progress in words; may be empty.
    pub text: String,
    /// The time of the report.
    #[serde(with = "display")]
    #[schemars(with = "String")]
    pub at: Time,
}

/// A piece of the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// The name; no two of one task have the same.
    pub name: String,
    /// The text of all parts so far.
    pub text: String,
    /// States whether it had its last part.
    pub ended: bool,
}

/// A question to the submitter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// The number of the event by which it was asked.
    pub number: u32,
    /// The question of the owner.
    pub question: String,
    /// The time of the question.
    #[serde(with = "display")]
    #[schemars(with = "String")]
    pub asked: Time,
    /// The answer of the submitter, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl Task {
    /// The question that waits for an answer.
    pub fn open_question(&self) -> Option<&Exchange> {
        self.questions.last().filter(|exchange| exchange.answer.is_none())
    }

    /// Returns whether nothing remains to be done for it: it has ended, and its submitter has got its events.
    pub fn is_over(&self) -> bool {
        self.status.is_ended() && self.outbox.is_empty()
    }

    /// Returns whether only the idempotency key of the task is known.
    pub fn is_forgotten(&self) -> bool {
        self.forgotten.is_some()
    }

    /// Drops everything but what a repeated submission of the same key needs.
    pub(super) fn forget(&mut self) {
        self.forgotten = Some(self.digest());
        self.description.clear();
        self.context = TaskContext::None;
        self.progress = None;
        self.artifacts = Vec::new();
        self.questions = Vec::new();
        (self.result, self.reason, self.undelivered) = (None, None, None);
    }

    /// Returns whether another task was submitted with the same text and settings.
    pub(super) fn has_same_body(&self, other: &Self) -> bool {
        match &self.forgotten {
            Some(digest) => *digest == other.digest(),
            None => {
                let body =
                    |task: &Self| (task.source.clone(), task.key.clone(), task.deadline, task.detached, task.watched);
                body(self) == body(other) && self.description == other.description && self.context == other.context
            }
        }
    }

    /// The digest of what the submitter sent.
    fn digest(&self) -> String {
        let Self { source, key, deadline, detached, watched, description, context, .. } = self;
        let deadline = deadline.map(Time::as_nanos);
        let body = serde_json::to_vec(&(source, key, deadline, detached, watched, description, context));
        blake3::hash(&body.expect("texts and numbers have a JSON form")).to_hex().to_string()
    }

    /// The bytes of its texts in XML, without the events that wait.
    pub(super) fn size(&self) -> usize {
        let context = match &self.context {
            TaskContext::None => 0,
            TaskContext::Entries(entries) => entries.iter().map(|entry| cost(&entry.key) + cost(&entry.value)).sum(),
            TaskContext::Xml(xml) => xml.as_str().len(),
        };
        let texts = [&self.key, &self.result, &self.reason, &self.undelivered];
        let texts = texts.into_iter().flatten().chain([&self.description]).map(|text| cost(text));
        let asked = self.questions.iter().map(Exchange::size);
        context
            + texts.sum::<usize>()
            + asked.sum::<usize>()
            + self.artifact_size()
            + self.progress.as_ref().map_or(0, |progress| cost(&progress.text))
    }

    pub(super) fn artifact_size(&self) -> usize {
        self.artifacts.iter().map(|artifact| cost(&artifact.name) + cost(&artifact.text)).sum()
    }

    /// The bytes of everything that is kept of it.
    pub(super) fn held(&self) -> usize {
        const EVENT: usize = 64;
        /// The record itself, which counts where there are no texts.
        const RECORD: usize = 1 << 10;
        let waiting = self.outbox.iter().map(|event| EVENT + event.text.as_deref().map_or(0, cost));
        self.size() + waiting.sum::<usize>() + if self.is_forgotten() { RECORD } else { 0 }
    }
}

impl Exchange {
    fn size(&self) -> usize {
        cost(&self.question) + self.answer.as_deref().map_or(0, cost)
    }
}
