use std::collections::VecDeque;
use std::time::Duration;

use systole_core::vocab::Time;

/// How often a listener may be made anew.
pub(in crate::shell) const RESTARTS: usize = 5;
/// Within how long.
pub(in crate::shell) const WINDOW: Duration = Duration::from_secs(60);
/// How long it is left alone after that.
pub(in crate::shell) const COOL_DOWN: Duration = Duration::from_secs(60);

/// Counts the restarts of one listener.
#[derive(Debug, Default)]
pub(in crate::shell) struct Restarts {
    recent: VecDeque<Time>,
}

/// What follows from a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shell) enum Verdict {
    /// Make it anew.
    Restart,
    /// It failed too often: leave it alone for [`COOL_DOWN`].
    Down,
}

impl Restarts {
    /// Counts a failure.
    pub(in crate::shell) fn failed(&mut self, now: Time) -> Verdict {
        while self.recent.front().is_some_and(|&then| now.since(then) >= WINDOW) {
            self.recent.pop_front();
        }
        if self.recent.len() == RESTARTS {
            self.recent.clear();
            return Verdict::Down;
        }
        self.recent.push_back(now);
        Verdict::Restart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::default().after(Duration::from_secs(seconds))
    }

    #[test]
    fn the_sixth_failure_within_a_minute_takes_it_down() {
        let mut restarts = Restarts::default();
        for second in 0..5 {
            assert_eq!(restarts.failed(at(second)), Verdict::Restart, "failure {second}");
        }
        assert_eq!(restarts.failed(at(59)), Verdict::Down);
        assert_eq!(restarts.failed(at(120)), Verdict::Restart, "after the cool-down it starts afresh");
    }

    #[test]
    fn failures_that_lie_apart_are_forgotten() {
        let mut restarts = Restarts::default();
        for second in (0..200).step_by(13) {
            assert_eq!(restarts.failed(at(second)), Verdict::Restart, "failure at {second} s");
        }
    }
}
