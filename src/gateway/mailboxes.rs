//! The mailboxes of remote listeners: what the pump waits for, and what readers wait for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};

use super::push::Order;
use super::store::{Caps, Settlement, Store, StoreError, too_often};
use crate::shell::clock::Clock;
use crate::shell::config::Mode;
use crate::vocab::{MessageId, Name};

/// The mailboxes of all remote listeners of an organism, for any thread.
#[derive(Clone)]
pub struct Mailboxes(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Clock,
    caps: Caps,
    boxes: HashMap<Name, Mailbox>,
    /// Handlers that wait for the end of a message.
    waiting: Mutex<HashMap<MessageId, oneshot::Sender<Settlement>>>,
    /// Somebody leased something: the end of that may be the next to look after.
    leased: Notify,
    /// What is to be pushed: no more than handlers wait for, and what was redriven.
    orders: mpsc::UnboundedSender<Order>,
    /// Until somebody sees to that.
    ordered: Mutex<Option<mpsc::UnboundedReceiver<Order>>>,
    /// The organism ends: handlers that are dropped wait for its next start.
    stopping: AtomicBool,
}

/// One of them.
struct Mailbox {
    mode: Mode,
    /// Something can be read, or leased.
    bell: Notify,
    /// Bytes that wait.
    bytes: AtomicUsize,
}

impl Mailboxes {
    /// Mailboxes for the listeners of these names.
    pub fn new(store: Store, listeners: impl IntoIterator<Item = (Name, Mode)>) -> Self {
        let mailbox = |mode| Mailbox { mode, bell: Notify::new(), bytes: AtomicUsize::new(0) };
        let (orders, ordered) = mpsc::unbounded_channel();
        Self(Arc::new(Inner {
            store,
            clock: Clock::real(),
            caps: Caps::default(),
            boxes: listeners.into_iter().map(|(name, mode)| (name, mailbox(mode))).collect(),
            waiting: Mutex::default(),
            leased: Notify::new(),
            orders,
            ordered: Mutex::new(Some(ordered)),
            stopping: AtomicBool::new(false),
        }))
    }

    /// The organism ends: whoever's handler is dropped from now on is handled again by its next start.
    pub fn stop(&self) {
        self.0.stopping.store(true, Ordering::Release);
        // Whoever waits for something to come is told that nothing does.
        self.0.boxes.values().for_each(|mailbox| mailbox.bell.notify_waiters());
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Acquire)
    }

    pub(super) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(super) fn caps(&self) -> &Caps {
        &self.0.caps
    }

    /// How a mailbox is read; `None` if there is none of that name.
    pub(super) fn mode(&self, name: &Name) -> Option<&Mode> {
        self.0.boxes.get(name).map(|mailbox| &mailbox.mode)
    }

    /// Whether the messages of a mailbox are pushed.
    pub(super) fn is_pushed(&self, name: &Name) -> bool {
        matches!(self.mode(name), Some(Mode::Push(_)))
    }

    /// All mailboxes, and how they are read.
    pub(super) fn modes(&self) -> impl Iterator<Item = (&Name, &Mode)> {
        self.0.boxes.iter().map(|(name, mailbox)| (name, &mailbox.mode))
    }

    /// Lets be leased what was pushed by an earlier run, where nothing is pushed any more.
    pub(super) async fn pull(&self) -> Result<(), StoreError> {
        for (name, mode) in self.modes() {
            if !matches!(mode, Mode::Push(_)) {
                self.store().pull(name.clone(), self.caps().deliveries).await?;
            }
        }
        Ok(())
    }

    /// Says what is to be done about a message that is pushed, if those of that mailbox are.
    pub(super) fn order(&self, name: &Name, order: Order) {
        if self.is_pushed(name) {
            // Once nobody sees to it any more, the next start does.
            let _ = self.0.orders.send(order);
        }
    }

    /// What is to be pushed, for the one who sees to it.
    pub(super) fn ordered(&self) -> Option<mpsc::UnboundedReceiver<Order>> {
        self.0.ordered.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Says that something can be read, or leased.
    pub(super) fn ring(&self, name: &Name) {
        if let Some(mailbox) = self.0.boxes.get(name) {
            mailbox.bell.notify_waiters();
        }
    }

    /// What rings when something can be read, or leased.
    pub(super) fn bell(&self, name: &Name) -> Option<&Notify> {
        self.0.boxes.get(name).map(|mailbox| &mailbox.bell)
    }

    /// What rings when something was leased.
    pub(super) fn leased(&self) -> &Notify {
        &self.0.leased
    }

    /// Waits for the end of a message, from now on.
    pub(super) fn await_end(&self, id: MessageId) -> oneshot::Receiver<Settlement> {
        let (tell, told) = oneshot::channel();
        self.waiting().insert(id, tell);
        told
    }

    /// Nobody waits for the end of a message any more.
    pub(super) fn forget(&self, id: MessageId) {
        self.waiting().remove(&id);
    }

    /// A message has ended, durably.
    pub(super) fn end(&self, id: MessageId, with: Settlement) {
        if let Some(tell) = self.waiting().remove(&id) {
            // Its handler may have been dropped.
            let _ = tell.send(with);
        }
    }

    /// Takes room for bytes that wait; `false` if there is none.
    pub(super) fn take(&self, name: &Name, bytes: usize) -> bool {
        let Some(mailbox) = self.0.boxes.get(name) else { return false };
        let cap = self.0.caps.mailbox_bytes;
        let add = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= cap);
        mailbox.bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok()
    }

    /// Gives it back.
    pub(super) fn give_back(&self, name: &Name, bytes: usize) {
        if let Some(mailbox) = self.0.boxes.get(name) {
            mailbox.bytes.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    /// Ends what was delivered as often as it may be once its last lease has ended; runs until the gateway ends.
    pub(super) async fn lapse(self) {
        loop {
            let deliveries = self.caps().deliveries;
            let now = self.clock().now();
            let next = match self.store().lapse(now, deliveries).await {
                Ok((lapsed, next)) => {
                    lapsed.into_iter().for_each(|id| self.end(id, Settlement::Fail(too_often(deliveries))));
                    next
                }
                Err(error) => {
                    tracing::error!(%error, "leases that have ended can't be looked after");
                    Some(now.after(self.caps().visibility))
                }
            };
            let until = next.map_or(Duration::MAX, |next| self.clock().until(next));
            // Something was leased: its end may come first.
            let _ = tokio::time::timeout(until, self.leased().notified()).await;
        }
    }

    /// Messages that wait in all mailboxes.
    pub(super) fn waiting_messages(&self) -> usize {
        self.waiting().len()
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<MessageId, oneshot::Sender<Settlement>>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Mailboxes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailboxes").field("names", &self.0.boxes.keys()).finish_non_exhaustive()
    }
}
