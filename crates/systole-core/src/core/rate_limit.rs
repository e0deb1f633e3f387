//! The rate limit of each client in the reserve for questions to the core, which is used during overload.

use std::time::Duration;

use super::blueprint::ClientId;
use crate::vocab::Time;

/// A token bucket for each client.
#[derive(Debug, Default)]
pub(super) struct RateLimit {
    buckets: Vec<Option<Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: u32,
    /// The time up to which tokens were filled in.
    filled: Time,
}

/// Messages that a client may send through the reserve at once.
const BURST: u32 = 16;
/// The time until it may send one more.
const REFILL: Duration = Duration::from_millis(100);

impl RateLimit {
    /// Takes a token of the client; `false` if it has none left.
    pub(super) fn take(&mut self, client: ClientId, now: Time) -> bool {
        let index = client.0 as usize;
        if self.buckets.len() <= index {
            self.buckets.resize(index + 1, None);
        }
        let bucket = self.buckets[index].get_or_insert(Bucket { tokens: BURST, filled: now });
        let earned = now.since(bucket.filled).as_nanos() / REFILL.as_nanos();
        match u32::try_from(earned) {
            Ok(earned) if earned < BURST => {
                bucket.tokens = (bucket.tokens + earned).min(BURST);
                bucket.filled = bucket.filled.after(REFILL * earned);
            }
            _ => *bucket = Bucket { tokens: BURST, filled: now },
        }
        match bucket.tokens.checked_sub(1) {
            Some(left) => {
                bucket.tokens = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    fn burst(limit: &mut RateLimit, client: ClientId, now: Time) -> usize {
        std::iter::from_fn(|| limit.take(client, now).then_some(())).take(1000).count()
    }

    #[test]
    fn each_client_has_a_burst_and_gets_more_with_time() {
        let mut limit = RateLimit::default();
        assert_eq!(burst(&mut limit, ClientId(3), at(1000)), 16);
        assert_eq!(burst(&mut limit, ClientId(0), at(1000)), 16);
        assert_eq!(burst(&mut limit, ClientId(3), at(1099)), 0);
        assert_eq!(burst(&mut limit, ClientId(3), at(1250)), 2);
        assert_eq!(burst(&mut limit, ClientId(3), at(1300)), 1, "the half that was earned is not lost");
        assert_eq!(burst(&mut limit, ClientId(3), at(60_000)), 16);
    }
}
