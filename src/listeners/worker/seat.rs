//! The place of a message: its process, or the wait for one.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use systole_core::core::Failure;
use tokio::sync::Notify;

use super::connection::{Connection, ProcessEnd};
use super::pool::{Lost, Ticket};
use super::{WorkerListener, failed};
use crate::runtime::RunContext;
use systole_store::clock::Clock;

/// The place of a message. Dropping it withdraws the message.
pub(super) struct Seat {
    listener: Rc<WorkerListener>,
    pub(super) ticket: Ticket,
    given: Rc<Given>,
    awaits: Cell<bool>,
}

/// The process that a message got, and the effect of its end.
#[derive(Default)]
pub(super) struct Given {
    connection: RefCell<Option<Rc<Connection>>>,
    lost: Cell<Option<Lost>>,
    changed: Notify,
}

impl Given {
    /// Gives the message a process.
    pub(super) fn give(&self, connection: Rc<Connection>) {
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

impl Seat {
    pub(super) fn new(listener: Rc<WorkerListener>, ticket: Ticket, given: Rc<Given>) -> Self {
        Self { listener, ticket, given, awaits: Cell::new(false) }
    }

    /// Waits for a process that has come up. The time of the handler stands still meanwhile; but while the listener can't
    /// start any, the message waits no longer than its timeout.
    pub(super) async fn process(&self, context: &RunContext, clock: &Clock) -> Result<Rc<Connection>, Failure> {
        self.awaits.set(false);
        let known = self.given.connection.borrow().clone();
        if let Some(connection) = known.filter(|connection| connection.is_up()) {
            return Ok(connection);
        }
        context.thread().stall(true);
        let found = self.wait(context.contract().timeout, clock).await;
        context.thread().stall(false);
        found.map_err(|said| {
            context.thread().said(said.said.as_str());
            let within = context.contract().timeout.unwrap_or_default();
            failed(format!("no process of the listener came up within {within:?}: {}", said.why), true)
        })
    }

    async fn wait(&self, longest: Option<Duration>, clock: &Clock) -> Result<Rc<Connection>, Rc<ProcessEnd>> {
        let asked = clock.now();
        loop {
            let connection = self.given.connection.borrow().clone();
            if let Some(connection) = connection {
                connection.begun().await;
                if connection.is_up() {
                    return Ok(connection);
                }
                // The end of the process comes next, and takes it away.
                self.given.changed.notified().await;
                continue;
            }
            let limited = longest.zip(self.listener.fails_since());
            let until = limited.map(|(longest, since)| since.max(asked).after(longest));
            match until {
                Some(until) if until <= clock.now() => return Err(self.listener.setback()),
                Some(until) => {
                    let left = clock.until(until);
                    let _ = tokio::time::timeout(left, self.given.changed.notified()).await;
                }
                None => self.given.changed.notified().await,
            }
        }
    }

    /// The effect of the end of the process that the message had.
    pub(super) fn lost(&self) -> Lost {
        self.given.lost.take().unwrap_or(Lost::Unread)
    }

    /// Notes that the process has the message.
    pub(super) fn read(&self) {
        self.listener.pool.borrow_mut().read(self.ticket);
    }

    /// Notes whether the message awaits answers to calls.
    pub(super) fn awaits(&self, awaits: bool) {
        if self.awaits.replace(awaits) != awaits {
            self.listener.pool.borrow_mut().awaits(self.ticket, awaits);
            self.listener.drive();
        }
    }

    /// Ends the message, which has its outcome.
    pub(super) fn answered(self) {
        self.listener.pool.borrow_mut().answered(self.ticket);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.listener.leave(self.ticket);
    }
}
