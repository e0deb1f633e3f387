//! Rate limit of each principal: a token bucket.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use systole_core::vocab::{Name, Time};

/// The buckets of all principals: at most as many as tokens.
pub(in crate::gateway) struct Rate {
    /// Requests per second, and at once.
    requests: u32,
    buckets: Mutex<HashMap<Name, Bucket>>,
    refused: AtomicU64,
}

struct Bucket {
    /// Nanoseconds of refill: a second of it is `requests`.
    tokens: u64,
    filled: Time,
}

const SECOND: u64 = 1_000_000_000;

impl Rate {
    pub(in crate::gateway) fn new(requests: u32) -> Self {
        Self { requests, buckets: Mutex::default(), refused: AtomicU64::new(0) }
    }

    /// Admits one request of a principal, or returns the seconds after which to ask again.
    pub(super) fn pass(&self, principal: &Name, now: Time) -> Result<(), u64> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(principal.clone()).or_insert(Bucket { tokens: SECOND, filled: now });
        let passed = u64::try_from(now.since(bucket.filled).as_nanos()).unwrap_or(u64::MAX);
        bucket.tokens = bucket.tokens.saturating_add(passed).min(SECOND);
        bucket.filled = now;
        let cost = SECOND / u64::from(self.requests);
        let Some(left) = bucket.tokens.checked_sub(cost.max(1)) else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(1);
        };
        bucket.tokens = left;
        Ok(())
    }

    /// The number of refused requests.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn as_many_as_in_a_second_may_come_at_once_and_each_principal_has_its_own() {
        let (rate, ada, bob) = (Rate::new(4), Name::parse("ada").unwrap(), Name::parse("bob").unwrap());
        let start = Time::from_nanos(5 * SECOND);
        for _ in 0..4 {
            rate.pass(&ada, start).unwrap();
        }
        assert_eq!(rate.pass(&ada, start), Err(1));
        rate.pass(&bob, start).unwrap();
        let later = start.after(Duration::from_millis(250));
        rate.pass(&ada, later).unwrap();
        assert_eq!(rate.pass(&ada, later), Err(1));
        assert_eq!(rate.refused(), 2);
    }
}
