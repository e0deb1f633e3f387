//! Limits of restarts, and the rest of a listener behind them.

use std::collections::VecDeque;
use std::time::Duration;

use systole_core::core::{Failure, HandlerOutcome};
use systole_core::vocab::{Fault, FaultCode, Time};

/// The most restarts of a listener within [`WINDOW`].
pub(super) const RESTARTS: usize = 5;
/// The time in which restarts are counted.
pub(super) const WINDOW: Duration = Duration::from_secs(60);
/// The time for which a listener that failed too often rests: its messages wait meanwhile.
pub(super) const REST: Duration = Duration::from_secs(60);

/// Counts the restarts of one listener.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    recent: VecDeque<Time>,
}

/// Consequence of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The factory makes the listener again.
    Restart,
    /// The listener failed too often and rests for [`REST`].
    Rest,
}

impl Restarts {
    /// Counts a failure, and decides on a restart.
    pub(super) fn failed(&mut self, now: Time) -> Verdict {
        while self.recent.front().is_some_and(|&then| now.since(then) >= WINDOW) {
            self.recent.pop_front();
        }
        if self.recent.len() == RESTARTS {
            self.recent.clear();
            return Verdict::Rest;
        }
        self.recent.push_back(now);
        Verdict::Restart
    }
}

/// The outcome of a handler whose listener could not be made before its rest, nor behind it.
pub(super) fn given_up() -> HandlerOutcome {
    let message = "a listener can't be made: its factory panicked each time, before a rest and behind it";
    let fault = Fault { retryable: true, ..Fault::new(FaultCode::ListenerFailed, message) };
    HandlerOutcome::Failed(Failure::passing(fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::default().after(Duration::from_secs(seconds))
    }

    #[test]
    fn the_sixth_failure_within_a_minute_lets_it_rest() {
        let mut restarts = Restarts::default();
        for second in 0..5 {
            assert_eq!(restarts.failed(at(second)), Verdict::Restart, "failure {second}");
        }
        assert_eq!(restarts.failed(at(59)), Verdict::Rest);
        assert_eq!(restarts.failed(at(120)), Verdict::Restart, "after the rest it starts afresh");
    }

    #[test]
    fn failures_that_lie_apart_are_forgotten() {
        let mut restarts = Restarts::default();
        for second in (0..200).step_by(13) {
            assert_eq!(restarts.failed(at(second)), Verdict::Restart, "failure at {second} s");
        }
    }
}
