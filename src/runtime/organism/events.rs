//! Subscriptions to events.

use std::sync::Arc;

use systole_core::core::Event;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// A subscription to the events of an organism: the operator's view, including thread paths.
#[derive(Debug)]
pub struct Events(broadcast::Receiver<Arc<Event>>);

/// An event, or a gap.
#[derive(Debug, Clone)]
pub enum Observed {
    /// An event.
    Event(Event),
    /// The number of events that the subscriber missed because it was too slow.
    Missed(u64),
}

impl Events {
    pub(crate) fn new(receiver: broadcast::Receiver<Arc<Event>>) -> Self {
        Self(receiver)
    }

    /// Waits for the next event; `None` when the organism has ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Observed> {
        match self.0.recv().await {
            Ok(event) => Some(Observed::Event(Arc::unwrap_or_clone(event))),
            Err(RecvError::Lagged(missed)) => Some(Observed::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }

    /// Takes the next event, if there is one.
    pub fn try_next(&mut self) -> Option<Observed> {
        match self.0.try_recv() {
            Ok(event) => Some(Observed::Event(Arc::unwrap_or_clone(event))),
            Err(TryRecvError::Lagged(missed)) => Some(Observed::Missed(missed)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}
