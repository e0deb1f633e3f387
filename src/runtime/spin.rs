//! Adaptive spinning: whether a thread that has nothing to do looks for more a while before it sleeps.
//!
//! To sleep and to be woken costs both threads a call of the system, some 10 µs of latency each. A caller that asks one
//! question at a time pays that twice for each. To look costs nothing but the time of a processor, which others may
//! need: so a thread looks only after waits that were short, gives way to each thread that is ready, and stops after the
//! first wait that was long.

use std::time::Duration;

/// The longest time for which a thread looks before it sleeps: what a sleep and a wake cost.
pub(super) const SPIN: Duration = Duration::from_micros(40);

/// The looks between two offers of the processor to other threads: some microseconds.
const LOOKS: u32 = 64;

/// The number of short waits, one after the other, after which it is worth to spin.
const WORTH: u8 = 4;

/// Looks for something some times; gives way to each thread that is ready if nothing was found.
pub(super) fn look(mut is_there: impl FnMut() -> bool) -> bool {
    for _ in 0..LOOKS {
        if is_there() {
            return true;
        }
        std::hint::spin_loop();
    }
    std::thread::yield_now();
    false
}

/// The recent waits of a thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spin {
    short: u8,
}

impl Spin {
    /// No waits yet.
    pub(super) const fn new() -> Self {
        Self { short: 0 }
    }

    /// Tells whether recent waits were short.
    pub(super) fn is_worth(self) -> bool {
        self.short >= WORTH
    }

    /// Takes note of a wait.
    pub(super) fn waited(&mut self, time: Duration) {
        self.short = if time <= SPIN { (self.short + 1).min(WORTH) } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_worth_after_short_waits_until_a_long_one() {
        let mut spin = Spin::new();
        (1..WORTH).for_each(|_| spin.waited(SPIN));
        assert!(!spin.is_worth());
        (0..1000).for_each(|_| spin.waited(Duration::ZERO));
        assert!(spin.is_worth());
        spin.waited(SPIN + Duration::from_nanos(1));
        assert!(!spin.is_worth());
    }
}
