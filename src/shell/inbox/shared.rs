use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use tokio::sync::Notify;

use crate::core::Failure;
use crate::inbox::payload::ResultPayload;
use crate::inbox::{Change, Event, InboxError, InboxProblem, Principal, TaskInbox};
use crate::shell::clock::Clock;
use crate::vocab::{Fault, FaultCode, TaskId, Time};

/// What the actor of a job, its waiting handlers and its owner's program share. It outlives the actor.
pub(super) struct Shared {
    inbox: Mutex<TaskInbox>,
    waiting: Mutex<HashMap<TaskId, Vec<Arc<Waiter>>>>,
    /// How many wait; each holds a slot of the listener.
    waiters: AtomicUsize,
    hear: Mutex<Option<Hear>>,
    /// What happened and was not heard, in order; whoever holds `hearing` sees to it.
    unheard: Mutex<VecDeque<Event>>,
    hearing: Mutex<()>,
    /// Rings when something may have to be sent.
    pub(super) outbox: Notify,
    sends: OnceLock<Sends>,
}

/// What the contract of a job lets it send to submitters.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sends {
    pub(super) results: bool,
    pub(super) events: bool,
    pub(super) questions: bool,
}

pub(super) type Hear = Arc<dyn Fn(&Event) + Send + Sync>;

/// A handler that waits for a task.
#[derive(Default)]
pub(super) struct Waiter {
    /// Rings at each event of the task.
    pub(super) rings: Notify,
    /// What came of it: the task itself may be forgotten by then.
    pub(super) ended: OnceLock<ResultPayload>,
}

impl Shared {
    pub(super) fn new(inbox: TaskInbox) -> Self {
        Self {
            inbox: Mutex::new(inbox),
            waiting: Mutex::default(),
            waiters: AtomicUsize::new(0),
            hear: Mutex::default(),
            unheard: Mutex::default(),
            hearing: Mutex::default(),
            outbox: Notify::new(),
            sends: OnceLock::new(),
        }
    }

    /// Says what the contract allows; the first time that it is registered.
    pub(super) fn allow(&self, sends: Sends) {
        self.sends.get_or_init(|| sends);
    }

    /// Whether one more may wait. Several may wait for one task; without a bound they could hold every slot, and nobody
    /// could end a task.
    pub(super) fn may_wait(&self) -> Result<(), Failure> {
        if self.waiters.load(Ordering::Relaxed) < self.lock().limits().open {
            return Ok(());
        }
        let message = "too many wait for tasks of this job: submit detached, or try again later";
        let fault = Fault { retryable: true, ..Fault::new(FaultCode::Failed, message) };
        Err(Failure { message: fault.message.clone(), fault: Some(fault) })
    }

    pub(super) fn sends(&self) -> Sends {
        self.sends.get().copied().unwrap_or_default()
    }

    /// A panic while it is held can't leave it half-way: each method of the inbox checks first, and then changes.
    pub(super) fn lock(&self) -> MutexGuard<'_, TaskInbox> {
        lock(&self.inbox)
    }

    pub(super) fn hear(&self, hear: Box<dyn Fn(&Event) + Send + Sync>) {
        *lock(&self.hear) = Some(hear.into());
    }

    /// Changes the inbox, and lets everybody know who wants to.
    pub(super) fn change(
        &self,
        act: impl FnOnce(&mut TaskInbox) -> Result<Change, InboxError>,
    ) -> Result<(), InboxError> {
        let (change, results) = {
            let mut inbox = self.lock();
            let change = act(&mut inbox)?;
            let ends = change.events.iter().filter(|event| event.kind.is_end());
            let results: Vec<ResultPayload> =
                ends.filter_map(|event| inbox.get(event.task).ok()).map(ResultPayload::from).collect();
            lock(&self.unheard).extend(change.events.iter().cloned());
            (change, results)
        };
        for event in &change.events {
            let waiting = lock(&self.waiting).get(&event.task).cloned().unwrap_or_default();
            for waiter in waiting {
                if let Some(result) = results.iter().find(|result| event.kind.is_end() && result.id == event.task) {
                    // A task ends once.
                    let _ = waiter.ended.set(result.clone());
                }
                waiter.rings.notify_one();
            }
        }
        if !change.is_empty() {
            self.outbox.notify_one();
        }
        self.tell();
        Ok(())
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

impl Shared {
    /// Changes the inbox if something is true of it.
    pub(super) fn change_if(&self, check: impl FnOnce(&TaskInbox) -> bool, act: impl FnOnce(&mut TaskInbox) -> Change) {
        if check(&self.lock()) {
            // What can't be refused isn't.
            let _ = self.change(|inbox| Ok(act(inbox)));
        }
    }

    /// The submitter of a task answers the question of an event. An answer that is refused leaves it open, for a
    /// message of the submitter's own; one that comes too late is none.
    pub(super) fn answer(&self, submitter: &Principal, id: TaskId, event: u32, text: &str, now: Time) {
        let _ = self.change(|inbox| match inbox.get(id)?.open_question() {
            Some(exchange) if exchange.number == event => inbox.answer(submitter, id, text, now),
            _ => Ok(Change::default()),
        });
    }

    /// The submitter of a task was told of an event.
    pub(super) fn acknowledge(&self, id: TaskId, number: u32) {
        // A task that is forgotten has nothing to be told.
        let _ = self.change(|inbox| inbox.acknowledge(id, number));
    }

    /// The submitter of a task will never be told.
    pub(super) fn give_up(&self, id: TaskId, reason: &str) {
        // As above.
        let _ = self.change(|inbox| inbox.undeliverable(id, reason));
    }
}

/// A place among those who wait for a task. When the last one leaves before the end, nobody wants the task any more.
pub(super) struct Place {
    shared: Arc<Shared>,
    clock: Clock,
    id: TaskId,
    submitter: Principal,
    pub(super) waiter: Arc<Waiter>,
}

impl Place {
    pub(super) fn take(shared: Arc<Shared>, clock: Clock, id: TaskId, submitter: Principal) -> Self {
        let waiter = Arc::<Waiter>::default();
        lock(&shared.waiting).entry(id).or_default().push(waiter.clone());
        shared.waiters.fetch_add(1, Ordering::Relaxed);
        Self { shared, clock, id, submitter, waiter }
    }

    /// Whether it is the one that is asked, where several wait for one task.
    pub(super) fn is_first(&self) -> bool {
        let waiting = lock(&self.shared.waiting);
        let first = waiting.get(&self.id).and_then(|waiters| waiters.first());
        first.is_some_and(|first| Arc::ptr_eq(first, &self.waiter))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.waiters.fetch_sub(1, Ordering::Relaxed);
        let last = {
            let mut waiting = lock(&self.shared.waiting);
            let Some(waiters) = waiting.get_mut(&self.id) else { return };
            waiters.retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
            // It may be the one that is asked now.
            waiters.iter().for_each(|waiter| waiter.rings.notify_one());
            let last = waiters.is_empty();
            if last {
                waiting.remove(&self.id);
            }
            last
        };
        if last && self.waiter.ended.get().is_none() {
            let now = self.clock.now();
            // It may have ended before, with nobody looking.
            let _ = self.shared.change(|inbox| inbox.cancel(&self.submitter, self.id, GONE, now));
        }
    }
}

/// Why a task is cancelled whose submitter doesn't wait any more.
const GONE: &str = "the thread that submitted it ended";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What whoever tried gets to know.
pub(super) fn failure(error: InboxError) -> Failure {
    let retryable = matches!(error, InboxError::Full { .. } | InboxError::Problem(InboxProblem::Outbox { .. }));
    let fault = Fault { retryable, ..Fault::new(FaultCode::Failed, error.to_string()) };
    Failure { message: fault.message.clone(), fault: Some(fault) }
}
