use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::checks::cost;
use super::context::TaskContext;
use super::event::Event;
use super::status::Status;
use crate::protocol::{display, display_option};
use crate::vocab::{Name, TaskId, Time};

/// Something that somebody asked a job to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Task {
    /// Its id.
    #[serde(with = "display")]
    pub id: TaskId,
    /// Its place in the order of arrival.
    pub place: u64,
    /// Who submitted it.
    pub source: Source,
    /// The job that is to do it.
    #[serde(with = "display")]
    pub target: Name,
    /// What is to be done.
    pub description: String,
    /// What helps to do it.
    pub context: TaskContext,
    /// The idempotency key, of which each submitter has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// When it fails at the latest.
    #[serde(default, with = "display_option", skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// Whether the submitter doesn't wait for it: what comes of it is sent.
    pub detached: bool,
    /// Whether everything that happens is sent, rather than questions and the end alone.
    pub watched: bool,
    /// Whether its job was ever there.
    pub routed: bool,
    /// How far it has come.
    pub status: Status,
    /// When it was submitted.
    #[serde(with = "display")]
    pub created: Time,
    /// When the last thing happened to it.
    #[serde(with = "display")]
    pub changed: Time,
    /// How often it was accepted.
    pub attempts: u32,
    /// How far the owner says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The pieces of the result, in order of their first parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// What the owner asked, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Exchange>,
    /// What came of it, for a completed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why it failed, was rejected or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many events there were.
    pub events: u32,
    /// The events that its submitter has yet to be told, in order; for a detached one.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub outbox: VecDeque<Event>,
    /// Why the submitter could not be told, if that was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undelivered: Option<String>,
}

/// Who submitted a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The job for which it was submitted, as the submitter says.
    #[serde(with = "display")]
    pub job: Name,
    /// The submitter, as the pump knows it.
    #[serde(with = "display")]
    pub agent: Name,
}

/// How far the owner says a task is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// How much is done, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// In words; may be empty.
    pub text: String,
    /// When it was said.
    #[serde(with = "display")]
    pub at: Time,
}

/// A piece of the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Its name; no two of one task have the same.
    pub name: String,
    /// All parts so far.
    pub text: String,
    /// Whether it had its last part.
    pub ended: bool,
}

/// A question to the submitter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// The number of the event by which it was asked.
    pub number: u32,
    /// What the owner asked.
    pub question: String,
    /// When.
    #[serde(with = "display")]
    pub asked: Time,
    /// What the submitter answered, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl Task {
    /// The question that waits for an answer.
    pub fn open_question(&self) -> Option<&Exchange> {
        self.questions.last().filter(|exchange| exchange.answer.is_none())
    }

    /// Whether nothing remains to be done for it: it has ended, and its submitter was told what it is to be told.
    pub fn is_over(&self) -> bool {
        self.status.is_ended() && self.outbox.is_empty()
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
        let waiting = self.outbox.iter().map(|event| EVENT + event.text.as_deref().map_or(0, cost));
        self.size() + waiting.sum::<usize>()
    }
}

impl Exchange {
    fn size(&self) -> usize {
        cost(&self.question) + self.answer.as_deref().map_or(0, cost)
    }
}
