//! The time for which a node may work: the lease that it has, as all threads of its process see it.
//!
//! [`systole_core::lease`] decides when it begins and ends. A [`Tenure`] is read where work begins, and where an append waits
//! for the server, so that nothing depends on one thread being on time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use uuid::Uuid;

use crate::clock::steady;

/// The longest sleep between two looks at the steady clock, which goes on while the machine sleeps; timers do not.
const LOOK: Duration = Duration::from_secs(1);

/// A lease of this process. Clones are the same lease.
#[derive(Debug, Clone)]
pub struct Tenure(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    process: Uuid,
    term: i64,
    /// The end by the steady clock of the process; zero once it has ended early.
    until: watch::Sender<Duration>,
}

impl Tenure {
    /// The lease of a process, by the random id of that, of that term and until that time of [`steady`].
    pub fn new(process: Uuid, term: i64, until: Duration) -> Self {
        Self(Arc::new(Inner { process, term, until: watch::Sender::new(until) }))
    }

    /// The random id of the process.
    pub fn process(&self) -> Uuid {
        self.0.process
    }

    /// The number of the lease: each taking has one of its own.
    pub fn term(&self) -> i64 {
        self.0.term
    }

    /// Sets a later end. One that has ended stays so.
    pub fn extend(&self, until: Duration) {
        self.0.until.send_if_modified(|end| {
            let goes_on = steady() < *end;
            if goes_on {
                *end = until.max(*end);
            }
            goes_on
        });
    }

    /// Ends it at once.
    pub fn end(&self) {
        self.0.until.send_replace(Duration::ZERO);
    }

    /// The time that is left.
    pub fn left(&self) -> Duration {
        self.0.until.borrow().saturating_sub(steady())
    }

    /// Returns whether work may begin.
    pub fn holds(&self) -> bool {
        !self.left().is_zero()
    }

    /// Waits for the end.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn ended(&self) {
        let mut changes = self.0.until.subscribe();
        loop {
            let left = changes.borrow_and_update().saturating_sub(steady());
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(left.min(LOOK)) => {}
                // The sender is this value.
                _ = changes.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_has_ended_goes_on_by_no_means() {
        let tenure = Tenure::new(Uuid::nil(), 1, steady() + Duration::from_secs(60));
        assert!(tenure.holds());
        tenure.end();
        tenure.extend(steady() + Duration::from_secs(60));
        assert!(!tenure.holds());
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(tenure.ended());
        let lapsed = Tenure::new(Uuid::nil(), 2, steady());
        lapsed.extend(steady() + Duration::from_secs(60));
        assert!(!lapsed.holds(), "nor one whose time is over");
    }

    #[test]
    fn a_wait_sees_an_end_that_comes_early() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let tenure = Tenure::new(Uuid::nil(), 1, steady() + Duration::from_secs(3600));
        runtime.block_on(async {
            let waiting = tenure.clone();
            let waiting = tokio::spawn(async move { waiting.ended().await });
            tokio::task::yield_now().await;
            tenure.extend(steady() + Duration::from_secs(7200));
            tenure.end();
            waiting.await.unwrap();
        });
    }
}
