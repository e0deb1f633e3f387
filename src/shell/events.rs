use systole_core::core::Event;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// A subscription to what happens in an organism: the operator's view, thread paths included.
#[derive(Debug)]
pub struct Events(broadcast::Receiver<Event>);

/// What a subscriber sees.
#[derive(Debug, Clone)]
pub enum Observed {
    /// Something happened.
    Event(Event),
    /// So many events are lost, because the subscriber was too slow.
    Missed(u64),
}

impl Events {
    pub(super) fn new(receiver: broadcast::Receiver<Event>) -> Self {
        Self(receiver)
    }

    /// The next event; `None` when the organism has ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Observed> {
        match self.0.recv().await {
            Ok(event) => Some(Observed::Event(event)),
            Err(RecvError::Lagged(missed)) => Some(Observed::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }

    /// The next event, if it is there.
    pub fn try_next(&mut self) -> Option<Observed> {
        match self.0.try_recv() {
            Ok(event) => Some(Observed::Event(event)),
            Err(TryRecvError::Lagged(missed)) => Some(Observed::Missed(missed)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}
