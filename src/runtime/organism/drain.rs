//! The orderly end of an organism.

use std::time::Duration;

use systole_core::core::{Counts, Input};
use systole_core::vocab::Time;
use systole_store::clock::Clock;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::runtime::shard::command::Command;
use crate::runtime::shard::shared::Shared;

/// Time limit for a shard to obey; only a listener that blocks it takes longer.
const GRACE: Duration = Duration::from_secs(1);

/// Result of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Drained {
    /// True if all work was done before the deadline.
    pub idle: bool,
    /// True if all threads have ended; a listener that blocks one for ever prevents it.
    pub ended: bool,
    /// The ends of all messages.
    pub counts: Counts,
}

/// A reader of answers that takes its time, such as one that prints them. A drain waits for all readers before it ends the shards.
#[derive(Debug)]
pub struct Reader(watch::Receiver<bool>);

impl Reader {
    pub(super) fn new(readers: &watch::Sender<bool>) -> Self {
        Self(readers.subscribe())
    }

    /// Waits until a drain has let the work end, or its deadline has passed: what the reader still reads should be there by now.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn last_answers(&self) {
        let mut readers = self.0.clone();
        if readers.wait_for(|at_end| *at_end).await.is_err() {
            // The organism is gone, and no drain comes.
            std::future::pending::<()>().await;
        }
    }
}

/// Drains an organism whose entrances are closed: lets the work end, cancels the rest after the deadline, and only then
/// ends the shards.
///
/// An earlier deadline than the present one replaces it. `steady` is the clock of deadlines.
pub(crate) async fn drain(
    shared: &Shared,
    steady: &Clock,
    mut deadline: watch::Receiver<Time>,
    readers: &watch::Sender<bool>,
    mut ended: mpsc::Receiver<()>,
) -> Drained {
    tell_all(shared, || Command::Core(Input::Drain));
    let idle = loop {
        let left = steady.until(*deadline.borrow_and_update());
        tokio::select! {
            biased;
            () = shared.links.rest() => break true,
            () = tokio::time::sleep(left) => break false,
            Ok(()) = deadline.changed() => {}
        }
    };
    // Nothing is written after the stop: an answer that is read later would come again with the next start.
    readers.send_replace(true);
    readers.closed().await;
    shared.given.read_all();
    tell_all(shared, || Command::Core(Input::Stop));
    // Dropped handlers report their end; a blocked thread can't.
    let _ = timeout(GRACE, shared.links.busy().wait()).await;
    let counts = timeout(GRACE, shared.counts()).await.unwrap_or_default();
    tell_all(shared, || Command::Quit);
    let ended = timeout(GRACE, ended.recv()).await.is_ok();
    shared.links.pending_acks.fail_all();
    Drained { idle, ended, counts }
}

fn tell_all(shared: &Shared, command: impl Fn() -> Command) {
    for shard in shared.links.shards() {
        shared.links.send(shard, command());
    }
}
