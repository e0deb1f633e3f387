//! The restarts of a listener: how many failures in a row are free, and how long it rests behind each further one. Actors,
//! functions and the processes of workers have the same policy.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use systole_core::core::{Failure, HandlerOutcome};
use systole_core::vocab::{Fault, FaultCode, Name, Time};

/// Failures in a row behind which a listener rests at the next one.
pub(crate) const FREE: u32 = 5;
/// The longest rest.
pub(crate) const LONGEST_REST: Duration = Duration::from_secs(60);

/// The n-th rest in a row, from 1: each is twice as long as the one before.
pub(crate) fn rest(n: u32) -> Duration {
    const FIRST: Duration = Duration::from_secs(1);
    FIRST.saturating_mul(1 << n.saturating_sub(1).min(16)).min(LONGEST_REST)
}

/// The failures of a listener since it last worked: since a message had an outcome that was no failure of the listener.
#[derive(Debug, Default)]
pub(crate) struct Restarts(u32);

impl Restarts {
    /// Counts a failure. The rest behind it, or `None` if the listener starts again at once.
    pub(crate) fn failed(&mut self) -> Option<Duration> {
        self.0 = self.0.saturating_add(1);
        self.0.checked_sub(FREE).filter(|&n| n > 0).map(rest)
    }

    /// Forgets the failures.
    pub(crate) fn worked(&mut self) {
        self.0 = 0;
    }
}

/// The outcome of a handler whose listener could not be made before its longest rest, nor behind it.
pub(super) fn given_up() -> HandlerOutcome {
    let message = "a listener can't be made: its factory panicked each time, before its longest rest and behind it";
    let fault = Fault { retryable: true, ..Fault::new(FaultCode::ListenerFailed, message) };
    HandlerOutcome::Failed(Failure::passing(fault))
}

/// A rest of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rest {
    /// The begin.
    pub(crate) since: Time,
    /// The end.
    pub(crate) until: Time,
    /// The failure that it follows.
    pub(crate) why: Arc<str>,
}

/// The latest rest of each listener that had one.
#[derive(Clone, Default)]
pub(crate) struct Rests(Arc<Mutex<BTreeMap<Name, Rest>>>);

impl Rests {
    /// Notes a rest.
    pub(crate) fn begin(&self, listener: &Name, rest: Rest) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(listener.clone(), rest);
    }

    /// Returns the rest of a listener that has not ended.
    pub(crate) fn of(&self, listener: &Name, now: Time) -> Option<Rest> {
        let rests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rests.get(listener).filter(|rest| rest.until > now).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_let_a_listener_rest_longer_each_time_until_it_works() {
        let mut restarts = Restarts::default();
        for _ in 0..2 {
            assert!((0..FREE).all(|_| restarts.failed().is_none()), "these are free");
            for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
                assert_eq!(restarts.failed(), Some(Duration::from_secs(seconds)));
            }
            restarts.worked();
        }
    }
}
