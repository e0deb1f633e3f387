//! The slots of listeners: how many of their handlers may run at once, and who waits for one.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use super::io::ShardId;
use super::key::{KeyHasher, ThreadKey};

/// A thread somewhere in the organism.
pub(super) type Waiter = (ShardId, ThreadKey);

/// The slots of one listener, kept in its home shard.
#[derive(Debug)]
pub(super) struct Slots {
    free: u32,
    /// Resumed handlers: before messages that have not started.
    resumes: Line,
    starts: Line,
    /// Who still waits, and at which place; the other places in the two lines are given up.
    waiting: HashMap<Waiter, u64, BuildHasherDefault<KeyHasher>>,
    places: u64,
}

type Line = VecDeque<(Waiter, u64)>;

impl Slots {
    pub(super) fn new(concurrency: u32) -> Self {
        Self { free: concurrency, resumes: Line::new(), starts: Line::new(), waiting: HashMap::default(), places: 0 }
    }

    /// Takes a free slot, or stands in line.
    pub(super) fn take(&mut self, waiter: Waiter, resume: bool) -> bool {
        if self.free > 0 {
            self.free -= 1;
            return true;
        }
        self.places += 1;
        self.waiting.insert(waiter, self.places);
        let line = if resume { &mut self.resumes } else { &mut self.starts };
        line.push_back((waiter, self.places));
        self.tidy();
        false
    }

    /// Takes a slot back; whoever is first in line gets it.
    pub(super) fn give_back(&mut self) -> Option<Waiter> {
        while let Some((waiter, place)) = self.resumes.pop_front().or_else(|| self.starts.pop_front()) {
            if self.waiting.get(&waiter) == Some(&place) {
                self.waiting.remove(&waiter);
                return Some(waiter);
            }
        }
        self.free += 1;
        None
    }

    /// Takes somebody out of the line.
    pub(super) fn decline(&mut self, waiter: Waiter) {
        self.waiting.remove(&waiter);
        self.tidy();
    }

    /// Places that were given up don't pile up.
    fn tidy(&mut self) {
        if self.resumes.len() + self.starts.len() > 2 * self.waiting.len() + 64 {
            let waiting = &self.waiting;
            let holds = |(waiter, place): &(Waiter, u64)| waiting.get(waiter) == Some(place);
            self.resumes.retain(holds);
            self.starts.retain(holds);
        }
    }
}

#[cfg(test)]
mod tests {
    use slotmap::KeyData;

    use super::*;

    fn waiter(n: u64) -> Waiter {
        (ShardId(0), ThreadKey::from(KeyData::from_ffi(1 << 32 | n)))
    }

    #[test]
    fn resumes_go_first_and_closed_threads_are_skipped() {
        let mut slots = Slots::new(1);
        assert!(slots.take(waiter(1), false));
        for n in 2..5 {
            assert!(!slots.take(waiter(n), false));
        }
        assert!(!slots.take(waiter(5), true));
        slots.decline(waiter(2));
        assert_eq!(slots.give_back(), Some(waiter(5)));
        assert_eq!(slots.give_back(), Some(waiter(3)));
        assert_eq!(slots.give_back(), Some(waiter(4)));
        assert_eq!(slots.give_back(), None);
        assert!(slots.take(waiter(6), false));
    }

    #[test]
    fn who_leaves_the_line_and_comes_back_stands_at_its_end() {
        let mut slots = Slots::new(0);
        for n in 1..4 {
            slots.take(waiter(n), false);
        }
        slots.decline(waiter(1));
        slots.take(waiter(1), false);
        assert_eq!([slots.give_back(), slots.give_back()], [Some(waiter(2)), Some(waiter(3))]);
        assert_eq!([slots.give_back(), slots.give_back()], [Some(waiter(1)), None]);
    }

    #[test]
    fn a_line_of_closed_threads_does_not_grow() {
        let mut slots = Slots::new(0);
        for n in 0..10_000 {
            slots.take(waiter(n), false);
            slots.decline(waiter(n));
        }
        assert!(slots.starts.len() < 100);
    }
}
