use std::time::Duration;

use super::BoxFuture;
use super::error::RemoteError;
use super::handler::Handler;

/// A way in which messages come to an agent. [`PollDelivery`](super::PollDelivery),
/// [`StreamDelivery`](super::StreamDelivery), [`LeaseDelivery`](super::LeaseDelivery) and
/// [`PushDelivery`](super::PushDelivery) are four; the documentation of [`remote`](super) has one of somebody else's.
pub trait InboundDelivery: Send {
    /// Takes one batch, in order: each message is handled, and its outcome said, before the next one. Gives back how
    /// many were handled.
    ///
    /// # Errors
    /// [`RemoteError`]: what was not done is done by a later call. A handler that fails is no error of the delivery.
    ///
    /// # Cancel safety
    /// Dropping the future loses no message. One whose handler ran then comes again.
    fn run_once<'a>(&'a mut self, handler: &'a dyn Handler) -> BoxFuture<'a, Result<usize, RemoteError>>;

    /// Ends it: connections are closed, nothing more comes in.
    fn stop(&mut self) -> BoxFuture<'_, ()>;

    /// How long to wait before the next batch, as things stand now.
    fn interval(&self) -> Duration;
}
