//! The task board: access to the tasks of an organism for entrances beside the pump.

use std::collections::BTreeSet;
use std::sync::Arc;

use systole_core::inbox::payload::Submitted;
use systole_core::inbox::{
    InboxChange, InboxError, InboxPrincipal, JobCard, JobError, Jobs, Status, Submission, Task, TaskInbox,
};
use systole_core::journal::Op;
use systole_core::vocab::{Fault, FaultCode, Name, TaskId, Time};

use super::inboxes::Inboxes;
use super::shared::{Kept, Shared, Written};
use crate::runtime::{Part, Recoverable, StartRefusal};

/// The tasks of an organism, for entrances beside the pump such as the gateway. A caller of these methods has
/// authenticated the party that it acts for, and has checked that the party may act.
///
/// Every result that a method returns, including an error, is durable: no caller learns of a change that a crash could
/// undo.
#[derive(Default)]
pub struct TaskBoard {
    pub(super) jobs: Vec<Arc<Shared<TaskInbox>>>,
    pub(super) registries: Vec<Arc<Shared<Jobs>>>,
}

/// Failure of an operation on tasks.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BoardError {
    /// A rule forbids the operation. Nothing has changed.
    #[error(transparent)]
    Refused(#[from] JobError),
    /// The operation is not durable: the organism ends, or its journal can't be written. After the next start it has
    /// been done or not.
    #[error("{}", .0.message)]
    Lost(Fault),
}

systole_core::vocab::debug_is_display!(BoardError);

impl From<InboxError> for BoardError {
    fn from(error: InboxError) -> Self {
        Self::Refused(error.into())
    }
}

impl Part for TaskBoard {
    /// Reserves the names of the registry's own listeners against all registrations, and those of all parties against
    /// registrations by others.
    fn reserve(&self, parties: BTreeSet<Name>) -> Option<StartRefusal> {
        if let [first, second, ..] = self.registries.as_slice() {
            return Some(StartRefusal::Registries { first: first.name.clone(), second: second.name.clone() });
        }
        let registry = self.registries.first()?;
        let names = self.jobs.iter().map(|job| job.name.clone()).chain([registry.name.clone()]);
        registry.lock().inboxes.reserve(names.collect(), parties);
        None
    }

    fn recoverables(&self) -> Vec<Arc<dyn Recoverable>> {
        let jobs = self.jobs.iter().cloned().map(|job| -> Arc<dyn Recoverable> { job });
        jobs.chain(self.registries.iter().cloned().map(|registry| -> Arc<dyn Recoverable> { registry })).collect()
    }

    fn live_in_memory(&self) {
        self.jobs.iter().for_each(|job| job.lock().appender = None);
        self.registries.iter().for_each(|registry| registry.lock().appender = None);
    }
}

impl TaskBoard {
    pub(super) const fn new() -> Self {
        Self { jobs: Vec::new(), registries: Vec::new() }
    }

    /// Lists the jobs, in order of name.
    ///
    /// # Errors
    /// [`BoardError::Lost`].
    pub async fn cards(&self) -> Result<Vec<JobCard>, BoardError> {
        let of = |job: &Arc<Shared<TaskInbox>>| JobCard {
            name: job.name.clone(),
            description: job.description().to_owned(),
            skills: BTreeSet::new(),
        };
        let mut cards: Vec<_> = self.jobs.iter().map(of).collect();
        if let Some(registry) = self.registry() {
            let seen = registry.look(|jobs| Ok::<_, JobError>(jobs.cards().cloned().collect::<Vec<_>>()));
            cards.extend(told(seen).await?);
        }
        cards.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(cards)
    }

    /// Reads the inbox of a job.
    ///
    /// # Errors
    /// [`BoardError`]; [`JobError::Unknown`].
    pub async fn inbox<T>(&self, job: &Name, read: impl FnOnce(&TaskInbox) -> T) -> Result<T, BoardError> {
        told(match self.job(job) {
            Some(shared) => shared.look(|inbox| inbox.of(None).map(read)),
            None => self.registry_for(job)?.look(|jobs| jobs.of(Some(job)).map(read)),
        })
        .await
    }

    /// Reads a task and the inbox that holds it.
    ///
    /// # Errors
    /// [`BoardError`]; [`InboxError::Unknown`].
    pub async fn task<T>(&self, id: TaskId, read: impl FnOnce(&TaskInbox, &Task) -> T) -> Result<T, BoardError> {
        let look = |inbox: &TaskInbox| inbox.get(id).map(|task| read(inbox, task));
        told(match self.holding(id) {
            Some(job) => job.look(look),
            None => self.registry_of(id)?.look(|jobs| jobs.holding(id).and_then(look)),
        })
        .await
    }

    /// Submits a task, which must be detached: no handler waits for it.
    ///
    /// # Errors
    /// [`BoardError`]; [`JobError`] as [`Jobs::submit`].
    pub async fn submit(
        &self,
        actor: &InboxPrincipal,
        job: &Name,
        submission: Submission,
        id: TaskId,
        now: Time,
    ) -> Result<Submitted, BoardError> {
        told(match self.job(job) {
            Some(shared) => shared.take(actor, None, submission, id, now),
            None => self.registry_for(job)?.take(actor, Some(job), submission, id, now),
        })
        .await
    }

    /// Changes a task, and returns its status after the change.
    ///
    /// # Errors
    /// [`BoardError`]; [`InboxError`] of the change.
    pub async fn act(
        &self,
        id: TaskId,
        act: impl FnOnce(&mut TaskInbox) -> Result<InboxChange, InboxError>,
    ) -> Result<Status, BoardError> {
        told(match self.holding(id) {
            Some(job) => job.step(id, act),
            None => self.registry_of(id)?.step(id, act),
        })
        .await
    }

    /// Returns the listener that has a task: its job, or the registry.
    #[cfg(feature = "gateway")]
    pub(crate) fn listener_of(&self, id: TaskId) -> Option<&Name> {
        let job = self.holding(id).map(|job| &job.name);
        job.or_else(|| Some(&self.registry()?.name))
    }

    /// Changes the registrations of jobs.
    ///
    /// # Errors
    /// [`BoardError`]; [`JobError::Unknown`] without a registry, and [`JobError`] of the change.
    pub async fn enrol(
        &self,
        job: &Name,
        act: impl FnOnce(&mut Jobs) -> Result<InboxChange, JobError>,
    ) -> Result<(), BoardError> {
        let registry = self.registry_for(job)?;
        told(registry.outcome(|kept| act(&mut kept.inboxes).map(|change| (change, Vec::new(), ())))).await
    }

    /// Reads each task, with its job.
    pub(crate) fn each(&self, mut read: impl FnMut(&Name, &Task)) {
        let mut each = |inbox: &TaskInbox| inbox.tasks().for_each(|task| read(inbox.job(), task));
        self.jobs.iter().for_each(|job| job.lock().inboxes.inboxes().for_each(&mut each));
        self.registries.iter().for_each(|registry| registry.lock().inboxes.inboxes().for_each(&mut each));
    }

    fn job(&self, name: &Name) -> Option<&Arc<Shared<TaskInbox>>> {
        self.jobs.iter().find(|job| job.name == *name)
    }

    fn registry(&self) -> Option<&Arc<Shared<Jobs>>> {
        self.registries.first()
    }

    fn registry_of(&self, id: TaskId) -> Result<&Arc<Shared<Jobs>>, InboxError> {
        self.registry().ok_or(InboxError::Unknown { id })
    }

    /// Finds the job outside of the registry that holds a task.
    fn holding(&self, id: TaskId) -> Option<&Arc<Shared<TaskInbox>>> {
        self.jobs.iter().find(|job| job.read(id, |_| ()).is_ok())
    }

    fn registry_for(&self, job: &Name) -> Result<&Arc<Shared<Jobs>>, JobError> {
        self.registry().ok_or_else(|| JobError::Unknown { job: job.clone() })
    }
}

/// Waits until an outcome is durable.
async fn told<T, E>((outcome, written): (Result<T, E>, Written)) -> Result<T, BoardError>
where
    BoardError: From<E>,
{
    written.told().await.map_err(|ending| {
        BoardError::Lost(Fault { retryable: true, ..Fault::new(FaultCode::Internal, ending.to_string()) })
    })?;
    Ok(outcome?)
}

impl<I: Inboxes> Shared<I> {
    /// Changes tasks; the outcome, including a refusal, is durable when the second value is.
    fn outcome<T, E>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Kept<I>) -> Result<(InboxChange, Vec<Op>, T), E>,
    ) -> (Result<T, E>, Written) {
        match self.change(act) {
            Ok((value, written)) => (Ok(value), written),
            Err(error) => self.look(|_| Err(error)),
        }
    }

    fn take(
        self: &Arc<Self>,
        actor: &InboxPrincipal,
        to: Option<&Name>,
        submission: Submission,
        id: TaskId,
        now: Time,
    ) -> (Result<Submitted, JobError>, Written) {
        self.outcome(|kept| {
            self.may_watch(submission.watched)?;
            let (change, taken) = kept.inboxes.take(actor, to, submission, id, now)?;
            Ok((change, Vec::new(), taken))
        })
    }

    fn step(
        self: &Arc<Self>,
        id: TaskId,
        act: impl FnOnce(&mut TaskInbox) -> Result<InboxChange, InboxError>,
    ) -> (Result<Status, InboxError>, Written) {
        self.outcome(|kept| {
            let (change, status) = kept.inboxes.step(id, act)?;
            Ok((change, Vec::new(), status))
        })
    }
}
