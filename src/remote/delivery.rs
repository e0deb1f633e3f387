//! The interface of deliveries, by which messages come to an agent.

use std::time::Duration;

use super::BoxFuture;
use super::error::RemoteError;
use super::handler::Handler;

/// A way in which messages come to an agent. [`PollDelivery`](super::PollDelivery),
/// [`StreamDelivery`](super::StreamDelivery), [`LeaseDelivery`](super::LeaseDelivery) and
/// [`PushDelivery`](super::PushDelivery) are four; the documentation of [`remote`](super) shows another one.
pub trait InboundDelivery: Send {
    /// Handles one batch, in order: each message is handled, and its outcome reported, before the next one. Returns the
    /// number of handled messages.
    ///
    /// # Errors
    /// [`RemoteError`]: a later call does what was not done. A handler that fails is no error of the delivery.
    ///
    /// # Cancel safety
    /// Dropping the future loses no message. A message whose handler ran then comes again.
    fn run_once<'a>(&'a mut self, handler: &'a dyn Handler) -> BoxFuture<'a, Result<usize, RemoteError>>;

    /// Ends the delivery: connections are closed, no more messages come in.
    fn stop(&mut self) -> BoxFuture<'_, ()>;

    /// Wait before the next batch, as things stand now.
    fn interval(&self) -> Duration;
}
