//! The inbox of a job: its tasks, their order and their sizes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::error::{Field, InboxError, InboxProblem};
use super::event::{InboxChange, TaskEvent, TaskEventKind};
use super::limits::InboxLimits;
use super::principal::InboxPrincipal;
use super::status::Status;
use super::task::Task;
use crate::vocab::{Name, TaskId, Time};

/// The tasks of one job, in order of arrival.
///
/// ```
/// use systole_core::inbox::{InboxPrincipal, Submission, TaskAction, TaskInbox};
/// use systole_core::vocab::{TaskId, Time};
///
/// let (writer, reviewer) = (InboxPrincipal::parse("writer")?, InboxPrincipal::parse("reviewer")?);
/// let mut reviews = TaskInbox::new("reviews", reviewer.clone())?;
/// let (id, now) = ("67e55044-10b1-426f-9247-bb680e5fe0c8".parse::<TaskId>()?, Time::from_nanos(0));
/// let submitted = reviews.submit(&writer, Submission::new("drafts", "Read chapter 3."), id, now)?;
/// assert_eq!(submitted.change.events.len(), 2, "submitted and routed");
///
/// assert!(reviews.apply(&writer, id, TaskAction::Accept, now).is_err(), "only the reviewer may");
/// let _ = reviews.apply(&reviewer, id, TaskAction::Accept, now)?;
/// let _ = reviews.apply(&reviewer, id, TaskAction::Complete("Two typos.".into()), now)?;
/// assert_eq!(reviews.get(id)?.result.as_deref(), Some("Two typos."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct TaskInbox {
    pub(super) job: Name,
    /// `None` while the job isn't there.
    pub(super) owner: Option<InboxPrincipal>,
    pub(super) limits: InboxLimits,
    tasks: BTreeMap<u64, Kept>,
    places: HashMap<TaskId, u64>,
    keys: HashMap<(Name, String), TaskId>,
    /// The tasks that have not ended.
    deadlines: BTreeSet<(Time, u64)>,
    /// The tasks that are over, by when the last thing happened to them.
    over: BTreeSet<(Time, u64)>,
    /// Those of which only the key is known.
    forgotten: BTreeSet<(Time, u64)>,
    /// The bytes of tasks that are not over, of those that are, and of those that are forgotten.
    bytes: [usize; 3],
    pub(super) next_place: u64,
}

#[derive(Debug, Clone)]
struct Kept {
    task: Task,
    bytes: usize,
}

/// The text of a change to a task.
pub(super) struct Said<'a> {
    pub(super) kind: TaskEventKind,
    pub(super) percent: Option<u8>,
    pub(super) text: Option<&'a str>,
}

impl TaskInbox {
    /// An empty inbox of a job, with the default limits.
    ///
    /// # Errors
    /// [`InboxError::Empty`] and [`InboxError::Name`] for the name of the job.
    pub fn new(job: &str, owner: InboxPrincipal) -> Result<Self, InboxError> {
        Ok(Self::named(super::checks::name(Field::Job, job)?, owner))
    }

    /// An empty inbox of a job whose name was checked, with the default limits.
    pub fn named(job: Name, owner: InboxPrincipal) -> Self {
        Self::unclaimed(job, InboxLimits::default()).owned_by(Some(owner))
    }

    /// Makes the same with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: InboxLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The inbox of a job that isn't there yet.
    pub(super) fn unclaimed(job: Name, limits: InboxLimits) -> Self {
        Self {
            job,
            owner: None,
            limits,
            tasks: BTreeMap::new(),
            places: HashMap::new(),
            keys: HashMap::new(),
            deadlines: BTreeSet::new(),
            over: BTreeSet::new(),
            forgotten: BTreeSet::new(),
            bytes: [0; 3],
            next_place: 1,
        }
    }

    pub(super) fn owned_by(mut self, owner: Option<InboxPrincipal>) -> Self {
        self.owner = owner;
        self
    }

    /// The name of the job.
    pub const fn job(&self) -> &Name {
        &self.job
    }

    /// The owner, which moves its tasks; none while the job isn't there.
    pub const fn owner(&self) -> Option<&InboxPrincipal> {
        self.owner.as_ref()
    }

    /// The bounds on it.
    pub const fn limits(&self) -> &InboxLimits {
        &self.limits
    }

    /// A task; of a [forgotten](Task::is_forgotten) one, what is left of it.
    ///
    /// # Errors
    /// [`InboxError::Unknown`].
    pub fn get(&self, id: TaskId) -> Result<&Task, InboxError> {
        self.place(id).map(|place| self.at(place))
    }

    /// Every task that is known, in order of arrival; those that are over are forgotten in time.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.records().filter(|task| !task.is_forgotten())
    }

    /// Every task, and what is left of those that are forgotten.
    pub(super) fn records(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values().map(|kept| &kept.task)
    }

    /// The pending tasks, in order of arrival.
    pub fn pending(&self) -> impl Iterator<Item = &Task> {
        self.tasks().filter(|task| task.status == Status::Pending)
    }

    /// Returns whether a principal owns the inbox or submitted the task: to any other one it isn't there.
    pub fn concerns(&self, task: &Task, who: &Name) -> bool {
        self.owner().is_some_and(|owner| owner.name() == who) || task.source.agent == *who
    }

    /// The tasks that are not over.
    pub fn open(&self) -> usize {
        self.tasks.len() - self.over.len() - self.forgotten.len()
    }

    /// The time at which [`expire`](Self::expire) has something to do.
    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The events that submitters of detached tasks have not got: the first event of each task that has one, in order
    /// of arrival. [`acknowledge`](Self::acknowledge) notes that its submitter has one.
    pub fn owed(&self) -> impl Iterator<Item = (&Task, &TaskEvent)> {
        self.tasks().filter_map(|task| Some((task, task.outbox.front()?)))
    }

    pub(super) fn place(&self, id: TaskId) -> Result<u64, InboxError> {
        self.places.get(&id).copied().ok_or(InboxError::Unknown { id })
    }

    pub(super) fn at(&self, place: u64) -> &Task {
        &self.tasks[&place].task
    }

    pub(super) fn of_key(&self, agent: &Name, key: &str) -> Option<TaskId> {
        self.keys.get(&(agent.clone(), key.to_owned())).copied()
    }

    /// The places of open tasks whose deadline is not after `now`, in order of deadline.
    pub(super) fn expired(&self, now: Time) -> Vec<u64> {
        self.deadlines.range(..=(now, u64::MAX)).map(|(_, place)| *place).collect()
    }

    /// Checks that a task may grow by so much.
    pub(super) fn may_grow(&self, task: &Task, more: usize) -> Result<(), InboxError> {
        super::checks::within(Field::Task, task.size() + more, self.limits.task_bytes)?;
        self.has_room(self.open(), self.bytes[0] + self.bytes[2] + more)
    }

    /// Checks that there may be one more task, once the keys are forgotten whose time is over.
    pub(super) fn may_open(&self, task: &Task, now: Time) -> Result<(), InboxError> {
        super::checks::within(Field::Task, task.size(), self.limits.task_bytes)?;
        let is_over = |(changed, _): &&(Time, u64)| changed.after(self.limits.keys) <= now;
        let over: usize = self.forgotten.iter().take_while(is_over).map(|(_, place)| self.tasks[place].bytes).sum();
        self.has_room(self.open() + 1, self.bytes[0] + self.bytes[2] + task.size() - over)
    }

    fn has_room(&self, open: usize, bytes: usize) -> Result<(), InboxError> {
        let (limit, limit_bytes) = (self.limits.open, self.limits.bytes);
        if open > limit || bytes > limit_bytes {
            return Err(InboxError::Full { open, limit, bytes, limit_bytes });
        }
        Ok(())
    }

    /// Checks that the owner may add to the events that the submitter has not got.
    pub(super) fn may_tell(&self, task: &Task) -> Result<(), InboxError> {
        let waiting = task.outbox.len();
        if waiting >= self.limits.outbox { Err(InboxProblem::Outbox { waiting }.into()) } else { Ok(()) }
    }

    /// Takes a task, with its place.
    pub(super) fn insert(&mut self, task: Task) {
        let place = task.place;
        self.places.insert(task.id, place);
        if let Some(key) = &task.key {
            self.keys.insert((task.source.agent.clone(), key.clone()), task.id);
        }
        let bytes = task.held();
        self.tasks.insert(place, Kept { task, bytes });
        self.count_in(place);
    }

    /// Changes a task and adds its event.
    pub(super) fn step(&mut self, place: u64, now: Time, said: Said, change: impl FnOnce(&mut Task)) -> InboxChange {
        let id = self.at(place).id;
        let mut event = None;
        self.edit(place, |task| {
            change(task);
            task.changed = now;
            event = Some(note(task, now, &said));
        });
        InboxChange { events: event.into_iter().collect(), ..self.saved(id) }
    }

    /// Makes the change of a task that is no event.
    pub(super) fn saved(&self, id: TaskId) -> InboxChange {
        InboxChange { saved: vec![(self.job.clone(), id)], ..InboxChange::default() }
    }

    /// Makes the change of all tasks that is no event.
    pub fn all(&self) -> InboxChange {
        InboxChange {
            saved: self.records().map(|task| (self.job.clone(), task.id)).collect(),
            ..InboxChange::default()
        }
    }

    /// Detaches all tasks: their submitters no longer wait, and results are sent.
    pub fn detach_all(&mut self) {
        let waited: Vec<_> = self.tasks().filter(|task| !task.detached).map(|task| task.place).collect();
        for place in waited {
            self.edit(place, |task| task.detached = true);
        }
    }

    /// Changes a task without saying so.
    pub(super) fn edit(&mut self, place: u64, change: impl FnOnce(&mut Task)) {
        self.count_out(place);
        if let Some(kept) = self.tasks.get_mut(&place) {
            change(&mut kept.task);
            kept.bytes = kept.task.held();
        }
        self.count_in(place);
    }

    /// Forgets the oldest tasks that are over, as far as the limits want it; a key that may be sent again stays.
    pub(super) fn make_room(&mut self, more: usize, now: Time) -> InboxChange {
        let mut change = InboxChange::default();
        while self.over.len() > self.limits.ended || self.bytes.iter().sum::<usize>() + more > self.limits.bytes {
            let Some(&(changed, place)) = self.over.first() else { break };
            let id = (self.job.clone(), self.at(place).id);
            if self.at(place).key.is_some() && changed.after(self.limits.keys) > now {
                self.edit(place, Task::forget);
                change.saved.push(id);
            } else {
                self.remove(place);
                change.removed.push(id);
            }
        }
        change
    }

    /// Forgets the keys whose time is over, of tasks that are forgotten.
    pub(super) fn forget_keys(&mut self, now: Time) -> InboxChange {
        let mut change = InboxChange::default();
        while let Some(&(changed, place)) = self.forgotten.first()
            && changed.after(self.limits.keys) <= now
        {
            change.removed.push((self.job.clone(), self.at(place).id));
            self.remove(place);
        }
        change
    }

    fn remove(&mut self, place: u64) {
        self.count_out(place);
        let Some(Kept { task, .. }) = self.tasks.remove(&place) else { return };
        self.places.remove(&task.id);
        if let Some(key) = task.key {
            self.keys.remove(&(task.source.agent, key));
        }
    }

    fn count_in(&mut self, place: u64) {
        let Kept { task, bytes } = &self.tasks[&place];
        self.bytes[kind(task)] += bytes;
        if task.is_forgotten() {
            self.forgotten.insert((task.changed, place));
        } else if task.is_over() {
            self.over.insert((task.changed, place));
        }
        if let (Some(deadline), false) = (task.deadline, task.status.is_ended()) {
            self.deadlines.insert((deadline, place));
        }
    }

    fn count_out(&mut self, place: u64) {
        let Kept { task, bytes } = &self.tasks[&place];
        self.bytes[kind(task)] -= bytes;
        self.over.remove(&(task.changed, place));
        self.forgotten.remove(&(task.changed, place));
        if let Some(deadline) = task.deadline {
            self.deadlines.remove(&(deadline, place));
        }
    }
}

/// The place of a task's bytes among the sums.
fn kind(task: &Task) -> usize {
    usize::from(task.is_over()) + usize::from(task.is_forgotten())
}

/// Numbers an event of a task, and puts it into the outbox if the submitter gets it.
pub(super) fn note(task: &mut Task, at: Time, said: &Said) -> TaskEvent {
    let Said { kind, percent, text } = *said;
    task.events += 1;
    let event = TaskEvent { task: task.id, number: task.events, at, kind, percent, text: text.map(str::to_owned) };
    let told = task.watched || kind.is_end() || kind == TaskEventKind::InputRequired;
    if task.detached && told && task.undelivered.is_none() {
        task.outbox.push_back(event.clone());
    }
    event
}
