//! Waits after errors in a row, by the policy of all that is sent.

use std::time::Duration;

use super::error::RemoteError;
use crate::outbound::retry::Policy;
use systole_store::entropy::Entropy;

/// Counter of errors in a row.
#[derive(Debug)]
pub(super) struct Backoff {
    policy: Policy,
    failures: u32,
    wait: Duration,
}

impl Backoff {
    pub(super) fn new(policy: Policy) -> Self {
        Self { policy, failures: 0, wait: Duration::ZERO }
    }

    /// Notes a result.
    pub(super) fn note<T>(&mut self, done: Result<T, RemoteError>) -> Result<T, RemoteError> {
        match &done {
            Ok(_) => (self.failures, self.wait) = (0, Duration::ZERO),
            Err(error) => {
                let wait = self.policy.backoff(self.failures, Entropy::Real.fraction());
                self.wait = wait.max(error.retry_after().unwrap_or_default());
                self.failures = self.failures.saturating_add(1);
            }
        }
        done
    }

    /// Wait before the next attempt: `calm` without an error before.
    pub(super) fn wait(&self, calm: Duration) -> Duration {
        if self.failures == 0 { calm } else { self.wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(seconds: u64) -> Result<(), RemoteError> {
        let retry_after = Some(Duration::from_secs(seconds));
        Err(RemoteError::Refused {
            what: "x".into(),
            status: 429,
            code: "rate".into(),
            detail: "x".into(),
            retry_after,
        })
    }

    #[test]
    fn it_waits_longer_each_time_and_as_long_as_it_is_told_until_all_is_well() {
        let mut backoff = Backoff::new(Policy { jitter: 0.0, ..Policy::default() });
        let calm = Duration::from_secs(5);
        assert_eq!(backoff.wait(calm), calm);
        for (told, seconds) in [(0, 1), (0, 2), (60, 60), (0, 8), (0, 16), (0, 16)] {
            assert!(backoff.note(refused(told)).is_err());
            assert_eq!(backoff.wait(calm), Duration::from_secs(seconds));
        }
        assert!(backoff.note(Ok(())).is_ok());
        assert_eq!(backoff.wait(calm), calm);
    }
}
