//! Submissions of tasks, with their idempotency keys.

use super::checks;
use super::context::TaskContext;
use super::error::{Field, InboxError, InboxProblem};
use super::event::{InboxChange, TaskEventKind};
use super::principal::InboxPrincipal;
use super::status::Status;
use super::store::{Said, TaskInbox, note};
use super::task::{Submitter, Task};
use crate::vocab::{TaskId, Time};

/// A submission to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The name of the job for which it is asked.
    pub job: String,
    /// The work.
    pub description: String,
    /// The context of the work.
    pub context: TaskContext,
    /// The time at which it fails at the latest.
    pub deadline: Option<Time>,
    /// A text by which the submitter knows a task again: the same one with the same body gives the same task.
    pub key: Option<String>,
    /// States whether the submitter doesn't wait: the result is sent.
    pub detached: bool,
    /// States whether all events are sent, rather than questions and the end alone; for a detached one.
    pub watched: bool,
}

/// A task that was submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct SubmittedTask {
    /// The id of the task: the one that was given, or that of the task which has the key.
    pub id: TaskId,
    /// States whether it is a new task.
    pub new: bool,
    /// The changes; none if it isn't.
    pub change: InboxChange,
}

impl Submission {
    /// A description, for a job; nothing else.
    pub fn new(job: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            job: job.into(),
            description: description.into(),
            context: TaskContext::None,
            deadline: None,
            key: None,
            detached: false,
            watched: false,
        }
    }
}

impl TaskInbox {
    /// Takes a task under a fresh id; the same submission of the same id or key gives the same task, for as long as it is
    /// known: a key for [`InboxLimits::keys`](super::InboxLimits::keys) after the end of its task at least.
    ///
    /// # Errors
    /// Texts that are empty, too long or no XML, a deadline that has passed, [`InboxError::KeyTaken`],
    /// [`InboxError::IdTaken`], [`InboxError::Full`].
    pub fn submit(
        &mut self,
        actor: &InboxPrincipal,
        submission: Submission,
        id: TaskId,
        now: Time,
    ) -> Result<SubmittedTask, InboxError> {
        let mut task = self.task_of(actor, submission, id, now)?;
        if let Some(known) = self.known(&task)? {
            return Ok(SubmittedTask { id: known, new: false, change: InboxChange::default() });
        }
        if let Some(deadline) = task.deadline.filter(|deadline| *deadline <= now) {
            return Err(InboxProblem::Deadline { deadline, now }.into());
        }
        // A refusal changes nothing.
        self.may_open(&task, now)?;
        let mut change = self.forget_keys(now);
        change.append(self.make_room(task.size(), now));
        self.next_place += 1;
        let said = |kind| Said { kind, percent: None, text: None };
        change.events.push(note(&mut task, now, &said(TaskEventKind::Submitted)));
        if self.owner.is_some() {
            task.routed = true;
            change.events.push(note(&mut task, now, &said(TaskEventKind::Routed)));
        }
        change.append(self.saved(id));
        self.insert(task);
        Ok(SubmittedTask { id, new: true, change })
    }

    /// The task that has the id or the key of this one, if its body is the same.
    fn known(&self, task: &Task) -> Result<Option<TaskId>, InboxError> {
        if let Ok(known) = self.get(task.id) {
            let id = task.id;
            return if known.has_same_body(task) { Ok(Some(id)) } else { Err(InboxError::IdTaken { id }) };
        }
        let Some(key) = &task.key else { return Ok(None) };
        match self.of_key(&task.source.agent, key) {
            Some(id) if self.get(id)?.has_same_body(task) => Ok(Some(id)),
            Some(id) => Err(InboxError::KeyTaken { key: key.clone(), id }),
            None => Ok(None),
        }
    }

    fn task_of(&self, actor: &InboxPrincipal, given: Submission, id: TaskId, now: Time) -> Result<Task, InboxError> {
        let job = checks::name(Field::SourceJob, &given.job)?;
        checks::said(Field::Description, &given.description, self.limits.description_bytes)?;
        checks::context(&given.context, &self.limits)?;
        if let Some(key) = &given.key {
            checks::said(Field::Key, key, self.limits.key_bytes)?;
        }
        if given.watched && !given.detached {
            return Err(InboxProblem::EventsNeedDetached.into());
        }
        Ok(Task {
            id,
            place: self.next_place,
            source: Submitter { job, agent: actor.name().clone() },
            target: self.job.clone(),
            description: given.description,
            context: given.context,
            key: given.key,
            deadline: given.deadline,
            detached: given.detached,
            watched: given.watched,
            routed: false,
            status: Status::Pending,
            created: now,
            changed: now,
            attempts: 0,
            progress: None,
            artifacts: Vec::new(),
            questions: Vec::new(),
            result: None,
            reason: None,
            events: 0,
            outbox: Default::default(),
            undelivered: None,
            forgotten: None,
        })
    }
}
