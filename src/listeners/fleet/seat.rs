//! The place of a message: its process, or the wait for one.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use systole_core::core::Failure;
use tokio::sync::Notify;

use super::pool::{Lost, Ticket};
use super::{Fleet, Kind, Member, ProcessEnd, failed};
use crate::runtime::RunContext;
use systole_store::clock::Clock;

/// Time that a process has to come up before it counts for the timeout of a message, however short that is.
const START: Duration = Duration::from_secs(10);

/// The place of a message. Dropping it withdraws the message.
pub(crate) struct Seat<K: Kind> {
    fleet: Rc<Fleet<K>>,
    ticket: Ticket,
    given: Rc<Given<K::Member>>,
    awaits: Cell<bool>,
}

/// The process that a message got, and the effect of its end.
pub(super) struct Given<M> {
    connection: RefCell<Option<Rc<M>>>,
    lost: Cell<Option<Lost>>,
    changed: Notify,
}

impl<M> Default for Given<M> {
    fn default() -> Self {
        Self { connection: RefCell::default(), lost: Cell::default(), changed: Notify::new() }
    }
}

impl<M> Given<M> {
    /// Gives the message a process.
    pub(super) fn give(&self, connection: Rc<M>) {
        *self.connection.borrow_mut() = Some(connection);
        self.changed.notify_one();
    }

    /// Takes the process away, which has ended.
    pub(super) fn lose(&self, lost: Lost) {
        *self.connection.borrow_mut() = None;
        self.lost.set(Some(lost));
        self.changed.notify_one();
    }

    /// Lets a message that waits look again.
    pub(super) fn look(&self) {
        self.changed.notify_one();
    }
}

impl<K: Kind> Seat<K> {
    pub(super) fn new(fleet: Rc<Fleet<K>>, ticket: Ticket, given: Rc<Given<K::Member>>) -> Self {
        Self { fleet, ticket, given, awaits: Cell::new(false) }
    }

    /// Waits for a process that has come up. The time of the handler stands still while the message waits for its turn; but
    /// while its process comes up, or the listener can't start any, it waits no longer than `timeout`, [`START`] at least
    /// for a process that comes up.
    pub(crate) async fn process(
        &self,
        timeout: Option<Duration>,
        context: &RunContext,
        clock: &Clock,
    ) -> Result<Rc<K::Member>, Failure> {
        self.awaits.set(false);
        let known = self.given.connection.borrow().clone();
        if let Some(connection) = known.filter(|connection| connection.is_up()) {
            return Ok(connection);
        }
        context.thread().stall(true);
        let found = self.wait(timeout, clock).await;
        context.thread().stall(false);
        found.map_err(|(within, said)| {
            context.thread().said(said.said.as_str());
            // The log has the ends of processes already.
            if self.given.connection.borrow().is_some() {
                self.fleet.warn_unstarted(within, &said.why, clock.now());
            }
            failed(format!("no process of the listener came up within {within:?}: {}", said.why), true)
        })
    }

    /// Waits for a process. The error is the time for which none came up, and the cause.
    async fn wait(
        &self,
        timeout: Option<Duration>,
        clock: &Clock,
    ) -> Result<Rc<K::Member>, (Duration, Rc<ProcessEnd>)> {
        let asked = clock.now();
        // The time since which it has waited for a process to come up.
        let mut since = None;
        loop {
            let connection = self.given.connection.borrow().clone();
            if let Some(connection) = connection.as_ref().filter(|connection| connection.is_up()) {
                return Ok(connection.clone());
            }
            let comes_up = connection.is_some().then(|| clock.now()).or_else(|| self.fleet.fails_since());
            since = comes_up.map(|from| since.unwrap_or(from));
            let longest = timeout.map(|timeout| if connection.is_some() { timeout.max(START) } else { timeout });
            let limited = longest.zip(since);
            let left = limited.map(|(longest, since)| clock.until(since.max(asked).after(longest)));
            if let Some((longest, _)) = limited.filter(|_| left.is_some_and(|left| left.is_zero())) {
                return Err((longest, self.fleet.setback()));
            }
            let changed = async {
                match connection {
                    // The end of the process comes next, and takes it away.
                    Some(connection) if connection.has_ended() => self.given.changed.notified().await,
                    Some(connection) => connection.begun().await,
                    None => self.given.changed.notified().await,
                }
            };
            match left {
                Some(left) => drop(tokio::time::timeout(left, changed).await),
                None => changed.await,
            }
        }
    }

    /// The effect of the end of the process that the message had.
    pub(crate) fn lost(&self) -> Lost {
        self.given.lost.take().unwrap_or(Lost::Unread)
    }

    /// Notes that the process has the message.
    pub(crate) fn read(&self) {
        self.fleet.pool.borrow_mut().read(self.ticket);
    }

    /// Notes whether the message awaits answers to calls.
    pub(crate) fn awaits(&self, awaits: bool) {
        if self.awaits.replace(awaits) != awaits {
            self.fleet.pool.borrow_mut().awaits(self.ticket, awaits);
            self.fleet.drive();
        }
    }

    /// Ends the message, which has its outcome.
    pub(crate) fn answered(self) {
        self.fleet.pool.borrow_mut().answered(self.ticket);
    }
}

impl<K: Kind> Drop for Seat<K> {
    fn drop(&mut self) {
        self.fleet.leave(self.ticket);
    }
}
