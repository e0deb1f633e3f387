//! The engine that sends the deliveries of a store, to each target one after the other, until each has ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use systole_core::vocab::{MessageId, Name};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::client::Client;
use super::error::OutboundError;
use super::options::DeliveryOptions;
use super::store::DeliveryStore;
use super::target_queue::{Shared, drain};
use super::target_queues::TargetQueues;
use systole_store::clock::Clock;

/// Sender of the deliveries of a store. When it is dropped, all sending stops at once, as in a crash.
#[derive(Debug)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
    /// The tasks of the targets; they end when this is dropped.
    drains: Mutex<JoinSet<()>>,
}

impl Engine {
    /// Starts a sender for a store, on the current tokio runtime.
    ///
    /// # Errors
    /// [`OutboundError`] if TLS can't be set up.
    pub(crate) fn start(
        store: Arc<dyn DeliveryStore>,
        options: DeliveryOptions,
        clock: Clock,
    ) -> Result<Self, OutboundError> {
        let shared = Arc::new(Shared {
            client: Client::new(&options)?,
            store,
            steady: clock.steady(),
            clock,
            queues: TargetQueues::default(),
            closing: watch::Sender::new(false),
            options,
        });
        Ok(Self { shared, drains: Mutex::default() })
    }

    /// The state of the circuit to a target.
    #[cfg(test)]
    pub(super) fn circuit(&self, target: &Name) -> super::circuit::CircuitState {
        let shared = &self.shared;
        shared.queues.circuit(target, shared.options.circuit, shared.steady.now())
    }

    /// Starts to send the deliveries that wait for a target.
    pub(crate) fn wake(&self, target: Name) {
        let shared = &self.shared;
        if shared.queues.wake(&target, shared.options.circuit, shared.steady.now()) {
            let mut drains = self.drains.lock().unwrap_or_else(PoisonError::into_inner);
            while drains.try_join_next().is_some() {}
            drains.spawn(drain(shared.clone(), target));
        }
    }

    /// Cancels a delivery whose message has ended.
    pub(crate) fn stop(&self, target: &Name, id: MessageId) {
        self.shared.queues.stop(target, id);
    }

    /// Ends a delivery after the attempt in flight.
    pub(crate) fn finish(&self, target: &Name, id: MessageId) {
        self.shared.queues.finish(target, id);
    }

    /// Sends to the new endpoint of a target: its circuit closes, and its delivery is read anew.
    pub(crate) fn move_target(&self, target: &Name) {
        self.shared.queues.answered(target);
        self.shared.queues.restart(target);
    }

    /// Starts no further attempt, and waits at most `grace` for those in flight. Deliveries that wait go on at the next
    /// start.
    pub(crate) async fn close(&self, grace: Duration) {
        self.shared.closing.send_replace(true);
        let mut drains = std::mem::take(&mut *self.drains.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = async { while drains.join_next().await.is_some() {} };
        // An attempt that takes longer counts as failed.
        let _ = tokio::time::timeout(grace, ended).await;
        drains.shutdown().await;
    }
}
