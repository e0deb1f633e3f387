//! Bad tokens: counted, logged within bounds, and answered the later the more of them come from one address. No
//! principal is locked out: a good token never waits, wherever it comes from.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use systole_core::vocab::Time;

use crate::accept::Source;

/// Addresses that are remembered; past it the address whose last failure is the oldest is forgotten.
const ADDRESSES: usize = 4096;

/// Failures of an address that are answered at once; the delay per further failure, and the longest delay, follow.
const FREE: u32 = 3;
const STEP: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(3);

/// Time without a failure after which an address begins anew.
const MEMORY: Duration = Duration::from_secs(60);

/// Interval between two log lines of one address, and the most lines of all addresses within it.
const LOGGED: (Duration, u32) = (Duration::from_secs(1), 10);

/// Reason why a caller is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gateway) enum Reason {
    /// The request has no credentials.
    Missing,
    /// The credentials are no bearer token.
    Malformed,
    /// No principal has that token.
    Wrong,
}

impl Reason {
    pub(super) const ALL: [Self; 3] = [Self::Missing, Self::Malformed, Self::Wrong];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::Wrong => "wrong",
        }
    }
}

/// The failures of all addresses.
#[derive(Debug, Default)]
pub(super) struct Failures {
    counts: [AtomicU64; Reason::ALL.len()],
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    addresses: HashMap<Source, Address>,
    /// Begin of the interval in which lines are counted, and their number.
    lines: (Time, u32),
    /// Failures without a line, of addresses that were forgotten or past the most lines.
    untold: u64,
}

#[derive(Debug, Default)]
struct Address {
    failures: u32,
    last: Time,
    logged: Option<Time>,
    untold: u64,
}

impl Failures {
    /// Counts a failure.
    pub(super) fn count(&self, reason: Reason) {
        self.counts[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The number of failures with this reason.
    pub(super) fn counted(&self, reason: Reason) -> u64 {
        self.counts[reason as usize].load(Ordering::Relaxed)
    }

    /// Counts a bad token of an address; returns the delay of its answer.
    pub(super) fn fail(&self, source: Source, now: Time) -> Duration {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.forget(source);
        let address = state.addresses.entry(source).or_default();
        if now.since(address.last) >= MEMORY {
            address.failures = 0;
        }
        address.failures = address.failures.saturating_add(1);
        address.last = now;
        let failures = address.failures;
        if let Some((told, others)) = state.line(source, now) {
            tracing::warn!(address = %source, failures = told, others, "tokens are refused");
        }
        STEP.saturating_mul(failures.saturating_sub(FREE)).min(MOST)
    }
}

impl State {
    /// Makes room for one more address.
    fn forget(&mut self, source: Source) {
        if self.addresses.len() < ADDRESSES || self.addresses.contains_key(&source) {
            return;
        }
        let oldest = self.addresses.iter().min_by_key(|(_, address)| address.last).map(|(source, _)| *source);
        if let Some(address) = oldest.and_then(|oldest| self.addresses.remove(&oldest)) {
            self.untold += address.untold;
        }
    }

    /// Decides whether to log a failure of an address: returns how many of it came since its last line, and how many of
    /// others had none.
    fn line(&mut self, source: Source, now: Time) -> Option<(u64, u64)> {
        if now.since(self.lines.0) >= LOGGED.0 {
            self.lines = (now, 0);
        }
        let address = self.addresses.get_mut(&source)?;
        address.untold += 1;
        let due = address.logged.is_none_or(|logged| now.since(logged) >= LOGGED.0);
        if !due || self.lines.1 >= LOGGED.1 {
            return None;
        }
        self.lines.1 += 1;
        address.logged = Some(now);
        Some((std::mem::take(&mut address.untold), std::mem::take(&mut self.untold)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(number: u32) -> Source {
        Source::of(std::net::Ipv4Addr::from(number).into())
    }

    fn at(millis: u64) -> Time {
        Time::from_nanos(1_000_000_000_000).after(Duration::from_millis(millis))
    }

    #[test]
    fn each_failure_of_an_address_waits_longer_up_to_a_bound_and_time_heals() {
        let failures = Failures::default();
        let waits: Vec<_> = (0..60).map(|_| failures.fail(source(1), at(0))).collect();
        assert_eq!(waits[..5], [0, 0, 0, 100, 200].map(Duration::from_millis));
        assert!(waits.is_sorted() && waits[59] == MOST);
        assert_eq!(failures.fail(source(2), at(0)), Duration::ZERO);
        assert_eq!(failures.fail(source(1), at(60_000)), Duration::ZERO);
    }

    #[test]
    fn the_memory_of_addresses_is_bounded_and_keeps_those_that_go_on() {
        let failures = Failures::default();
        for number in 0..3 * ADDRESSES as u32 {
            failures.fail(source(number + 10), at(number.into()));
            failures.fail(source(1), at(number.into()));
        }
        let state = failures.state.lock().unwrap();
        assert_eq!(state.addresses.len(), ADDRESSES);
        assert!(state.addresses[&source(1)].failures > ADDRESSES as u32);
    }

    #[test]
    fn an_address_is_logged_once_a_second_and_all_of_them_ten_times() {
        let mut state = State::default();
        let mut line = |number: u32, millis: u64| {
            state.addresses.entry(source(number)).or_default();
            state.line(source(number), at(millis))
        };
        assert_eq!(line(1, 0), Some((1, 0)));
        assert_eq!([line(1, 1), line(1, 999)], [None, None]);
        assert_eq!(line(1, 1000), Some((3, 0)));
        let lines = (2..100).filter_map(|number| line(number, 1500)).count();
        assert_eq!(lines, 9);
        assert_eq!(line(50, 2000), Some((2, 0)));
    }
}
