use std::collections::VecDeque;

use crate::ladder::Canonical;
use crate::vocab::{Fault, Name, ThreadPath, Time};

/// A message that nobody could be given.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// When it was given up.
    pub at: Time,
    /// Who sent it.
    pub from: Name,
    /// The thread that it came from or was meant for.
    pub path: ThreadPath,
    /// Its payload, if it got that far.
    pub payload: Option<Canonical>,
    /// Why nobody got it.
    pub reason: Fault,
}

/// The last dead letters; past the limit the oldest goes.
#[derive(Debug, Default)]
pub struct DeadLetters {
    letters: VecDeque<DeadLetter>,
    limit: usize,
    dropped: u64,
}

impl DeadLetters {
    pub(super) fn new(limit: usize) -> Self {
        Self { letters: VecDeque::new(), limit, dropped: 0 }
    }

    pub(super) fn push(&mut self, letter: DeadLetter) {
        self.letters.push_back(letter);
        if self.letters.len() > self.limit {
            self.letters.pop_front();
            self.dropped += 1;
        }
    }

    /// The letters, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &DeadLetter> {
        self.letters.iter()
    }

    /// Letters that the limit pushed out.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
