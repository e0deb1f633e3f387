//! Decisions on retries: which failures are retried, when, and when a delivery is given up. No clock, randomness or
//! I/O.
//!
//! Only transport failures are retried. A status of HTTP is an answer, and an answer is final, with one exception, off
//! by default: 429 and 503 with `Retry-After` (RFC 9110, section 10.2.3).

use std::time::Duration;

use systole_core::vocab::Time;

use super::cause::Cause;
use super::failure::AttemptFailure;

/// Policy of retries: attempts, waits and time limits.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Policy {
    /// Attempts, the first one included; at least 1.
    pub attempts: u32,
    /// Wait after the first failed attempt; doubled after each further one.
    pub base: Duration,
    /// The longest wait, before jitter.
    pub cap: Duration,
    /// Part of a wait by which it is lengthened or shortened at random: 0.25 is up to a quarter.
    pub jitter: f64,
    /// Limit on all attempts and the waits between them together. It also ends the attempt in flight.
    pub budget: Duration,
    /// Limit on connecting: looking up the name, TCP and TLS.
    pub connect: Duration,
    /// Limit without a byte from the peer, once it has the request.
    pub read: Duration,
    /// Limit without the connection taking a part of the body.
    pub write: Duration,
    /// Turns on retries of a 429 or 503 with `Retry-After`.
    pub retry_after: bool,
}

systole_core::vocab::setters!(Policy {
    attempts: u32,
    base: Duration,
    cap: Duration,
    jitter: f64,
    budget: Duration,
    connect: Duration,
    read: Duration,
    write: Duration,
    retry_after: bool,
});

impl Default for Policy {
    /// 5 attempts; waits of 1, 2, 4 and 8 s, at most 16 s, each give or take a quarter; 600 s in all; 30 s to connect,
    /// 300 s to read, 30 s to write; `Retry-After` is not followed.
    fn default() -> Self {
        Self {
            attempts: 5,
            base: Duration::from_secs(1),
            cap: Duration::from_secs(16),
            jitter: 0.25,
            budget: Duration::from_secs(600),
            connect: Duration::from_secs(30),
            read: Duration::from_secs(300),
            write: Duration::from_secs(30),
            retry_after: false,
        }
    }
}

/// Progress of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// Attempts that were begun.
    pub attempts: u32,
    /// Begin of its budget.
    pub since: Time,
}

/// Result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The peer accepted.
    Accepted,
    /// The peer refused.
    Refused {
        /// The status of HTTP.
        status: u16,
        /// The wait that the peer asks for.
        retry_after: Option<Duration>,
    },
    /// No answer, or no usable one.
    Failed(AttemptFailure),
    /// The budget ended during the attempt.
    OutOfTime,
}

/// Decision after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// Retry after this time.
    Wait(Duration),
    /// The delivery has ended well.
    Done,
    /// The delivery is given up.
    GiveUp(Cause),
}

impl Policy {
    /// Wait after the failed attempt number `failed`, counted from 0: `base` x 2^`failed`, at most `cap`, give or take
    /// `jitter`. `random` is from 0 (the shortest) to 1 (the longest).
    pub fn backoff(&self, failed: u32, random: f64) -> Duration {
        let factor = 2_u32.checked_pow(failed).unwrap_or(u32::MAX);
        let wait = self.base.saturating_mul(factor).min(self.cap);
        let part = self.jitter.clamp(0.0, 1.0) * (2.0 * random.clamp(0.0, 1.0) - 1.0);
        Duration::try_from_secs_f64(wait.as_secs_f64() * (1.0 + part)).unwrap_or(Duration::MAX)
    }

    /// The rest of the budget.
    pub fn left(&self, tried: Tried, now: Time) -> Duration {
        self.budget.saturating_sub(now.since(tried.since))
    }

    /// Checks whether another attempt may begin.
    ///
    /// # Errors
    /// The cause with which the delivery ends.
    pub fn may_try(&self, tried: Tried, now: Time) -> Result<(), Cause> {
        if tried.attempts >= self.attempts.max(1) {
            Err(Cause::AttemptsExhausted)
        } else if self.left(tried, now).is_zero() {
            Err(Cause::TotalBudgetExhausted)
        } else {
            Ok(())
        }
    }

    /// Decides what follows attempt number `tried.attempts`. A wait always ends before the budget does: a longer one is
    /// not begun.
    pub fn decide(&self, tried: Tried, ended: &Ended, now: Time, random: f64) -> Decision {
        let backoff = self.backoff(tried.attempts.saturating_sub(1), random);
        match ended {
            Ended::Accepted => Decision::Done,
            Ended::OutOfTime => Decision::GiveUp(Cause::TotalBudgetExhausted),
            Ended::Refused { status: 429 | 503, retry_after: Some(after) } if self.retry_after => {
                self.again(tried, now, backoff.max(*after))
            }
            Ended::Refused { .. } => Decision::GiveUp(Cause::Rejected),
            Ended::Failed(failure) => match failure.ends_with() {
                Some(cause) => Decision::GiveUp(cause),
                None => self.again(tried, now, backoff),
            },
        }
    }

    fn again(&self, tried: Tried, now: Time, wait: Duration) -> Decision {
        match self.may_try(tried, now.after(wait)) {
            Ok(()) => Decision::Wait(wait),
            Err(cause) => Decision::GiveUp(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::failure::FailureKind;
    use super::*;

    fn failed(kind: FailureKind) -> Ended {
        Ended::Failed(AttemptFailure::new(kind, "x"))
    }

    fn tried(attempts: u32) -> Tried {
        Tried { attempts, since: Time::from_nanos(1) }
    }

    const START: Time = Time::from_nanos(1);

    #[test]
    fn the_waits_of_the_default_are_1_2_4_8_16_16() {
        let policy = Policy::default();
        let waits: Vec<_> = (0..6).map(|failed| policy.backoff(failed, 0.5).as_millis()).collect();
        assert_eq!(waits, [1000, 2000, 4000, 8000, 16_000, 16_000]);
        assert_eq!(policy.backoff(2, 0.0), Duration::from_secs(3));
        assert_eq!(policy.backoff(2, 1.0), Duration::from_secs(5));
        assert_eq!(policy.backoff(u32::MAX, 1.0), Duration::from_secs(20));
    }

    #[test]
    fn only_transport_failures_are_tried_again() {
        let policy = Policy { retry_after: true, ..Policy::default() };
        for kind in FailureKind::ALL {
            let decision = policy.decide(tried(1), &failed(kind), START, 0.5);
            assert_eq!(
                decision == Decision::Wait(Duration::from_secs(1)),
                kind.is_transport(),
                "{kind:?}: {decision:?}"
            );
        }
        for status in (300..600).filter(|status| ![429, 503].contains(status)) {
            let refused = Ended::Refused { status, retry_after: Some(Duration::ZERO) };
            assert_eq!(policy.decide(tried(1), &refused, START, 0.5), Decision::GiveUp(Cause::Rejected), "{status}");
        }
    }

    #[test]
    fn retry_after_is_followed_where_that_is_asked_for() {
        let deaf = Policy::default();
        let policy = Policy { retry_after: true, ..deaf.clone() };
        for status in [429, 503] {
            let refused = |seconds| Ended::Refused { status, retry_after: Some(Duration::from_secs(seconds)) };
            let decide = |policy: &Policy, ended| policy.decide(tried(1), &ended, START, 0.5);
            assert_eq!(decide(&policy, refused(90)), Decision::Wait(Duration::from_secs(90)));
            assert_eq!(decide(&policy, refused(0)), Decision::Wait(Duration::from_secs(1)), "never at once");
            assert_eq!(decide(&policy, refused(3600)), Decision::GiveUp(Cause::TotalBudgetExhausted));
            assert_eq!(decide(&deaf, refused(90)), Decision::GiveUp(Cause::Rejected));
            let silent = Ended::Refused { status, retry_after: None };
            assert_eq!(decide(&policy, silent), Decision::GiveUp(Cause::Rejected));
        }
    }

    prop_compose! {
        fn policies()(attempts in 0..8_u32, base in 0..5_000_u64, cap in 0..20_000_u64, jitter in -1.0..2.0_f64,
            budget in 0..100_000_u64, retry_after: bool) -> Policy {
            Policy {
                attempts,
                base: Duration::from_millis(base),
                cap: Duration::from_millis(cap),
                jitter,
                budget: Duration::from_millis(budget),
                retry_after,
                ..Policy::default()
            }
        }
    }

    fn outcomes() -> impl Strategy<Value = Ended> {
        prop_oneof![
            Just(Ended::Accepted),
            Just(Ended::OutOfTime),
            (300..600_u16, proptest::option::of(0..200_u64))
                .prop_map(|(status, after)| Ended::Refused { status, retry_after: after.map(Duration::from_secs) }),
            proptest::sample::select(&FailureKind::ALL[..]).prop_map(failed),
        ]
    }

    proptest! {
        #[test]
        fn a_wait_stays_within_its_jitter(policy in policies(), failed: u32, random in -1.0..2.0_f64) {
            let wait = policy.backoff(failed, random);
            let middle = policy.base.saturating_mul(2_u32.saturating_pow(failed)).min(policy.cap).as_secs_f64();
            let part = policy.jitter.clamp(0.0, 1.0);
            prop_assert!(wait.as_secs_f64() >= middle * (1.0 - part) - 1e-6);
            prop_assert!(wait.as_secs_f64() <= middle * (1.0 + part) + 1e-6);
            prop_assert!(wait <= policy.backoff(u32::MAX, 1.0));
        }

        /// Checks that there are at most so many attempts, all within the budget, and that the delivery ends.
        #[test]
        fn a_delivery_ends_within_its_attempts_and_its_budget(
            policy in policies(), ends in proptest::collection::vec((outcomes(), 0..30_000_u64), 10), random in 0.0..1.0_f64
        ) {
            let mut tried = tried(0);
            let mut now = START;
            let mut ends = ends.iter();
            let end = loop {
                if let Err(cause) = policy.may_try(tried, now) {
                    break Decision::GiveUp(cause);
                }
                tried.attempts += 1;
                let (outcome, took) = ends.next().expect("10 is more than any policy allows");
                let left = policy.left(tried, now);
                let took = Duration::from_millis(*took);
                // The end of the budget cuts off an attempt in flight.
                let outcome = if took >= left { &Ended::OutOfTime } else { outcome };
                now = now.after(took.min(left));
                match policy.decide(tried, outcome, now, random) {
                    Decision::Wait(wait) => {
                        prop_assert!(wait < policy.left(tried, now));
                        now = now.after(wait);
                    }
                    end => break end,
                }
            };
            prop_assert!(tried.attempts <= policy.attempts.max(1));
            prop_assert!(now.since(START) <= policy.budget);
            prop_assert!(!matches!(end, Decision::Wait(_)));
            if end == Decision::GiveUp(Cause::AttemptsExhausted) {
                prop_assert_eq!(tried.attempts, policy.attempts.max(1));
            }
        }
    }
}
