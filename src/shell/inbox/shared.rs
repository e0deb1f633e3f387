use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use systole_core::core::Failure;
use systole_core::inbox::payload::ResultPayload;
use systole_core::inbox::{Change, Event, InboxError, InboxProblem, JobError, Principal, Task};
use systole_core::journal::{Op, StateRecord};
use systole_core::vocab::{Fault, FaultCode, Name, TaskId, Time};
use tokio::sync::{Notify, watch};

use super::inboxes::Inboxes;
use super::place::Waiter;
use super::setting::{Sends, Setting};
use crate::shell::ledger::Ledger;
use crate::shell::thread::{Noted, Thread};

/// What the actor of a listener with tasks, its waiting handlers and its owner's program share. It outlives the actor.
pub(super) struct Shared<I> {
    /// The listener's.
    pub(super) name: Name,
    kept: Mutex<Kept<I>>,
    pub(super) waiting: Mutex<HashMap<TaskId, Vec<Arc<Waiter>>>>,
    /// How many wait; each holds a slot of the listener.
    pub(super) waiters: AtomicUsize,
    hear: Mutex<Option<Hear>>,
    /// What happened and was not heard, in order; whoever holds `hearing` sees to it.
    unheard: Mutex<VecDeque<Event>>,
    hearing: Mutex<()>,
    /// Rings when something may have to be sent.
    pub(super) outbox: Notify,
    setting: OnceLock<Setting>,
}

/// What is held, and where that is written down.
pub(super) struct Kept<I> {
    pub(super) inboxes: I,
    /// The revision of the directory that is written down.
    pub(super) enrolled: u64,
    /// What the owner of the one job keeps with its tasks.
    pub(super) state: Option<Bytes>,
    /// None, or closed, while it lives in memory.
    pub(super) ledger: Option<Ledger>,
    /// The last change: with it all that is held is durable.
    last: Written,
}

pub(super) type Hear = Arc<dyn Fn(&Event) + Send + Sync>;

/// What others hear of a change.
struct News {
    events: Vec<Event>,
    /// What came of the tasks that it ended.
    results: Vec<ResultPayload>,
}

/// Whether a change is durable, with all before it; none, if there is no journal.
#[derive(Clone, Default)]
#[must_use]
pub(super) struct Written(Option<watch::Receiver<bool>>);

impl<I: Inboxes> Shared<I> {
    pub(super) fn new(name: Name, inboxes: I) -> Self {
        Self {
            name,
            kept: Mutex::new(Kept { inboxes, enrolled: 0, state: None, ledger: None, last: Written::default() }),
            waiting: Mutex::default(),
            waiters: AtomicUsize::new(0),
            hear: Mutex::default(),
            unheard: Mutex::default(),
            hearing: Mutex::default(),
            outbox: Notify::new(),
            setting: OnceLock::new(),
        }
    }

    /// Says what is set of the listener; the first time that it is registered.
    pub(super) fn set(&self, setting: &Setting) {
        self.setting.get_or_init(|| setting.clone());
    }

    pub(super) fn sends(&self) -> Sends {
        self.setting.get().map(|setting| setting.sends).unwrap_or_default()
    }

    /// Whether somebody may ask for the events of a task.
    pub(super) fn may_watch(&self, watched: bool) -> Result<(), InboxError> {
        if watched && !self.sends().events { Err(InboxProblem::NoEvents.into()) } else { Ok(()) }
    }

    pub(super) fn description(&self) -> &str {
        self.setting.get().map_or("", |setting| &setting.description)
    }

    /// A panic while it is held can't leave it half-way: each method of the inbox checks first, and then changes.
    pub(super) fn lock(&self) -> MutexGuard<'_, Kept<I>> {
        lock(&self.kept)
    }

    pub(super) fn hear(&self, hear: Box<dyn Fn(&Event) + Send + Sync>) {
        *lock(&self.hear) = Some(hear.into());
    }

    /// Looks at what is held; what is seen is durable when the second value is.
    pub(super) fn look<T>(&self, look: impl FnOnce(&I) -> T) -> (T, Written) {
        let kept = self.lock();
        (look(&kept.inboxes), kept.last.clone())
    }

    /// Looks at a task.
    pub(super) fn read<T>(&self, id: TaskId, read: impl FnOnce(&Task) -> T) -> Result<T, InboxError> {
        self.lock().inboxes.holding(id)?.get(id).map(read)
    }

    /// Changes tasks for a handler: once, however often that is run. What comes of it is noted in the transaction
    /// that writes the change, and a handler that is run again gets the note.
    pub(super) fn act<T: Serialize + DeserializeOwned>(
        self: &Arc<Self>,
        thread: &Thread,
        state: Option<Bytes>,
        act: impl FnOnce(&mut I, Time) -> Result<(Change, T), Failure>,
    ) -> Result<(T, Written), Failure> {
        let page = match thread.open_note("task")? {
            Noted::Before(value) => return Ok((value, Written::default())),
            Noted::Not(page) => page,
        };
        let now = thread.clock().ok_or_else(|| Failure::new("the job runs outside of its organism"))?.now();
        self.change(|kept| {
            let (change, value) = act(&mut kept.inboxes, now)?;
            let note = page.write(&value)?;
            let noted = (note.message != 0).then_some(Op::Note(note));
            let state = state.map(|state| kept.keep(&self.name, state));
            Ok((change, noted.into_iter().chain(state).collect(), value))
        })
    }

    /// Changes tasks, has that and the operations beside it written in one transaction, and then lets everybody know who
    /// wants to. A change that was made before is durable when that is.
    pub(super) fn change<T, E>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Kept<I>) -> Result<(Change, Vec<Op>, T), E>,
    ) -> Result<(T, Written), E> {
        let mut kept = self.lock();
        let (change, mut ops, value) = act(&mut kept)?;
        ops.extend(kept.enrol(&self.name));
        if change.is_empty() && ops.is_empty() {
            return Ok((value, kept.last.clone()));
        }
        if kept.ledger.is_some() {
            ops.append(&mut kept.inboxes.ops(&change));
        }
        let news = kept.news(change);
        let Some(ledger) = kept.ledger.clone().filter(Ledger::is_open) else {
            lock(&self.unheard).extend(news.events.iter().cloned());
            drop(kept);
            self.spread(&news);
            return Ok((value, Written::default()));
        };
        let (tell, told) = watch::channel(false);
        let written = Written(Some(told));
        kept.last = written.clone();
        let shared = self.clone();
        // Handed over before anybody else sees the change: so what follows from it is written after it.
        ledger.append(
            ops,
            Box::new(move || {
                lock(&shared.unheard).extend(news.events.iter().cloned());
                // The journal's thread outlives a program that panics on what it hears.
                if catch_unwind(AssertUnwindSafe(|| shared.spread(&news))).is_err() {
                    tracing::error!("what hears the events of a job has panicked");
                }
                tell.send_replace(true);
            }),
        );
        drop(kept);
        Ok((value, written))
    }

    /// Lets those who wait, what is sent and the program know.
    fn spread(&self, news: &News) {
        for event in &news.events {
            let waiting = lock(&self.waiting).get(&event.task).cloned().unwrap_or_default();
            for waiter in waiting {
                if let Some(result) = news.results.iter().find(|result| event.kind.is_end() && result.id == event.task)
                {
                    // A task ends once.
                    let _ = waiter.ended.set(result.clone());
                }
                waiter.rings.notify_one();
            }
        }
        self.outbox.notify_one();
        self.tell();
    }

    /// Lets the program hear what happened, in order, also when several threads change the inbox, or the program does
    /// while it hears.
    fn tell(&self) {
        while !lock(&self.unheard).is_empty() {
            let hearing = match self.hearing.try_lock() {
                Ok(hearing) => hearing,
                Err(TryLockError::Poisoned(hearing)) => hearing.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            let hear = lock(&self.hear).clone();
            loop {
                let Some(event) = lock(&self.unheard).pop_front() else { break };
                if let Some(hear) = &hear {
                    hear(&event);
                }
            }
            drop(hearing);
        }
    }
}

/// Changes that nobody waits for, and that can't be refused, or may be.
impl<I: Inboxes> Shared<I> {
    /// Changes tasks if they let themselves be changed.
    pub(super) fn try_change(self: &Arc<Self>, act: impl FnOnce(&mut I) -> Result<Change, InboxError>) {
        let _ = self.change(|kept| act(&mut kept.inboxes).map(|change| (change, Vec::new(), ())));
    }

    /// The submitter of a task answers the question of an event. An answer that is refused leaves it open, for a
    /// message of the submitter's own; one that comes too late is none.
    pub(super) fn answer(self: &Arc<Self>, submitter: &Principal, id: TaskId, event: u32, text: &str, now: Time) {
        self.try_change(|inboxes| {
            let inbox = inboxes.holding_mut(id)?;
            match inbox.get(id)?.open_question() {
                Some(exchange) if exchange.number == event => inbox.answer(submitter, id, text, now),
                _ => Ok(Change::default()),
            }
        });
    }

    /// The submitter of a task was told of an event. A task that is forgotten has nothing to be told.
    pub(super) fn acknowledge(self: &Arc<Self>, id: TaskId, number: u32) {
        self.try_change(|inboxes| inboxes.holding_mut(id)?.acknowledge(id, number));
    }

    /// The submitter of a task will never be told.
    pub(super) fn give_up(self: &Arc<Self>, id: TaskId, reason: &str) {
        self.try_change(|inboxes| inboxes.holding_mut(id)?.undeliverable(id, reason));
    }
}

impl<I: Inboxes> Kept<I> {
    /// Keeps what the owner hands in, instead of what it handed in before.
    pub(super) fn keep(&mut self, listener: &Name, state: Bytes) -> Op {
        self.state = Some(state.clone());
        Op::State(StateRecord { listener: listener.clone(), blob: state })
    }

    /// Which jobs there are, if that isn't written down.
    fn enrol(&mut self, listener: &Name) -> Option<Op> {
        let revision = self.inboxes.revision();
        if self.ledger.is_none() || self.enrolled == revision {
            return None;
        }
        self.enrolled = revision;
        let directory = self.inboxes.directory()?;
        Some(Op::State(StateRecord { listener: listener.clone(), blob: directory.into() }))
    }

    fn news(&self, change: Change) -> News {
        let ends = change.events.iter().filter(|event| event.kind.is_end());
        let task = |id| self.inboxes.holding(id).and_then(|inbox| inbox.get(id)).ok();
        let results = ends.filter_map(|event| task(event.task)).map(ResultPayload::from).collect();
        News { events: change.events, results }
    }
}

impl Written {
    /// Waits until it is written.
    ///
    /// # Errors
    /// The fault of a handler whose organism can't go on.
    pub(super) async fn durable(self) -> Result<(), Fault> {
        let gone = |_| Fault::new(FaultCode::Internal, "the journal can't be written: the organism goes no further");
        match self.0 {
            Some(mut told) => told.wait_for(|durable| *durable).await.map(drop).map_err(gone),
            None => Ok(()),
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What whoever tried gets to know.
pub(super) fn failure(error: impl Into<JobError>) -> Failure {
    let error = error.into();
    let retryable = matches!(
        error,
        JobError::Full { .. }
            | JobError::Inbox(InboxError::Full { .. } | InboxError::Problem(InboxProblem::Outbox { .. }))
    );
    let fault = Fault { retryable, ..Fault::new(FaultCode::Failed, error.to_string()) };
    Failure { message: fault.message.clone(), fault: Some(fault) }
}
