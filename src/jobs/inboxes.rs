//! Inboxes of a listener with tasks: the inbox of one job, or those of all registered jobs.

use std::fmt;
use std::sync::Arc;

use systole_core::inbox::payload::Submitted as Taken;
use systole_core::inbox::{
    InboxChange, InboxError, InboxLimits, InboxPrincipal, JobError, Jobs, RecoverError, Status, Submission,
    SubmittedTask, TaskInbox,
};
use systole_core::journal::{Op, Recovered};
use systole_core::vocab::{Name, TaskId, Time};

use super::board::TaskBoard;
use super::shared::Shared;

pub(super) trait Inboxes: fmt::Debug + Send + Sized + 'static {
    /// Returns the inbox that holds a task.
    fn holding(&self, id: TaskId) -> Result<&TaskInbox, InboxError>;
    fn holding_mut(&mut self, id: TaskId) -> Result<&mut TaskInbox, InboxError>;
    /// Returns the inbox of a job; without a name, the only one.
    fn of(&self, job: Option<&Name>) -> Result<&TaskInbox, JobError>;
    fn inboxes(&self) -> impl Iterator<Item = &TaskInbox>;
    /// Returns the limits of each inbox.
    fn limits(&self) -> &InboxLimits;

    /// Takes a task for a job; without a name, for the only one.
    fn submit(
        &mut self,
        actor: &InboxPrincipal,
        to: Option<&Name>,
        submission: Submission,
        id: TaskId,
        now: Time,
    ) -> Result<SubmittedTask, JobError>;
    fn expire(&mut self, now: Time) -> InboxChange;

    /// Takes a task, and returns its status.
    fn take(
        &mut self,
        actor: &InboxPrincipal,
        to: Option<&Name>,
        submission: Submission,
        id: TaskId,
        now: Time,
    ) -> Result<(InboxChange, Taken), JobError> {
        let SubmittedTask { id, new, change } = self.submit(actor, to, submission, id, now)?;
        let status = self.holding(id)?.get(id)?.status;
        Ok((change, Taken { id, status, new }))
    }

    /// Changes a task, and returns its status after the change.
    fn step(
        &mut self,
        id: TaskId,
        act: impl FnOnce(&mut TaskInbox) -> Result<InboxChange, InboxError>,
    ) -> Result<(InboxChange, Status), InboxError> {
        let inbox = self.holding_mut(id)?;
        let change = act(inbox)?;
        Ok((change, inbox.get(id)?.status))
    }

    /// Lists the journal's operations for a change to tasks.
    fn ops(&self, change: &InboxChange) -> Vec<Op>;
    /// Number that changes with [`directory`](Self::directory).
    fn revision(&self) -> u64;
    /// Writes the list of jobs for a journal, where it can change.
    fn directory(&self) -> Option<String>;
    /// Rebuilds the inboxes from the records of that listener; `None` if the journal has none.
    fn recovered(&self, listener: &Name, recovered: &Recovered) -> Result<Option<Self>, RecoverError>;
    /// Adds itself to the task board of its organism.
    fn enlist(shared: Arc<Shared<Self>>, board: &mut TaskBoard);
}

impl Inboxes for TaskInbox {
    fn holding(&self, id: TaskId) -> Result<&TaskInbox, InboxError> {
        self.get(id).map(|_| self)
    }

    fn holding_mut(&mut self, id: TaskId) -> Result<&mut TaskInbox, InboxError> {
        self.get(id)?;
        Ok(self)
    }

    fn of(&self, job: Option<&Name>) -> Result<&TaskInbox, JobError> {
        match job.filter(|job| *job != self.job()) {
            Some(job) => Err(JobError::Unknown { job: job.clone() }),
            None => Ok(self),
        }
    }

    fn inboxes(&self) -> impl Iterator<Item = &TaskInbox> {
        std::iter::once(self)
    }

    fn limits(&self) -> &InboxLimits {
        Self::limits(self)
    }

    fn submit(
        &mut self,
        actor: &InboxPrincipal,
        to: Option<&Name>,
        submission: Submission,
        id: TaskId,
        now: Time,
    ) -> Result<SubmittedTask, JobError> {
        self.of(to)?;
        Ok(Self::submit(self, actor, submission, id, now)?)
    }

    fn expire(&mut self, now: Time) -> InboxChange {
        Self::expire(self, now)
    }

    fn ops(&self, change: &InboxChange) -> Vec<Op> {
        Self::ops(self, change)
    }

    fn revision(&self) -> u64 {
        0
    }

    fn directory(&self) -> Option<String> {
        None
    }

    fn recovered(&self, _: &Name, recovered: &Recovered) -> Result<Option<Self>, RecoverError> {
        let known = recovered.tasks.iter().any(|task| task.inbox == *self.job());
        known.then(|| self.taken_up(&recovered.tasks)).transpose()
    }

    fn enlist(shared: Arc<Shared<Self>>, board: &mut TaskBoard) {
        board.jobs.push(shared);
    }
}

impl Inboxes for Jobs {
    fn holding(&self, id: TaskId) -> Result<&TaskInbox, InboxError> {
        Self::holding(self, id)
    }

    fn holding_mut(&mut self, id: TaskId) -> Result<&mut TaskInbox, InboxError> {
        Self::holding_mut(self, id)
    }

    fn of(&self, job: Option<&Name>) -> Result<&TaskInbox, JobError> {
        let job = job.ok_or(JobError::Unnamed)?;
        self.inbox(job).ok_or_else(|| JobError::Unknown { job: job.clone() })
    }

    fn inboxes(&self) -> impl Iterator<Item = &TaskInbox> {
        Self::inboxes(self)
    }

    fn limits(&self) -> &InboxLimits {
        &Self::limits(self).inbox
    }

    fn submit(
        &mut self,
        actor: &InboxPrincipal,
        to: Option<&Name>,
        submission: Submission,
        id: TaskId,
        now: Time,
    ) -> Result<SubmittedTask, JobError> {
        Self::submit(self, actor, to.ok_or(JobError::Unnamed)?.as_str(), submission, id, now)
    }

    fn expire(&mut self, now: Time) -> InboxChange {
        Self::expire(self, now)
    }

    fn ops(&self, change: &InboxChange) -> Vec<Op> {
        Self::ops(self, change)
    }

    fn revision(&self) -> u64 {
        Self::revision(self)
    }

    fn directory(&self) -> Option<String> {
        Some(Self::directory(self))
    }

    fn recovered(&self, listener: &Name, recovered: &Recovered) -> Result<Option<Self>, RecoverError> {
        let Some(state) = recovered.states.iter().find(|state| state.listener == *listener) else { return Ok(None) };
        self.recover(&String::from_utf8_lossy(&state.blob), &recovered.tasks).map(Some)
    }

    fn enlist(shared: Arc<Shared<Self>>, board: &mut TaskBoard) {
        board.registries.push(shared);
    }
}
