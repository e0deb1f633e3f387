//! An inbox as the records of a journal.

use std::collections::HashSet;

use super::checks;
use super::directory::VERSION;
use super::error::{Field, InboxError};
use super::event::InboxChange;
use super::limits::InboxLimits;
use super::principal::InboxPrincipal;
use super::status::Status;
use super::store::TaskInbox;
use super::task::Task;
use crate::journal::{Op, TaskRecord};
use crate::vocab::{Name, TaskId, Time};

/// The reason why the records of a journal give no inbox.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// The text is no JSON of the right shape.
    #[error("line {line}, column {column}: {message}")]
    Json {
        /// The line, from 1; 0 for a record of a journal that is no JSON at all.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The text of the parser's error.
        message: String,
    },
    /// Another version wrote it.
    #[error("it is of version {found}, this program reads version {VERSION}: read it with a program of that version")]
    Version {
        /// The version.
        found: u32,
    },
    /// A job breaks a rule that every registry keeps.
    #[error("job {job}: {problem}")]
    Job {
        /// The name of the job.
        job: Name,
        /// The rule that the job breaks.
        problem: String,
    },
    /// A task breaks a rule that every inbox keeps.
    #[error("task {task}: {problem}")]
    Task {
        /// The id of the task.
        task: TaskId,
        /// The rule that the task breaks.
        problem: String,
    },
    /// The name of its job is none, or there is more in it than the limits allow.
    #[error(transparent)]
    Inbox(#[from] InboxError),
}

crate::vocab::debug_is_display!(RecoverError);

impl From<serde_json::Error> for RecoverError {
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
        Self::Json { line: error.line(), column: error.column(), message: message.to_owned() }
    }
}

impl TaskInbox {
    /// An inbox from the records of a journal; those of other inboxes are left alone.
    ///
    /// # Errors
    /// [`RecoverError`] says what is wrong with which task.
    pub fn recover<'a>(
        job: &str,
        owner: InboxPrincipal,
        limits: InboxLimits,
        records: impl IntoIterator<Item = &'a TaskRecord>,
    ) -> Result<Self, RecoverError> {
        Self::new(job, owner)?.with_limits(limits).taken_up(records)
    }

    /// The inbox of the same job, owner and limits, with the tasks in the records of a journal instead of its own.
    pub fn taken_up<'a>(&self, records: impl IntoIterator<Item = &'a TaskRecord>) -> Result<Self, RecoverError> {
        let mut inbox = Self::unclaimed(self.job.clone(), self.limits.clone()).owned_by(self.owner.clone());
        let mut tasks = Vec::new();
        for record in records.into_iter().filter(|record| record.inbox == inbox.job) {
            let task: Task = serde_json::from_str(&record.body)?;
            if (task.id, task.place) != (record.id, record.place) {
                return Err(refused(&task, "its record has another id or place"));
            }
            inbox.next_place = inbox.next_place.max(task.place + 1);
            tasks.push(task);
        }
        inbox.fill(tasks)?;
        Ok(inbox)
    }

    /// The operations that a journal writes for a change, to be put into the step which made it.
    ///
    /// # Panics
    /// Never: a task holds texts, numbers and lists.
    pub fn ops(&self, change: &InboxChange) -> Vec<Op> {
        let gone = change.removed.iter().filter(|(inbox, _)| *inbox == self.job);
        let gone = gone.map(|(inbox, id)| Op::TaskGone { inbox: inbox.clone(), id: *id });
        let mut seen = HashSet::new();
        let saved = change.saved.iter().filter(|(inbox, id)| *inbox == self.job && seen.insert(*id));
        let saved = saved.filter_map(|(_, id)| self.get(*id).ok());
        let saved = saved.map(|task| {
            let body = serde_json::to_string(task).expect("texts, numbers and lists have a JSON form");
            Op::Task(TaskRecord {
                inbox: self.job.clone(),
                id: task.id,
                place: task.place,
                state: task.status.as_str().into(),
                body: body.into(),
            })
        });
        gone.chain(saved).collect()
    }

    /// Takes tasks that are judged first.
    fn fill(&mut self, tasks: Vec<Task>) -> Result<(), RecoverError> {
        let (mut ids, mut places, mut keys) = (HashSet::new(), HashSet::new(), HashSet::new());
        for task in &tasks {
            self.judge(task)?;
            let key = task.key.as_ref().map(|key| (&task.source.agent, key));
            if !ids.insert(task.id) || !places.insert(task.place) || key.is_some_and(|key| !keys.insert(key)) {
                return Err(refused(task, "another one has its id, its place or its key"));
            }
        }
        for task in tasks {
            if !task.is_over() {
                self.may_open(&task, Time::default())?;
            }
            self.insert(task);
        }
        Ok(())
    }

    fn judge(&self, task: &Task) -> Result<(), RecoverError> {
        let refuse = |problem: &str| Err(refused(task, problem));
        let limits = &self.limits;
        if task.target != self.job {
            return refuse("it is for another job");
        }
        if task.place >= self.next_place || task.place == 0 {
            return refuse("its place is not below next_place, or 0");
        }
        if !task.detached && (task.watched || !task.outbox.is_empty()) {
            return refuse("it is watched, or has an outbox, but is not detached");
        }
        if task.is_forgotten() {
            let is_empty = task.size() == task.key.as_deref().map_or(0, checks::cost);
            return match task.is_over() && task.key.is_some() && is_empty {
                true => Ok(()),
                false => refuse("it is forgotten, but not over, or has no key, or has texts besides"),
            };
        }
        if (task.status == Status::InputRequired) != task.open_question().is_some()
            || task.questions.iter().rev().skip(1).any(|exchange| exchange.answer.is_none())
        {
            return refuse("a question is open if and only if its status is input-required, and only the last one");
        }
        if (task.status == Status::Completed) != task.result.is_some() {
            return refuse("it has a result if and only if it is completed");
        }
        let unhappy = matches!(task.status, Status::Failed | Status::Rejected | Status::Cancelled);
        if unhappy != task.reason.is_some() {
            return refuse("it has a reason if and only if it failed, was rejected or cancelled");
        }
        if task.progress.as_ref().and_then(|progress| progress.percent).is_some_and(|percent| percent > 100) {
            return refuse("its progress is more than 100 percent");
        }
        let mut names = HashSet::new();
        if !task.artifacts.iter().all(|artifact| names.insert(&artifact.name)) {
            return refuse("two artifacts have one name");
        }
        let numbers: Vec<_> = task.questions.iter().map(|exchange| exchange.number).collect();
        if !numbers.is_sorted_by(|one, next| one < next) || numbers.last().is_some_and(|last| *last > task.events) {
            return refuse("its questions are out of order");
        }
        let mut last = 0;
        for event in &task.outbox {
            if event.task != task.id || event.number <= last || event.number > task.events {
                return refuse("its outbox holds an event of another task, or out of order");
            }
            last = event.number;
        }
        if task.outbox.len() > limits.outbox + MORE_EVENTS || task.questions.len() > limits.questions {
            return refuse("it has more events that wait, or more questions, than the limits allow");
        }
        texts(task, limits).map(drop).map_err(|error| refused(task, &error.to_string()))
    }
}

/// Events that come without asking whether there is room: an answer, releases, the end.
const MORE_EVENTS: usize = 8;

fn texts(task: &Task, limits: &InboxLimits) -> Result<usize, InboxError> {
    checks::said(Field::Description, &task.description, limits.description_bytes)?;
    checks::context(&task.context, limits)?;
    for (field, text) in [(Field::Result, &task.result), (Field::Reason, &task.reason)] {
        checks::text(field, text.as_deref().unwrap_or_default(), limits.text_bytes)?;
    }
    checks::text(Field::Reason, task.undelivered.as_deref().unwrap_or_default(), limits.text_bytes)?;
    if let Some(key) = &task.key {
        checks::said(Field::Key, key, limits.key_bytes)?;
    }
    if let Some(progress) = &task.progress {
        checks::text(Field::Progress, &progress.text, limits.text_bytes)?;
    }
    for exchange in &task.questions {
        checks::said(Field::Question, &exchange.question, limits.text_bytes)?;
        exchange.answer.as_ref().map(|answer| checks::said(Field::Answer, answer, limits.text_bytes)).transpose()?;
    }
    for event in &task.outbox {
        checks::text(Field::Task, event.text.as_deref().unwrap_or_default(), limits.text_bytes)?;
    }
    if task.artifacts.len() > limits.artifacts {
        return Err(InboxError::TooMany { field: Field::Artifact, limit: limits.artifacts });
    }
    for artifact in &task.artifacts {
        checks::said(Field::ArtifactName, &artifact.name, limits.key_bytes)?;
        checks::text(Field::Artifact, &artifact.text, limits.artifact_bytes)?;
    }
    checks::within(Field::Artifact, task.artifact_size(), limits.artifact_bytes)
}

fn refused(task: &Task, problem: &str) -> RecoverError {
    RecoverError::Task { task: task.id, problem: problem.to_owned() }
}
