//! Handles of deliveries, and their states.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use systole_core::vocab::{MessageId, Time};
use tokio::sync::watch;

use super::error::{DeliveryOutcome, OutboxError};

/// State of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The delivery waits for its turn, for a free attempt, or for the circuit of its target.
    Waiting,
    /// An attempt is in flight.
    Attempting {
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// An attempt has failed; the next one comes.
    BackingOff {
        /// Attempts so far.
        attempts: u32,
        /// The earliest begin of the next attempt.
        until: Time,
        /// The message of the last failure.
        error: String,
    },
    /// The delivery has ended.
    Settled(DeliveryOutcome),
}

/// A handle of an accepted delivery. Dropping it changes nothing about the delivery.
#[derive(Debug, Clone)]
pub struct Handle {
    id: MessageId,
    state: watch::Receiver<State>,
}

impl Handle {
    /// Makes a handle of an ended delivery.
    pub(super) fn settled(id: MessageId, outcome: DeliveryOutcome) -> Self {
        Self { id, state: watch::channel(State::Settled(outcome)).1 }
    }

    /// The delivery.
    pub fn id(&self) -> MessageId {
        self.id
    }

    /// The present state.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Waits until the delivery is in a state.
    ///
    /// # Errors
    /// [`OutboxError::Closed`] if sending stops before that; the next start goes on.
    ///
    /// # Cancel safety
    /// The future can be dropped, and the method called again.
    pub async fn wait_for(&mut self, is: impl FnMut(&State) -> bool) -> Result<State, OutboxError> {
        self.state.wait_for(is).await.map(|state| state.clone()).map_err(|_| OutboxError::Closed)
    }

    /// Waits until the delivery has ended.
    ///
    /// # Errors
    /// [`OutboxError::Closed`] if sending stops before that; the next start goes on.
    ///
    /// # Cancel safety
    /// The future can be dropped, and the method called again.
    pub async fn outcome(&mut self) -> Result<DeliveryOutcome, OutboxError> {
        match self.wait_for(|state| matches!(state, State::Settled(_))).await? {
            State::Settled(outcome) => Ok(outcome),
            State::Waiting | State::Attempting { .. } | State::BackingOff { .. } => Err(OutboxError::Closed),
        }
    }
}

/// The deliveries of this process that may have handles.
#[derive(Debug, Default)]
pub(super) struct Handles(Mutex<HashMap<MessageId, watch::Sender<State>>>);

impl Handles {
    fn lock(&self) -> MutexGuard<'_, HashMap<MessageId, watch::Sender<State>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a handle of a delivery that is open, or about to be.
    pub(super) fn of(&self, id: MessageId) -> Handle {
        let mut handles = self.lock();
        let sender = handles.entry(id).or_insert_with(|| watch::Sender::new(State::Waiting));
        Handle { id, state: sender.subscribe() }
    }

    /// Forgets a refused delivery, unless it has another handle.
    pub(super) fn release(&self, handle: Handle) {
        let mut handles = self.lock();
        let id = handle.id;
        drop(handle);
        if handles.get(&id).is_some_and(|sender| sender.receiver_count() == 0) {
            handles.remove(&id);
        }
    }

    /// Checks whether a delivery has a handle.
    pub(super) fn has(&self, id: MessageId) -> bool {
        self.lock().get(&id).is_some_and(|sender| sender.receiver_count() > 0)
    }

    /// Sets the state of a delivery.
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

    /// Ends the waits of all handles.
    pub(super) fn close(&self) {
        self.lock().clear();
    }
}
