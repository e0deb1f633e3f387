//! Latencies and their percentiles.

use std::time::Duration;

/// The latencies of single operations, in nanoseconds.
#[derive(Debug, Default)]
pub struct Latencies(Vec<u64>);

impl Latencies {
    /// Adds a latency.
    pub fn add(&mut self, took: Duration) {
        self.0.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds all latencies of another collection.
    pub fn append(&mut self, mut more: Self) {
        self.0.append(&mut more.0);
    }

    /// The percentile for `share` by the nearest-rank method, in microseconds; `None` without latencies.
    pub(super) fn percentile(&mut self, share: f64) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        let rank = ((self.0.len() as f64 * share).ceil() as usize).clamp(1, last + 1) - 1;
        let (_, &mut nanos, _) = self.0.select_nth_unstable(rank);
        Some(nanos as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(0.5), None);
        (1..=100).rev().for_each(|micros| latencies.add(Duration::from_micros(micros)));
        let at = |latencies: &mut Latencies, share| latencies.percentile(share);
        assert_eq!(at(&mut latencies, 0.5), Some(50.0));
        assert_eq!(at(&mut latencies, 0.99), Some(99.0));
        assert_eq!(at(&mut latencies, 0.0), Some(1.0));
        assert_eq!(at(&mut latencies, 1.0), Some(100.0));
    }
}
