//! Adaptive spinning: whether a thread that has nothing to do looks for more a while before it sleeps.
//!
//! To sleep and to be woken costs both threads a call of the system, some 10 µs of latency each. A caller that asks one
//! question at a time pays that twice for each. To look costs nothing but the time of a processor, which others may
//! need: so a thread looks only after sleeps that were short, gives way to each thread that is ready, and stops as soon as
//! it has looked in vain.

use std::time::Duration;

/// The longest time for which a thread looks before it sleeps: what a sleep and a wake cost.
pub(crate) const SPIN: Duration = Duration::from_micros(40);

/// The looks between two offers of the processor to other threads: some microseconds.
const LOOKS: u32 = 64;

/// The longest sleep that was short: a wait that would have ended while the thread looked, and what the wake itself took.
const SHORT: Duration = SPIN.saturating_mul(2);

/// The number of short sleeps, one after the other, after which it is worth to spin.
const WORTH: u8 = 4;

/// Looks for something some times; gives way to each thread that is ready if nothing was found.
pub(crate) fn look(mut is_there: impl FnMut() -> bool) -> bool {
    for _ in 0..LOOKS {
        if is_there() {
            return true;
        }
        std::hint::spin_loop();
    }
    std::thread::yield_now();
    false
}

/// The recent sleeps of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spin {
    short: u8,
}

impl Spin {
    /// No sleeps yet.
    pub(crate) const fn new() -> Self {
        Self { short: 0 }
    }

    /// Returns whether recent sleeps were short.
    pub(crate) fn is_worth(self) -> bool {
        self.short >= WORTH
    }

    /// Takes note of a sleep, and of whether the thread had looked before, in vain.
    pub(crate) fn slept(&mut self, time: Duration, looked: bool) {
        self.short = if !looked && time <= SHORT { (self.short + 1).min(WORTH) } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_worth_after_short_sleeps_until_a_look_in_vain() {
        let mut spin = Spin::new();
        (1..WORTH).for_each(|_| spin.slept(SHORT, false));
        assert!(!spin.is_worth());
        spin.slept(SHORT + Duration::from_nanos(1), false);
        (0..WORTH).for_each(|_| spin.slept(Duration::ZERO, false));
        assert!(spin.is_worth());
        spin.slept(Duration::ZERO, true);
        assert!(!spin.is_worth());
    }
}
