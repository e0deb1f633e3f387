//! The bounded history of a thread.

use std::collections::VecDeque;

use crate::core::gauge::{Gauge, Permit};
use crate::core::io::Remembered;
use crate::journal::Number;
use crate::vocab::Limits;

/// The last canonical messages of a thread, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The messages, with the numbers of their records.
    entries: VecDeque<(Number, Remembered, Permit)>,
    bytes: usize,
}

impl History {
    /// Remembers a message. The oldest ones are forgotten past a bound of the thread or the organism.
    pub(super) fn remember(&mut self, (number, message): (Number, Remembered), limits: &Limits, total: &Gauge) {
        let size = message.payload.bytes().len();
        if size > limits.context_bytes {
            return;
        }
        while self.entries.len() >= limits.context_messages || self.bytes + size > limits.context_bytes {
            if !self.forget_oldest() {
                return;
            }
        }
        loop {
            if let Ok(permit) = total.admit(size) {
                self.bytes += size;
                self.entries.push_back((number, message, permit));
                return;
            }
            if !self.forget_oldest() {
                return;
            }
        }
    }

    /// The messages that were remembered before a number.
    pub(super) fn messages(&self, before: Number) -> Vec<Remembered> {
        let earlier = self.entries.iter().take_while(|(number, ..)| *number < before);
        earlier.map(|(_, message, _)| message.clone()).collect()
    }

    /// The number of the oldest message; `Number::MAX` for none.
    pub(super) fn oldest(&self) -> Number {
        self.entries.front().map_or(Number::MAX, |(number, ..)| *number)
    }

    fn forget_oldest(&mut self) -> bool {
        let Some((_, oldest, _)) = self.entries.pop_front() else { return false };
        self.bytes -= oldest.payload.bytes().len();
        true
    }
}
