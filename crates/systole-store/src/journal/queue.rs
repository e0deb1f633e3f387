//! The queue of the journal's writer, and the right to write.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use systole_core::core::CoreId;
use systole_core::core::catch_panic::catch_panic;
use systole_core::journal::{Batch as Steps, Journal, JournalError, JournalErrorKind, Step};
use systole_core::vocab::{Partitions, Time};

use super::batch::FEW;
use super::logs::Logs;
use super::writer::{Adopted, Lost, Told, Written};
use crate::clock::Clock;

/// The most steps of one transaction.
pub(super) const BATCH: usize = 256;

/// Bytes of steps behind which a transaction ends: its steps are reported together, so a short one never waits for the
/// long ones behind it.
const BYTES: usize = 256 << 10;

/// The most bytes of a step that a shard writes itself.
const SHORT: usize = 32 << 10;

/// Time without work of its own after which the writer's thread feeds the journal's tables.
const IDLE: Duration = Duration::from_millis(20);

/// The most transactions that a shard writes before it turns to its other work.
const ROUNDS: usize = 2;

/// Steps on their way into the journal, and the write access, which one thread has at a time. Steps leave
/// the queue only with the access, so they are written in the order in which they came.
pub(super) struct Queue {
    state: Mutex<State>,
    /// Wakes the writer's thread.
    wake: Condvar,
    /// True if shards write, too.
    shared: bool,
    /// True if the tables of the journal have all steps that were reported to the cores.
    fed: Arc<AtomicBool>,
}

struct State {
    orders: VecDeque<Order>,
    /// The access; `None` while a thread writes, and after an error.
    access: Option<WriteAccess>,
    /// True if the writer's thread waits for the access.
    wanted: bool,
    end: Option<End>,
    failed: Option<JournalError>,
}

/// A step to write.
pub(super) enum Order {
    Write {
        core: CoreId,
        number: u64,
        step: Step,
    },
    Beside {
        step: Step,
        written: Written,
    },
    /// Partitions that a core takes over, once the steps before are written.
    Adopt {
        core: CoreId,
        partitions: Partitions,
        adopted: Adopted,
    },
    /// A core gives its partitions up, once the steps before are written.
    Release {
        core: CoreId,
        released: Written,
    },
    /// The tables of the journal get the steps before.
    Feed {
        fed: Written,
    },
}

impl Order {
    /// About the bytes of its step.
    fn bytes(&self) -> usize {
        match self {
            Self::Write { step, .. } | Self::Beside { step, .. } => step.bytes(),
            Self::Adopt { .. } | Self::Release { .. } | Self::Feed { .. } => 0,
        }
    }

    /// Returns whether a shard may carry it out itself.
    fn is_short(&self) -> bool {
        !matches!(self, Self::Feed { .. }) && self.bytes() <= SHORT
    }
}

/// Reason why no more steps come.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    /// The organism has ended in order.
    Closed,
    /// No sender is left: the organism may have been dropped.
    Abandoned,
}

/// The next work of the writer's thread.
pub(super) enum Turn {
    Write(WriteAccess),
    Feed(WriteAccess),
    Tidy(WriteAccess),
    End(WriteAccess, End),
    Failed(JournalError),
}

/// The journal, and the callback for written steps.
pub(super) struct WriteAccess {
    journal: Box<dyn Journal>,
    logs: Logs,
    /// The cores that the organism started with: one for each shard.
    founders: Vec<CoreId>,
    told: Told,
    batch: Batch,
    fed: Arc<AtomicBool>,
}

/// Steps of one transaction, and the last of each core.
#[derive(Default)]
struct Batch {
    steps: Steps,
    /// About the bytes of the steps.
    bytes: usize,
    last: Vec<(CoreId, u64)>,
    beside: Vec<Written>,
    /// A move of partitions after the steps.
    moved: Option<Move>,
    /// Callbacks for readers that wait until the tables have the steps.
    feed: Vec<Written>,
}

/// A move of partitions.
enum Move {
    Adopt(CoreId, Partitions, Adopted),
    Release(CoreId, Written),
}

impl Queue {
    /// Makes a queue with a access, which shards use as well if it is `shared`.
    pub(super) fn new(access: WriteAccess, shared: bool) -> Self {
        let fed = access.fed.clone();
        let state = State { orders: VecDeque::new(), access: Some(access), wanted: false, end: None, failed: None };
        Self { state: Mutex::new(state), wake: Condvar::new(), shared, fed }
    }

    /// Returns whether the tables of the journal have all steps that were reported to the cores.
    pub(super) fn is_fed(&self) -> bool {
        self.fed.load(Ordering::Acquire)
    }

    /// Adds a step. Wakes the writer's thread unless a shard may write the step at the next flush.
    pub(super) fn put(&self, order: Order) {
        let mut state = self.lock();
        if state.failed.is_some() || state.end.is_some() {
            // Dropping an order may run foreign code, so not under the lock.
            drop(state);
            return drop(order);
        }
        let left = self.shared && matches!(order, Order::Write { .. }) && state.orders.len() < FEW;
        state.orders.push_back(order);
        // While another thread writes, it takes the step along.
        if !left && (state.access.is_some() || !self.shared) {
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Writes the waiting steps if they are few enough for the shard; otherwise wakes the writer's thread.
    pub(super) fn flush(&self) {
        let mut state = self.lock();
        for _ in 0..ROUNDS {
            // Until the tables have all steps, a transaction may be a long feed.
            let few = self.is_fed() && self.shared && state.end.is_none();
            let few = few && (1..=FEW).contains(&state.orders.len()) && state.orders.iter().all(Order::is_short);
            let Some(mut access) = state.access.take_if(|_| few) else { break };
            access.fill(&mut state.orders);
            drop(state);
            state = self.put_back(access.write());
        }
        if state.access.is_some() && !state.orders.is_empty() {
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Ends the queue: no more steps come.
    pub(super) fn end(&self, end: End) {
        self.lock().end.get_or_insert(end);
        self.wake.notify_one();
    }

    /// Waits for work for the writer's thread, until the time to tidy at the latest, or until it was idle for a while and
    /// the tables lack steps. If steps are there at once, gathers more for at most `gather`.
    pub(super) fn turn(&self, clock: &Clock, tidy: Time, gather: Duration) -> Turn {
        let (mut state, mut gather, feed) = (self.lock(), gather, clock.now().after(IDLE));
        loop {
            if let Some(error) = &state.failed {
                return Turn::Failed(error.clone());
            }
            let left = clock.until(if self.is_fed() { tidy } else { tidy.min(feed) });
            let due = !state.orders.is_empty() || state.end.is_some() || left.is_zero();
            if let Some(access) = state.access.take_if(|_| due) {
                return self.begin(state, access, gather);
            }
            state.wanted = due;
            state = match due {
                true => self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
                false => self.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
            state.wanted = false;
            gather = Duration::ZERO;
        }
    }

    fn begin(&self, mut state: MutexGuard<'_, State>, mut access: WriteAccess, gather: Duration) -> Turn {
        if !state.orders.is_empty() && !gather.is_zero() {
            let more = |state: &mut State| state.orders.len() < BATCH && state.end.is_none();
            state = self.wake.wait_timeout_while(state, gather, more).unwrap_or_else(PoisonError::into_inner).0;
        }
        access.fill(&mut state.orders);
        match state.end {
            _ if !access.batch.is_empty() => Turn::Write(access),
            Some(end) => Turn::End(access, end),
            None if !self.is_fed() => Turn::Feed(access),
            None => Turn::Tidy(access),
        }
    }

    /// Takes the access back from a thread that has written; after its error nothing more is written.
    pub(super) fn give_back(&self, written: Result<WriteAccess, JournalError>) {
        drop(self.put_back(written));
    }

    fn put_back(&self, written: Result<WriteAccess, JournalError>) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let is_awaited = match written {
            Ok(access) => {
                state.access = Some(access);
                state.wanted
            }
            Err(error) => {
                state.failed = Some(error);
                let dropped = std::mem::take(&mut state.orders);
                drop(state);
                // Dropping orders may run foreign code, so not under the lock.
                drop(dropped);
                state = self.lock();
                true
            }
        };
        if is_awaited {
            self.wake.notify_one();
        }
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriteAccess {
    /// Makes the access of a journal that was recovered in that epoch, for these cores, which get its error.
    pub(super) fn new(
        journal: Box<dyn Journal>,
        epoch: u32,
        cores: impl IntoIterator<Item = (CoreId, Partitions)>,
        told: Told,
    ) -> Self {
        let fed = Arc::new(AtomicBool::new(journal.is_fed()));
        let cores: Vec<_> = cores.into_iter().collect();
        let founders = cores.iter().map(|(core, _)| *core).collect();
        Self { journal, logs: Logs::begin(epoch, cores), founders, told, batch: Batch::default(), fed }
    }

    /// Takes the orders of one transaction.
    fn fill(&mut self, orders: &mut VecDeque<Order>) {
        while self.batch.steps.steps().len() < BATCH
            && self.batch.moved.is_none()
            && let Some(order) = orders.front()
        {
            let bytes = self.batch.bytes + order.bytes();
            if bytes > BYTES && !self.batch.is_empty() {
                return;
            }
            self.batch.bytes = bytes;
            orders.pop_front().into_iter().for_each(|order| self.batch.take(order, &self.logs));
        }
    }

    /// Writes the orders that it has taken, and reports them.
    ///
    /// # Errors
    /// The journal's error; all cores have received it.
    pub(super) fn write(self) -> Result<Self, JournalError> {
        let write = |access: &mut Self| {
            let Self { journal, logs, told, batch, fed, .. } = access;
            if !batch.steps.is_empty() {
                let fenced = logs.append(journal.as_mut(), &mut batch.steps)?;
                // Before the callbacks report the steps.
                fed.store(journal.is_fed(), Ordering::Release);
                batch.last.retain(|(core, _)| !fenced.contains(core));
                fenced.into_iter().for_each(|core| told(core, Err(Lost::Fenced)));
            }
            batch.steps.clear();
            batch.bytes = 0;
            batch.last.drain(..).for_each(|(core, number)| told(core, Ok(number)));
            batch.beside.drain(..).for_each(|written| written());
            match batch.moved.take() {
                Some(Move::Adopt(core, partitions, adopted)) => {
                    adopted(logs.adopt(journal.as_mut(), core, &partitions)?);
                    fed.store(journal.is_fed(), Ordering::Release);
                }
                Some(Move::Release(core, released)) => {
                    logs.release(journal.as_mut(), core)?;
                    released();
                }
                None => {}
            }
            if !batch.feed.is_empty() {
                feed(journal.as_mut(), fed)?;
                batch.feed.drain(..).for_each(|fed| fed());
            }
            Ok(())
        };
        self.act(write).map(|(access, ())| access)
    }

    /// Makes the tables of the journal have all steps.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(super) fn feed(self) -> Result<Self, JournalError> {
        self.act(|access| feed(access.journal.as_mut(), &access.fed)).map(|(access, ())| access)
    }

    /// Deletes some ended rows; returns whether there may be more.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(super) fn tidy(self, now: Time) -> Result<(Self, bool), JournalError> {
        self.act(|access| access.journal.tidy(now))
    }

    /// Closes the journal.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(super) fn close(self) -> Result<(), JournalError> {
        let close = |access: &mut Self| {
            access.journal.close()?;
            access.fed.store(true, Ordering::Release);
            Ok(())
        };
        self.act(close).map(drop)
    }

    fn act<T>(mut self, act: impl FnOnce(&mut Self) -> Result<T, JournalError>) -> Result<(Self, T), JournalError> {
        let message = "the thread that writes it has panicked: see above";
        let panicked = |_| Err(JournalError::new(JournalErrorKind::Panicked, message));
        match catch_panic(|| act(&mut self)).unwrap_or_else(panicked) {
            Ok(done) => Ok((self, done)),
            Err(error) => {
                for core in self.founders {
                    (self.told)(core, Err(Lost::Failed(error.clone())));
                }
                Err(error)
            }
        }
    }
}

/// Makes the tables of a journal have all steps, and notes that they do.
fn feed(journal: &mut dyn Journal, fed: &AtomicBool) -> Result<(), JournalError> {
    journal.feed()?;
    fed.store(journal.is_fed(), Ordering::Release);
    Ok(())
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.moved.is_none() && self.feed.is_empty()
    }

    fn take(&mut self, order: Order, logs: &Logs) {
        match order {
            Order::Write { core, number, step } => {
                if !logs.put(&mut self.steps, Some(core), step) {
                    return;
                }
                match self.last.iter_mut().find(|(of, _)| *of == core) {
                    Some((_, last)) => *last = number,
                    None => self.last.push((core, number)),
                }
            }
            Order::Beside { step, written } => {
                logs.put(&mut self.steps, None, step);
                self.beside.push(written);
            }
            Order::Feed { fed } => self.feed.push(fed),
            Order::Adopt { core, partitions, adopted } => self.moved = Some(Move::Adopt(core, partitions, adopted)),
            Order::Release { core, released } => self.moved = Some(Move::Release(core, released)),
        }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("shared", &self.shared).finish_non_exhaustive()
    }
}
