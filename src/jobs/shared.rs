//! State that the handlers of a listener with tasks share.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use systole_core::core::Failure;
use systole_core::inbox::payload::ResultPayload;
use systole_core::inbox::{
    InboxChange, InboxError, InboxPrincipal, InboxProblem, JobError, Task, TaskAction, TaskEvent,
};
use systole_core::journal::{Op, StateRecord};
use systole_core::vocab::{Fault, FaultCode, Name, TaskId, Time};
use tokio::sync::{Notify, watch};

use super::inboxes::Inboxes;
use super::setting::{Sends, Setting};
use super::waiter::Waiter;
use crate::runtime::{Ending, JournalAppender, Noted, Thread};

/// State that the actor of a listener with tasks, its waiting handlers and its owner's program share. It outlives the
/// actor.
pub(super) struct Shared<I> {
    /// The name of the listener.
    pub(super) name: Name,
    kept: Mutex<Kept<I>>,
    pub(super) waiting: Mutex<HashMap<TaskId, Vec<Arc<Waiter>>>>,
    /// Number of waiting handlers; each holds a slot of the listener.
    pub(super) waiters: AtomicUsize,
    callback: Mutex<Option<EventCallback>>,
    /// Events for the callback, in order; the thread that holds `delivering` passes them on.
    unheard: Mutex<VecDeque<TaskEvent>>,
    delivering: Mutex<()>,
    /// Notified when an event may have to be sent.
    pub(super) outbox: Notify,
    setting: OnceLock<Setting>,
}

/// The inboxes, and the journal's appender for them.
pub(super) struct Kept<I> {
    pub(super) inboxes: I,
    /// The revision of the directory in the journal.
    pub(super) enrolled: u64,
    /// The state that the owner of the one job stores with its tasks.
    pub(super) state: Option<Bytes>,
    /// `None` while the inboxes live in memory alone.
    pub(super) appender: Option<JournalAppender>,
    /// The last change: once it is durable, everything is.
    last: Written,
}

pub(super) type EventCallback = Arc<dyn Fn(&TaskEvent) + Send + Sync>;

/// Events and results of a change, for the submitters and handlers that wait for them.
struct News {
    events: Vec<TaskEvent>,
    /// Results of the tasks that the change ended.
    results: Vec<ResultPayload>,
}

/// Durability of a change and all before it; none if there is no journal. A change that the journal does not take, since
/// the organism ends, is never durable.
#[derive(Clone, Default)]
#[must_use]
pub(super) struct Written(Option<watch::Receiver<bool>>);

impl<I: Inboxes> Shared<I> {
    pub(super) fn new(name: Name, inboxes: I) -> Self {
        Self {
            name,
            kept: Mutex::new(Kept { inboxes, enrolled: 0, state: None, appender: None, last: Written::default() }),
            waiting: Mutex::default(),
            waiters: AtomicUsize::new(0),
            callback: Mutex::default(),
            unheard: Mutex::default(),
            delivering: Mutex::default(),
            outbox: Notify::new(),
            setting: OnceLock::new(),
        }
    }

    /// Applies the settings of the listener, when it is registered the first time.
    pub(super) fn set(&self, setting: &Setting) {
        self.setting.get_or_init(|| setting.clone());
    }

    pub(super) fn sends(&self) -> Sends {
        self.setting.get().map(|setting| setting.sends).unwrap_or_default()
    }

    /// Checks that the events of a task can be watched.
    pub(super) fn may_watch(&self, watched: bool) -> Result<(), InboxError> {
        if watched && !self.sends().events { Err(InboxProblem::NoEvents.into()) } else { Ok(()) }
    }

    pub(super) fn description(&self) -> &str {
        self.setting.get().map_or("", |setting| &setting.description)
    }

    /// Locks the inboxes. A panic can't leave them half-changed: each method of the inbox checks first, and then
    /// changes.
    pub(super) fn lock(&self) -> MutexGuard<'_, Kept<I>> {
        lock(&self.kept)
    }

    pub(super) fn set_callback(&self, callback: Box<dyn Fn(&TaskEvent) + Send + Sync>) {
        *lock(&self.callback) = Some(callback.into());
    }

    /// Reads the inboxes; the result is durable when the second value is.
    pub(super) fn look<T>(&self, look: impl FnOnce(&I) -> T) -> (T, Written) {
        let kept = self.lock();
        (look(&kept.inboxes), kept.last.clone())
    }

    /// Reads a task.
    pub(super) fn read<T>(&self, id: TaskId, read: impl FnOnce(&Task) -> T) -> Result<T, InboxError> {
        self.lock().inboxes.holding(id)?.get(id).map(read)
    }

    /// Changes tasks for a handler: once, even if the handler runs again. The outcome is noted in the transaction that
    /// writes the change, and a handler that runs again gets the note.
    pub(super) fn act<T: Serialize + DeserializeOwned>(
        self: &Arc<Self>,
        thread: &Thread,
        state: Option<Bytes>,
        act: impl FnOnce(&mut I, Time) -> Result<(InboxChange, T), Failure>,
    ) -> Result<(T, Written), Failure> {
        let page = match thread.open_note("task")? {
            Noted::Before(value) => return Ok((value, Written::default())),
            Noted::Not(page) => page,
        };
        let now = thread.clock()?.now();
        self.change(|kept| {
            let (change, value) = act(&mut kept.inboxes, now)?;
            let note = page.write(&value)?;
            let noted = (note.message != 0).then_some(Op::Note(note));
            let state = state.map(|state| kept.keep(&self.name, state));
            Ok((change, noted.into_iter().chain(state).collect(), value))
        })
    }

    /// Changes tasks, writes the change and the operations beside it in one transaction, and then notifies waiters,
    /// sender and callback. Earlier changes are durable when this one is.
    pub(super) fn change<T, E>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Kept<I>) -> Result<(InboxChange, Vec<Op>, T), E>,
    ) -> Result<(T, Written), E> {
        let mut kept = self.lock();
        let (change, mut ops, value) = act(&mut kept)?;
        ops.extend(kept.enrol(&self.name));
        if change.is_empty() && ops.is_empty() {
            return Ok((value, kept.last.clone()));
        }
        if kept.appender.is_some() {
            ops.append(&mut kept.inboxes.ops(&change));
        }
        let news = kept.news(change);
        let Some(appender) = kept.appender.clone() else {
            lock(&self.unheard).extend(news.events.iter().cloned());
            drop(kept);
            self.spread(&news);
            return Ok((value, Written::default()));
        };
        let (tell, told) = watch::channel(false);
        let written = Written(Some(told));
        kept.last = written.clone();
        let shared = self.clone();
        // Handed over before any other thread sees the change, so that consequences are written after it. If it is refused,
        // `tell` is dropped, and the change stays unknown.
        let _ = appender.append(
            ops,
            Box::new(move || {
                lock(&shared.unheard).extend(news.events.iter().cloned());
                // The journal's thread must survive a panic of the callback.
                if catch_unwind(AssertUnwindSafe(|| shared.spread(&news))).is_err() {
                    tracing::error!("the callback for events of a job has panicked");
                }
                tell.send_replace(true);
            }),
        );
        drop(kept);
        Ok((value, written))
    }

    /// Notifies the waiting handlers, the sender of events and the callback.
    fn spread(&self, news: &News) {
        for event in &news.events {
            let waiting = lock(&self.waiting).get(&event.task).cloned().unwrap_or_default();
            for waiter in waiting {
                if let Some(result) = news.results.iter().find(|result| event.kind.is_end() && result.id == event.task)
                {
                    // A task ends only once.
                    let _ = waiter.ended.set(result.clone());
                }
                waiter.news.notify_one();
            }
        }
        self.outbox.notify_one();
        self.tell();
    }

    /// Calls the callback with all new events, in order, even if several threads change the inboxes, or the callback
    /// itself does.
    fn tell(&self) {
        while !lock(&self.unheard).is_empty() {
            let delivering = match self.delivering.try_lock() {
                Ok(delivering) => delivering,
                Err(TryLockError::Poisoned(delivering)) => delivering.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            let callback = lock(&self.callback).clone();
            loop {
                let Some(event) = lock(&self.unheard).pop_front() else { break };
                if let Some(callback) = &callback {
                    callback(&event);
                }
            }
            drop(delivering);
        }
    }
}

/// Changes for which no handler waits: they can't be refused, or a refusal is ignored.
impl<I: Inboxes> Shared<I> {
    /// Changes tasks, ignoring a refusal.
    pub(super) fn try_change(self: &Arc<Self>, act: impl FnOnce(&mut I) -> Result<InboxChange, InboxError>) {
        let _ = self.change(|kept| act(&mut kept.inboxes).map(|change| (change, Vec::new(), ())));
    }

    /// Answers the question of an event for the submitter of a task. A refused answer leaves the question open for a
    /// message of the submitter; a late answer is ignored.
    pub(super) fn answer(self: &Arc<Self>, submitter: &InboxPrincipal, id: TaskId, event: u32, text: &str, now: Time) {
        self.try_change(|inboxes| {
            let inbox = inboxes.holding_mut(id)?;
            match inbox.get(id)?.open_question() {
                Some(exchange) if exchange.number == event => {
                    inbox.apply(submitter, id, TaskAction::Answer(text.to_owned()), now)
                }
                _ => Ok(InboxChange::default()),
            }
        });
    }

    /// Notes that the submitter of a task has received an event. A forgotten task has no events.
    pub(super) fn acknowledge(self: &Arc<Self>, id: TaskId, number: u32) {
        self.try_change(|inboxes| inboxes.holding_mut(id)?.acknowledge(id, number));
    }

    /// Notes that the submitter of a task can't receive its result.
    pub(super) fn give_up(self: &Arc<Self>, id: TaskId, reason: &str) {
        self.try_change(|inboxes| inboxes.holding_mut(id)?.undeliverable(id, reason));
    }
}

impl<I: Inboxes> Kept<I> {
    /// Replaces the state that the owner stores.
    pub(super) fn keep(&mut self, listener: &Name, state: Bytes) -> Op {
        self.state = Some(state.clone());
        Op::State(StateRecord { listener: listener.clone(), blob: state })
    }

    /// Writes the list of jobs, if it has changed.
    fn enrol(&mut self, listener: &Name) -> Option<Op> {
        let revision = self.inboxes.revision();
        if self.appender.is_none() || self.enrolled == revision {
            return None;
        }
        self.enrolled = revision;
        let directory = self.inboxes.directory()?;
        Some(Op::State(StateRecord { listener: listener.clone(), blob: directory.into() }))
    }

    fn news(&self, change: InboxChange) -> News {
        let ends = change.events.iter().filter(|event| event.kind.is_end());
        let task = |id| self.inboxes.holding(id).and_then(|inbox| inbox.get(id)).ok();
        let results = ends.filter_map(|event| task(event.task)).map(ResultPayload::from).collect();
        News { events: change.events, results }
    }
}

impl Written {
    /// Waits until the change is durable.
    ///
    /// # Errors
    /// Waits for it, on behalf of a handler. If the organism ends first the handler waits until it is dropped: any answer
    /// of it could be durable without the change. The next start runs it again.
    pub(super) async fn durable(self) {
        if self.told().await.is_err() {
            std::future::pending().await
        }
    }

    /// Waits for it, on behalf of a request.
    pub(super) async fn told(self) -> Result<(), Ending> {
        match self.0 {
            Some(mut told) => told.wait_for(|durable| *durable).await.map(drop).map_err(|_| Ending),
            None => Ok(()),
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports a refusal to the handler's caller.
pub(super) fn failure(error: impl Into<JobError>) -> Failure {
    let error = error.into();
    let retryable = matches!(
        error,
        JobError::Full { .. }
            | JobError::Inbox(InboxError::Full { .. } | InboxError::Problem(InboxProblem::Outbox { .. }))
    );
    let fault = Fault { retryable, ..Fault::new(FaultCode::Failed, error.to_string()) };
    Failure::passing(fault)
}
