//! The circuit to a target: after some transport failures in a row it opens, and nothing is sent until it has cooled
//! down; then one attempt decides (M. Nygard, Release It!, 2nd ed., section 5.2).

use std::time::Duration;

use systole_core::vocab::Time;

/// Policy of circuits: when they open, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CircuitPolicy {
    /// Transport failures in a row that open it; 0 never opens it.
    pub(crate) failures: u32,
    /// Time for which it stays open.
    pub(crate) cool_down: Duration,
}

impl Default for CircuitPolicy {
    /// 5 failures, 30 s.
    fn default() -> Self {
        Self { failures: 5, cool_down: Duration::from_secs(30) }
    }
}

/// The state of a circuit at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CircuitState {
    /// Attempts may begin.
    Closed,
    /// No attempt may begin before this time.
    Open(Time),
    /// The next attempt decides.
    HalfOpen,
}

/// The circuit to one target, which sends one delivery at a time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Circuit {
    failures: u32,
    opened: Option<Time>,
}

impl Circuit {
    pub(super) fn state(&self, policy: CircuitPolicy, now: Time) -> CircuitState {
        match self.opened.map(|opened| opened.after(policy.cool_down)) {
            None => CircuitState::Closed,
            Some(until) if now < until => CircuitState::Open(until),
            Some(_) => CircuitState::HalfOpen,
        }
    }

    /// Notes an answer of the target, of any status.
    pub(super) fn answered(&mut self) {
        *self = Self::default();
    }

    /// Notes a transport failure. Returns true if that opens the circuit.
    pub(super) fn failed(&mut self, policy: CircuitPolicy, now: Time) -> bool {
        self.failures = self.failures.saturating_add(1);
        let opens = policy.failures > 0 && self.failures >= policy.failures;
        if opens {
            self.opened = Some(now);
        }
        opens
    }

    /// Checks that there was no failure since the last answer.
    pub(super) fn is_untouched(&self) -> bool {
        self.failures == 0
    }

    /// Checks that the circuit can be forgotten: an open one can't.
    pub(super) fn is_forgettable(&self, policy: CircuitPolicy, now: Time) -> bool {
        !matches!(self.state(policy, now), CircuitState::Open(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: CircuitPolicy = CircuitPolicy { failures: 2, cool_down: Duration::from_secs(30) };

    fn at(seconds: u64) -> Time {
        Time::default().after(Duration::from_secs(seconds))
    }

    #[test]
    fn it_opens_cools_down_and_one_attempt_decides() {
        let mut circuit = Circuit::default();
        assert!(!circuit.failed(POLICY, at(1)));
        assert_eq!(circuit.state(POLICY, at(1)), CircuitState::Closed);
        assert!(circuit.failed(POLICY, at(2)));
        assert_eq!(circuit.state(POLICY, at(31)), CircuitState::Open(at(32)));
        assert_eq!(circuit.state(POLICY, at(32)), CircuitState::HalfOpen);
        assert!(circuit.failed(POLICY, at(40)), "one failure opens it again");
        assert_eq!(circuit.state(POLICY, at(69)), CircuitState::Open(at(70)));
        circuit.answered();
        assert_eq!(circuit.state(POLICY, at(69)), CircuitState::Closed);
        assert!(!circuit.failed(POLICY, at(71)), "it counts from the start again");
    }

    #[test]
    fn without_a_number_it_never_opens() {
        let policy = CircuitPolicy { failures: 0, ..POLICY };
        let mut circuit = Circuit::default();
        assert!((0..100).all(|_| !circuit.failed(policy, at(1))));
        assert_eq!(circuit.state(policy, at(1)), CircuitState::Closed);
    }
}
