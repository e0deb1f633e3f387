//! Rate limit of requests without a token: each address has so many a second, further ones wait for their turn, and
//! past a bound they are refused. Requests of monitoring have turns of their own, so that other requests of the same
//! address, as of a proxy, delay none of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use systole_core::vocab::Time;

use crate::accept::Source;

/// Requests of an address per second.
pub(super) const RATE: u32 = 100;

/// Interval between two turns.
const TURN: Duration = Duration::from_millis(1000 / RATE as u64);

/// Requests that may come at once, as the time of their turns.
const BURST: Duration = Duration::from_secs(1);

/// The longest wait for a turn: a request that would wait longer is refused.
const LONGEST: Duration = Duration::from_millis(250);

/// Delay of a refusal: a client that repeats refused requests is no faster than one that repeats answered ones.
const REFUSED: Duration = Duration::from_secs(1);

/// Addresses that are remembered; past it the address whose next turn comes first is forgotten.
const ADDRESSES: usize = 4096;

/// Group of requests that share their turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RequestGroup {
    /// Health and figures.
    Monitoring,
    /// All other requests.
    Other,
}

/// The turns of all addresses.
#[derive(Debug, Default)]
pub(super) struct UnauthenticatedTurns {
    /// End of the last turn that was given.
    turns: Mutex<HashMap<(Source, RequestGroup), Time>>,
    refused: AtomicU64,
}

/// Decision on a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The request goes on after this time.
    After(Duration),
    /// The request is refused after this time.
    Refused(Duration),
}

impl UnauthenticatedTurns {
    /// The turn of a request of that address.
    pub(super) fn turn(&self, source: Source, group: RequestGroup, now: Time) -> Turn {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= ADDRESSES && !turns.contains_key(&(source, group)) {
            turns.retain(|_, end| *end > now);
            if turns.len() >= ADDRESSES
                && let Some(first) = turns.iter().min_by_key(|(_, end)| **end).map(|(key, _)| *key)
            {
                turns.remove(&first);
            }
        }
        let end = turns.entry((source, group)).or_insert(now);
        let next = (*end).max(now).after(TURN);
        let wait = next.since(now).saturating_sub(BURST);
        if wait > LONGEST {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Turn::Refused(REFUSED);
        }
        *end = next;
        Turn::After(wait)
    }

    /// The number of refused requests.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
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
    fn an_address_has_a_burst_then_turns_and_then_refusals_and_others_are_not_delayed() {
        let addresses = UnauthenticatedTurns::default();
        let turns: Vec<_> = (0..200).map(|_| addresses.turn(source(1), RequestGroup::Other, at(0))).collect();
        let after = |millis| Turn::After(Duration::from_millis(millis));
        assert!(turns[..100].iter().all(|turn| *turn == after(0)), "{turns:?}");
        assert_eq!(turns[100..103], [after(10), after(20), after(30)]);
        assert_eq!(turns[124..126], [after(250), Turn::Refused(REFUSED)]);
        assert_eq!(addresses.turn(source(1), RequestGroup::Monitoring, at(0)), after(0));
        assert_eq!(addresses.turn(source(2), RequestGroup::Other, at(0)), after(0));
        // A refusal takes no turn: the next one is free as time passes.
        assert_eq!(addresses.turn(source(1), RequestGroup::Other, at(10)), after(250));
        assert_eq!(addresses.turn(source(1), RequestGroup::Other, at(2000)), after(0));
        assert_eq!(addresses.refused(), 75);
    }

    #[test]
    fn the_memory_of_addresses_is_bounded_and_keeps_those_that_wait() {
        let addresses = UnauthenticatedTurns::default();
        let turn = |number| addresses.turn(source(number), RequestGroup::Other, at(0));
        for number in [1; 200].into_iter().chain(2..3 * ADDRESSES as u32) {
            turn(number);
        }
        assert_eq!(addresses.turns.lock().unwrap().len(), ADDRESSES);
        assert_eq!(turn(1), Turn::Refused(REFUSED));
    }
}
