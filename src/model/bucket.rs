//! A bucket of tokens: a rate as a minute's worth that fills up again. Without a clock.

use std::time::Duration;

use systole_core::vocab::Time;

/// Tokens that may be used, at most those of a minute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    per_minute: f64,
    /// Below 0 where more was used than was reserved.
    level: f64,
    at: Time,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(per_minute: u32, now: Time) -> Self {
        let per_minute = f64::from(per_minute.max(1));
        Self { per_minute, level: per_minute, at: now }
    }

    /// Takes tokens, or returns the time until they are available. More than a bucket holds need a full one.
    pub(super) fn take(&mut self, tokens: u64, now: Time) -> Result<(), Duration> {
        let per_second = self.per_minute / 60.0;
        self.level = (self.level + now.since(self.at).as_secs_f64() * per_second).min(self.per_minute);
        self.at = self.at.max(now);
        let missing = (tokens as f64).min(self.per_minute) - self.level;
        // Below what a clock tells apart.
        if missing > 1e-3 {
            return Err(Duration::from_secs_f64(missing / per_second).max(Duration::from_millis(1)));
        }
        self.level -= tokens as f64;
        Ok(())
    }

    /// Puts the difference between reserved and used tokens right.
    pub(super) fn settle(&mut self, reserved: u64, used: u64) {
        self.level = (self.level + reserved as f64 - used as f64).min(self.per_minute);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_bucket_fills_up_in_a_minute() {
        let mut bucket = Bucket::new(600, at(0));
        assert_eq!(bucket.take(600, at(0)), Ok(()));
        assert_eq!(bucket.take(100, at(0)), Err(Duration::from_secs(10)));
        assert_eq!(bucket.take(100, at(10_000)), Ok(()));
        bucket.settle(100, 40);
        assert_eq!(bucket.take(60, at(10_000)), Ok(()), "it gave back what was not used");
        assert_eq!(bucket.take(600, at(3_600_000)), Ok(()), "it holds no more than a minute's worth");
        assert_eq!(bucket.take(1, at(3_600_000)), Err(Duration::from_millis(100)));
    }

    #[test]
    fn a_request_larger_than_the_bucket_waits_for_a_full_one() {
        let mut bucket = Bucket::new(60, at(0));
        assert_eq!(bucket.take(120, at(0)), Ok(()));
        assert_eq!(bucket.take(1, at(0)), Err(Duration::from_secs(61)), "what it took too much is owed");
    }

    proptest! {
        /// Checks that no window holds more than the rate and one bucket, for any requests.
        #[test]
        fn no_more_is_used_than_the_rate(asks in proptest::collection::vec((1..200_u64, 0..20_000_u64), 1..60)) {
            let (mut bucket, mut now, mut used) = (Bucket::new(100, at(0)), 0, 0);
            for (tokens, pause) in asks {
                now += pause;
                while let Err(wait) = bucket.take(tokens, at(now)) {
                    now += u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap();
                }
                used += tokens;
                let most = 100.0 + now as f64 / 600.0 + 200.0;
                prop_assert!(used as f64 <= most, "{used} in {now} ms");
            }
        }
    }
}
