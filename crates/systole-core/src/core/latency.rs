//! Durations in buckets, for the figures of operators.

use std::time::Duration;

/// A histogram of durations: plain data that sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Latency {
    /// The durations up to each bound, and those above the last one.
    buckets: [u64; Self::BOUNDS.len() + 1],
    sum: Duration,
}

impl Latency {
    /// The upper bounds of the buckets, in seconds.
    pub const BOUNDS: [f64; 16] =
        [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 300.0];

    /// Counts a duration.
    pub fn record(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        self.buckets[Self::BOUNDS.partition_point(|bound| *bound < seconds)] += 1;
        self.sum = self.sum.saturating_add(took);
    }

    /// The sums of both.
    #[must_use]
    pub fn plus(mut self, other: Self) -> Self {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(count, more)| *count += more);
        self.sum = self.sum.saturating_add(other.sum);
        self
    }

    /// The mean; zero of nothing.
    pub fn mean(&self) -> Duration {
        self.sum() / u32::try_from(self.count().max(1)).unwrap_or(u32::MAX)
    }

    /// The sum of all durations.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The durations in each bucket, not those of smaller ones: the bound, infinite for the last one, and the number.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        Self::BOUNDS.into_iter().chain([f64::INFINITY]).zip(self.buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_first_bucket_whose_bound_it_does_not_pass() {
        let mut latency = Latency::default();
        for millis in [1, 2, 300_000, 300_001] {
            latency.record(Duration::from_millis(millis));
        }
        let filled: Vec<_> = latency.buckets().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(0.001, 1), (0.0025, 1), (300.0, 1), (f64::INFINITY, 1)]);
        let twice = latency.plus(latency);
        assert_eq!((twice.count(), twice.sum()), (8, 2 * latency.sum()));
    }
}
