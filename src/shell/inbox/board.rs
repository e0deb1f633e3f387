use std::collections::BTreeSet;
use std::sync::Arc;

use super::inboxes::Inboxes;
use super::shared::{Shared, Written};
use crate::inbox::payload::Submitted;
use crate::inbox::{Change, InboxError, JobCard, JobError, Jobs, Principal, Status, Submission, Task, TaskInbox};
use crate::shell::ledger::Resident;
use crate::shell::start::Refusal;
use crate::vocab::{Fault, Name, TaskId, Time};

/// The tasks of an organism, for entrances beside the pump: its gateway. A caller of these methods has authenticated the
/// party that it acts for, and has judged whether that party may.
///
/// What a method returns, an error too, is durable: nobody hears of a change that a crash could undo.
#[derive(Default)]
pub struct TaskBoard {
    pub(super) jobs: Vec<Arc<Shared<TaskInbox>>>,
    pub(super) registries: Vec<Arc<Shared<Jobs>>>,
}

/// Why something can't be done to a task.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BoardError {
    /// A rule is against it. Nothing has changed.
    #[error(transparent)]
    Refused(#[from] JobError),
    /// It may have been done, and will be forgotten: the journal can't be written.
    #[error("{}", .0.message)]
    Lost(Fault),
}

impl From<InboxError> for BoardError {
    fn from(error: InboxError) -> Self {
        Self::Refused(error.into())
    }
}

impl TaskBoard {
    /// The jobs that are there, in order of name.
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
            let (registered, written) = registry.look(|jobs| jobs.cards().cloned().collect::<Vec<_>>());
            cards.extend(registered);
            written.durable().await.map_err(BoardError::Lost)?;
        }
        cards.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(cards)
    }

    /// Looks at the inbox of a job.
    ///
    /// # Errors
    /// [`BoardError`]; [`JobError::Unknown`].
    pub async fn inbox<T>(&self, job: &Name, read: impl FnOnce(&TaskInbox) -> T) -> Result<T, BoardError> {
        let (read, written) = match self.job(job) {
            Some(shared) => shared.look(|inbox| inbox.of(None).map(read)),
            None => self.registry_for(job)?.look(|jobs| jobs.of(Some(job)).map(read)),
        };
        written.durable().await.map_err(BoardError::Lost)?;
        Ok(read?)
    }

    /// Looks at a task and at the inbox that it is in.
    ///
    /// # Errors
    /// [`BoardError`]; [`InboxError::Unknown`].
    pub async fn task<T>(&self, id: TaskId, read: impl FnOnce(&TaskInbox, &Task) -> T) -> Result<T, BoardError> {
        let look = |inbox: &TaskInbox| inbox.get(id).map(|task| read(inbox, task));
        let (read, written) = match self.jobs.iter().find(|job| job.read(id, |_| ()).is_ok()) {
            Some(job) => job.look(look),
            None => {
                let registry = self.registry().ok_or(InboxError::Unknown { id })?;
                registry.look(|jobs| jobs.holding(id).and_then(look))
            }
        };
        written.durable().await.map_err(BoardError::Lost)?;
        Ok(read?)
    }

    /// Submits a task, which has to be detached: nobody waits for it here.
    ///
    /// # Errors
    /// [`BoardError`]; [`JobError`] as [`Jobs::submit`].
    pub async fn submit(
        &self,
        actor: &Principal,
        job: &Name,
        submission: Submission,
        id: TaskId,
        now: Time,
    ) -> Result<Submitted, BoardError> {
        match self.job(job) {
            Some(shared) => shared.settled(shared.take(actor, None, submission, id, now)).await,
            None => {
                let registry = self.registry_for(job)?;
                registry.settled(registry.take(actor, Some(job), submission, id, now)).await
            }
        }
    }

    /// Moves a task, and says how far it is then.
    ///
    /// # Errors
    /// [`BoardError`]; [`InboxError`] as what is done.
    pub async fn act(
        &self,
        id: TaskId,
        act: impl FnOnce(&mut TaskInbox) -> Result<Change, InboxError>,
    ) -> Result<Status, BoardError> {
        match self.jobs.iter().find(|job| job.read(id, |_| ()).is_ok()) {
            Some(shared) => shared.settled(shared.step(id, act)).await,
            None => {
                let registry = self.registry().ok_or(InboxError::Unknown { id })?;
                registry.settled(registry.step(id, act)).await
            }
        }
    }

    /// Changes who is registered.
    ///
    /// # Errors
    /// [`BoardError`]; [`JobError::Unknown`] without a registry, and as what is done.
    pub async fn enrol(
        &self,
        job: &Name,
        act: impl FnOnce(&mut Jobs) -> Result<Change, JobError>,
    ) -> Result<(), BoardError> {
        let registry = self.registry_for(job)?;
        let changed = registry.change(|kept| act(&mut kept.inboxes).map(|change| (change, Vec::new(), ())));
        registry.settled(changed).await
    }

    /// Keeps the names of its listeners from being registered, and those of all parties by others.
    pub(in crate::shell) fn reserve(&self, parties: BTreeSet<Name>) -> Option<Refusal> {
        if let [first, second, ..] = self.registries.as_slice() {
            return Some(Refusal::Registries { first: first.name.clone(), second: second.name.clone() });
        }
        let registry = self.registries.first()?;
        let names = self.jobs.iter().map(|job| job.name.clone()).chain([registry.name.clone()]);
        registry.lock().inboxes.reserve(names.collect(), parties);
        None
    }

    /// All that lives in a journal.
    pub(in crate::shell) fn residents(&self) -> impl Iterator<Item = Arc<dyn Resident>> {
        let jobs = self.jobs.iter().cloned().map(|job| -> Arc<dyn Resident> { job });
        jobs.chain(self.registries.iter().cloned().map(|registry| -> Arc<dyn Resident> { registry }))
    }

    fn job(&self, name: &Name) -> Option<&Arc<Shared<TaskInbox>>> {
        self.jobs.iter().find(|job| job.name == *name)
    }

    fn registry(&self) -> Option<&Arc<Shared<Jobs>>> {
        self.registries.first()
    }

    fn registry_for(&self, job: &Name) -> Result<&Arc<Shared<Jobs>>, JobError> {
        self.registry().ok_or_else(|| JobError::Unknown { job: job.clone() })
    }
}

impl<I: Inboxes> Shared<I> {
    /// The outcome of a change once it is durable; a refusal once what it follows from is.
    async fn settled<T, E>(&self, changed: Result<(T, Written), E>) -> Result<T, BoardError>
    where
        BoardError: From<E>,
    {
        let (outcome, written) = match changed {
            Ok((value, written)) => (Ok(value), written),
            Err(error) => (Err(error), self.look(|_| ()).1),
        };
        written.durable().await.map_err(BoardError::Lost)?;
        Ok(outcome?)
    }

    fn take(
        self: &Arc<Self>,
        actor: &Principal,
        to: Option<&Name>,
        submission: Submission,
        id: TaskId,
        now: Time,
    ) -> Result<(Submitted, Written), JobError> {
        self.change(|kept| {
            self.may_watch(submission.watched)?;
            let (change, taken) = kept.inboxes.take(actor, to, submission, id, now)?;
            Ok((change, Vec::new(), taken))
        })
    }

    fn step(
        self: &Arc<Self>,
        id: TaskId,
        act: impl FnOnce(&mut TaskInbox) -> Result<Change, InboxError>,
    ) -> Result<(Status, Written), InboxError> {
        self.change(|kept| {
            let (change, status) = kept.inboxes.step(id, act)?;
            Ok((change, Vec::new(), status))
        })
    }
}
