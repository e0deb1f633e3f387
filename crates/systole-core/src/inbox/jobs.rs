//! The registry of jobs: jobs that register, each with its inbox, and tasks that wait for them.

use std::collections::{BTreeMap, BTreeSet};

use super::checks;
use super::error::{Field, InboxError};
use super::event::{InboxChange, TaskEventKind};
use super::limits::InboxLimits;
use super::principal::InboxPrincipal;
use super::records::RecoverError;
use super::status::Status;
use super::store::{Said, TaskInbox};
use super::submit::{Submission, SubmittedTask};
use crate::journal::{Op, TaskRecord};
use crate::vocab::{Name, TaskId, Time};

/// The registered jobs, each with its inbox, and the tasks that wait for jobs to register.
#[derive(Debug, Clone)]
pub struct Jobs {
    absent: Absent,
    limits: JobsLimits,
    /// Names that no principal can register: their inboxes are elsewhere.
    reserved: BTreeSet<Name>,
    /// Names that only the principal of that name can register: another one would pose as it.
    parties: BTreeSet<Name>,
    slots: BTreeMap<Name, Slot>,
    /// Counts the changes to the [`directory`](Self::directory).
    pub(super) revision: u64,
}

/// The abilities of a job, for principals that look for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCard {
    /// The name of the job.
    pub name: Name,
    /// A line for people and models.
    pub description: String,
    /// The abilities of the job, in words of the organism's own choice.
    pub skills: BTreeSet<String>,
}

/// The fate of a task for a job that isn't there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Absent {
    /// The task waits for the job.
    #[default]
    Keep,
    /// The task is refused.
    Refuse,
}

/// Bounds on a registry. The defaults are in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobsLimits {
    /// Jobs that are registered or that tasks wait for (1,024).
    pub jobs: usize,
    /// Skills of one job (64).
    pub skills: usize,
    /// Bytes of one skill (256), as it stands in XML.
    pub skill_bytes: usize,
    /// Bytes of one description (4 KiB), as it stands in XML.
    pub description_bytes: usize,
    /// Bounds on each inbox.
    pub inbox: InboxLimits,
}

impl Default for JobsLimits {
    fn default() -> Self {
        let inbox = InboxLimits::default();
        Self { jobs: 1024, skills: 64, skill_bytes: 256, description_bytes: 4 << 10, inbox }
    }
}

/// The refusal of a request by a registry. Nothing has changed then.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The name belongs to another principal, which has registered it or left tasks behind.
    #[error("{actor} may not use the name {job}: it belongs to another principal; choose another one")]
    Taken {
        /// The name.
        job: Name,
        /// The principal that tried.
        actor: InboxPrincipal,
    },
    /// The name is not for jobs that register.
    #[error("'{job}' is a listener of the organism with an inbox of its own: send to it, or choose another name")]
    Reserved {
        /// The name.
        job: Name,
    },
    /// The request names no job, and there are several.
    #[error("there are several jobs here: name the one that is meant")]
    Unnamed,
    /// No job has the name.
    #[error("there is no job '{job}': look one up by name or skill, or register it first")]
    Unknown {
        /// The name.
        job: Name,
    },
    /// The registry has no room for another job.
    #[error("{limit} jobs are registered or awaited, their limit: remove one first")]
    Full {
        /// The limit.
        limit: usize,
    },
    /// The inbox of the job, or a text, is refused.
    #[error(transparent)]
    Inbox(#[from] InboxError),
}

crate::vocab::debug_is_display!(JobError);

#[derive(Debug, Clone)]
struct Slot {
    /// `None` while the job isn't there.
    card: Option<JobCard>,
    /// The last owner: the only principal that may take over the waiting tasks.
    heir: Option<InboxPrincipal>,
    inbox: TaskInbox,
}

impl Jobs {
    /// A registry without jobs, with the default limits.
    pub fn new(absent: Absent) -> Self {
        let limits = JobsLimits::default();
        Self {
            absent,
            limits,
            reserved: BTreeSet::new(),
            parties: BTreeSet::new(),
            slots: BTreeMap::new(),
            revision: 0,
        }
    }

    /// Makes the same with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: JobsLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Makes jobs of which no principal can register the first names, whose inboxes are elsewhere; each of the second
    /// names can be registered only by the principal of that name.
    pub fn reserve(&mut self, names: BTreeSet<Name>, parties: BTreeSet<Name>) {
        (self.reserved, self.parties) = (names, parties);
    }

    /// The bounds.
    pub const fn limits(&self) -> &JobsLimits {
        &self.limits
    }

    /// Registers a job. One of the same name and owner is replaced: its accepted tasks are pending again. Tasks that
    /// waited for it are routed.
    ///
    /// # Errors
    /// [`JobError::Taken`], [`JobError::Reserved`], [`JobError::Full`]; texts that are empty, too long or no XML.
    pub fn register(&mut self, actor: &InboxPrincipal, card: JobCard, now: Time) -> Result<InboxChange, JobError> {
        self.judge(&card)?;
        let mut change = self.prune();
        if self.reserved.contains(&card.name) {
            return Err(JobError::Reserved { job: card.name });
        }
        let poses = self.parties.contains(&card.name) && card.name != *actor.name();
        if poses || self.slots.get(&card.name).is_some_and(|slot| slot.heir.as_ref().is_some_and(|heir| heir != actor))
        {
            return Err(JobError::Taken { job: card.name, actor: actor.clone() });
        }
        let slot = self.slot(&card.name)?;
        change.append(slot.inbox.release(now));
        change.append(slot.inbox.claim(actor, now));
        (slot.card, slot.heir) = (Some(card), Some(actor.clone()));
        self.revision += 1;
        Ok(change)
    }

    /// Removes a job. Its accepted tasks are pending again, and wait for the owner to register it anew: until
    /// it has no open task, no other principal can have its name.
    ///
    /// # Errors
    /// [`JobError::Unknown`], also for a job of another principal.
    pub fn remove(&mut self, actor: &InboxPrincipal, job: &Name, now: Time) -> Result<InboxChange, JobError> {
        let unknown = || JobError::Unknown { job: job.clone() };
        let own = |slot: &&mut Slot| slot.card.is_some() && slot.heir.as_ref() == Some(actor);
        let slot = self.slots.get_mut(job).filter(own).ok_or_else(unknown)?;
        let mut change = slot.inbox.release(now);
        slot.card = None;
        slot.inbox.owner = None;
        self.revision += 1;
        change.append(self.prune());
        Ok(change)
    }

    /// A registered job.
    pub fn find(&self, job: &Name) -> Option<&JobCard> {
        self.slots.get(job)?.card.as_ref()
    }

    /// The registered jobs with a skill, in order of name.
    pub fn by_skill(&self, skill: &str) -> impl Iterator<Item = &JobCard> {
        self.cards().filter(move |card| card.skills.contains(skill))
    }

    /// The registered jobs, in order of name.
    pub fn cards(&self) -> impl Iterator<Item = &JobCard> {
        self.slots.values().filter_map(|slot| slot.card.as_ref())
    }

    /// Submits a task for a job, which may not be registered yet. A submitting job that is registered must be the
    /// submitter's.
    ///
    /// # Errors
    /// [`JobError::Unknown`] by policy, [`JobError::Taken`], [`JobError::Reserved`], [`JobError::Full`]; as
    /// [`TaskInbox::submit`].
    pub fn submit(
        &mut self,
        actor: &InboxPrincipal,
        target: &str,
        submission: Submission,
        id: TaskId,
        now: Time,
    ) -> Result<SubmittedTask, JobError> {
        let target = checks::name(Field::Job, target)?;
        let source = checks::name(Field::SourceJob, &submission.job)?;
        let owner = self.slots.get(&source).and_then(|slot| slot.inbox.owner());
        if owner.is_some_and(|owner| owner != actor) {
            return Err(JobError::Taken { job: source, actor: actor.clone() });
        }
        if self.absent == Absent::Refuse && self.find(&target).is_none() {
            return Err(JobError::Unknown { job: target });
        }
        let submitted = self.slot(&target)?.inbox.submit(actor, submission, id, now);
        if submitted.is_err() {
            let _nothing_was_in_it = self.prune();
        }
        Ok(submitted?)
    }

    /// The inbox of a job that is registered or has tasks that wait.
    pub fn inbox(&self, job: &Name) -> Option<&TaskInbox> {
        self.slots.get(job).map(|slot| &slot.inbox)
    }

    /// Returns the same, to act on its tasks.
    pub fn inbox_mut(&mut self, job: &Name) -> Option<&mut TaskInbox> {
        self.slots.get_mut(job).map(|slot| &mut slot.inbox)
    }

    /// The inboxes of all jobs that are registered or have tasks that wait, in order of name.
    pub fn inboxes(&self) -> impl Iterator<Item = &TaskInbox> {
        self.slots.values().map(|slot| &slot.inbox)
    }

    /// The inbox that holds a task.
    ///
    /// # Errors
    /// [`InboxError::Unknown`].
    pub fn holding(&self, id: TaskId) -> Result<&TaskInbox, InboxError> {
        self.inboxes().find(|inbox| inbox.get(id).is_ok()).ok_or(InboxError::Unknown { id })
    }

    /// Returns the same, to act on its tasks.
    ///
    /// # Errors
    /// [`InboxError::Unknown`].
    pub fn holding_mut(&mut self, id: TaskId) -> Result<&mut TaskInbox, InboxError> {
        let mut inboxes = self.slots.values_mut().map(|slot| &mut slot.inbox);
        inboxes.find(|inbox| inbox.get(id).is_ok()).ok_or(InboxError::Unknown { id })
    }

    /// Fails the tasks whose deadline has passed, in all inboxes.
    pub fn expire(&mut self, now: Time) -> InboxChange {
        let mut change = InboxChange::default();
        self.slots.values_mut().for_each(|slot| change.append(slot.inbox.expire(now)));
        change
    }

    /// The records of a change to tasks; the registrations stand in
    /// [`directory`](Self::directory).
    pub fn ops(&self, change: &InboxChange) -> Vec<Op> {
        let gone = change.removed.iter().filter(|(inbox, _)| !self.slots.contains_key(inbox));
        let gone = gone.map(|(inbox, id)| Op::TaskGone { inbox: inbox.clone(), id: *id });
        gone.chain(self.slots.values().flat_map(|slot| slot.inbox.ops(change))).collect()
    }

    /// The names that are taken, each with its owner or last owner and with its card if it is registered.
    pub(super) fn names(&self) -> impl Iterator<Item = (&Name, Option<&InboxPrincipal>, Option<&JobCard>)> {
        self.slots.iter().map(|(name, slot)| (name, slot.heir.as_ref(), slot.card.as_ref()))
    }

    /// Makes the same without jobs and tasks.
    pub(super) fn emptied(&self) -> Self {
        Self { slots: BTreeMap::new(), ..self.clone() }
    }

    /// Takes a name as a journal has it, with its tasks.
    pub(super) fn restore<'a>(
        &mut self,
        name: &Name,
        heir: Option<InboxPrincipal>,
        card: Option<JobCard>,
        records: impl IntoIterator<Item = &'a TaskRecord>,
    ) -> Result<(), RecoverError> {
        let refuse = |error: JobError| RecoverError::Job { job: name.clone(), problem: error.to_string() };
        card.as_ref().map_or(Ok(()), |card| self.judge(card)).map_err(refuse)?;
        let slot = self.slot(name).map_err(refuse)?;
        slot.inbox.owner = heir.clone().filter(|_| card.is_some());
        slot.inbox = slot.inbox.taken_up(records)?;
        (slot.card, slot.heir) = (card, heir);
        Ok(())
    }

    /// Checks that a card keeps to the limits.
    fn judge(&self, card: &JobCard) -> Result<(), JobError> {
        checks::text(Field::Description, &card.description, self.limits.description_bytes)?;
        if card.skills.len() > self.limits.skills {
            return Err(InboxError::TooMany { field: Field::Skill, limit: self.limits.skills }.into());
        }
        for skill in &card.skills {
            checks::said(Field::Skill, skill, self.limits.skill_bytes)?;
        }
        Ok(())
    }

    /// Forgets names of jobs that aren't registered and that no open task waits for.
    fn prune(&mut self) -> InboxChange {
        let mut change = InboxChange::default();
        let known = self.slots.len();
        self.slots.retain(|job, slot| {
            let stays = slot.card.is_some() || slot.inbox.open() > 0;
            if !stays {
                change.removed.extend(slot.inbox.tasks().map(|task| (job.clone(), task.id)));
            }
            stays
        });
        if self.slots.len() < known {
            self.revision += 1;
        }
        change
    }

    fn slot(&mut self, job: &Name) -> Result<&mut Slot, JobError> {
        if self.reserved.contains(job) {
            return Err(JobError::Reserved { job: job.clone() });
        }
        let (known, limit) = (self.slots.len(), self.limits.jobs);
        if !self.slots.contains_key(job) {
            if known >= limit {
                return Err(JobError::Full { limit });
            }
            self.revision += 1;
        }
        let inbox = || TaskInbox::unclaimed(job.clone(), self.limits.inbox.clone());
        Ok(self.slots.entry(job.clone()).or_insert_with(|| Slot { card: None, heir: None, inbox: inbox() }))
    }
}

impl TaskInbox {
    /// Sets the owner: tasks that waited for one are routed.
    fn claim(&mut self, owner: &InboxPrincipal, now: Time) -> InboxChange {
        self.owner = Some(owner.clone());
        let waiting = self.tasks().filter(|task| !task.routed && task.status == Status::Pending);
        let places: Vec<_> = waiting.map(|task| task.place).collect();
        let mut change = InboxChange::default();
        for place in places {
            let said = Said { kind: TaskEventKind::Routed, percent: None, text: None };
            change.append(self.step(place, now, said, |task| task.routed = true));
        }
        change
    }
}
