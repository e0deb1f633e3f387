use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use systole_core::vocab::{MessageId, Time};
use tokio::sync::watch;

use super::error::{OutboxError, Outcome};

/// How far a delivery has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It waits for its turn, for a free attempt, or for the circuit of its target.
    Waiting,
    /// An attempt runs.
    Attempting {
        /// Its number, from 1.
        attempt: u32,
    },
    /// An attempt has failed; the next one comes.
    BackingOff {
        /// Attempts so far.
        attempts: u32,
        /// When the next one begins, at the earliest.
        until: Time,
        /// What was said when the last one failed.
        error: String,
    },
    /// It has ended.
    Settled(Outcome),
}

/// A delivery that was taken. Dropping it changes nothing about the delivery.
#[derive(Debug, Clone)]
pub struct Handle {
    id: MessageId,
    state: watch::Receiver<State>,
}

impl Handle {
    /// One of a delivery that has ended.
    pub(super) fn settled(id: MessageId, outcome: Outcome) -> Self {
        Self { id, state: watch::channel(State::Settled(outcome)).1 }
    }

    /// The delivery.
    pub fn id(&self) -> MessageId {
        self.id
    }

    /// How far it has come.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Waits until it has come to a state.
    ///
    /// # Errors
    /// [`OutboxError::Closed`] if nothing is sent any more before that; the next start goes on.
    ///
    /// # Cancel safety
    /// It can be dropped and called again.
    pub async fn wait_for(&mut self, is: impl FnMut(&State) -> bool) -> Result<State, OutboxError> {
        self.state.wait_for(is).await.map(|state| state.clone()).map_err(|_| OutboxError::Closed)
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// [`OutboxError::Closed`] if nothing is sent any more before that; the next start goes on.
    ///
    /// # Cancel safety
    /// It can be dropped and called again.
    pub async fn outcome(&mut self) -> Result<Outcome, OutboxError> {
        match self.wait_for(|state| matches!(state, State::Settled(_))).await? {
            State::Settled(outcome) => Ok(outcome),
            State::Waiting | State::Attempting { .. } | State::BackingOff { .. } => Err(OutboxError::Closed),
        }
    }
}

/// The deliveries of this process that somebody may have a handle of.
#[derive(Debug, Default)]
pub(super) struct Handles(Mutex<HashMap<MessageId, watch::Sender<State>>>);

impl Handles {
    fn lock(&self) -> MutexGuard<'_, HashMap<MessageId, watch::Sender<State>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle of a delivery that is open, or about to be.
    pub(super) fn of(&self, id: MessageId) -> Handle {
        let mut handles = self.lock();
        let sender = handles.entry(id).or_insert_with(|| watch::Sender::new(State::Waiting));
        Handle { id, state: sender.subscribe() }
    }

    /// Forgets a delivery that was not taken, unless another has a handle of it.
    pub(super) fn release(&self, handle: Handle) {
        let mut handles = self.lock();
        let id = handle.id;
        drop(handle);
        if handles.get(&id).is_some_and(|sender| sender.receiver_count() == 0) {
            handles.remove(&id);
        }
    }

    /// Whether somebody has a handle of it.
    pub(super) fn has(&self, id: MessageId) -> bool {
        self.lock().get(&id).is_some_and(|sender| sender.receiver_count() > 0)
    }

    /// Says how far a delivery has come.
    pub(super) fn tell(&self, id: MessageId, state: State) {
        let mut handles = self.lock();
        let over = matches!(state, State::Settled(_));
        if let Some(sender) = handles.get(&id) {
            sender.send_replace(state);
        }
        if over {
            handles.remove(&id);
        }
    }

    /// Lets all who wait know that nothing comes any more.
    pub(super) fn close(&self) {
        self.lock().clear();
    }
}
