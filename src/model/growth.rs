//! The text of an answer while it grows, for operators.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use systole_core::vocab::Time;

use crate::runtime::Thread;
use crate::runtime::clock::Clock;

/// Time between two events of one answer, and before the first.
const PAUSE: Duration = Duration::from_millis(500);
/// Bytes of the end of a text in an event, at most.
const SHOWN: usize = 400;

/// Shows operators the text of an answer while it grows: every half second an event, with the end of the text. It is no part of
/// the answer, and in no journal.
#[derive(Clone)]
pub struct Growth(Option<Rc<State>>);

struct State {
    thread: Thread,
    clock: Clock,
    /// Time of the next event.
    due: Cell<Time>,
}

impl Growth {
    /// Growth that nothing shows.
    pub const fn hidden() -> Self {
        Self(None)
    }

    /// Growth of an answer to a handler on this thread.
    pub(super) fn of(thread: &Thread, clock: &Clock) -> Self {
        let due = Cell::new(clock.now().after(PAUSE));
        Self(Some(Rc::new(State { thread: thread.clone(), clock: clock.clone(), due })))
    }

    /// Returns the time of the organism; none outside of one.
    pub(super) fn now(&self) -> Option<Time> {
        self.0.as_ref().map(|state| state.clock.now())
    }

    /// Shows the text so far, unless an event was made a moment before.
    pub fn show(&self, text: &str) {
        let Some(State { thread, clock, due }) = self.0.as_deref() else { return };
        let now = clock.now();
        if now >= due.get() && !text.is_empty() {
            due.set(now.after(PAUSE));
            thread.grown(end(text).into());
        }
    }
}

impl fmt::Debug for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Growth").finish_non_exhaustive()
    }
}

/// The end of a text.
fn end(text: &str) -> &str {
    let least = text.len().saturating_sub(SHOWN);
    let at = (least..=text.len()).find(|&at| text.is_char_boundary(at));
    &text[at.unwrap_or(text.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_is_bounded() {
        assert_eq!(end("short"), "short");
        let long = format!("{}é{}", "a".repeat(9), "b".repeat(SHOWN - 1));
        assert_eq!(end(&long), "b".repeat(SHOWN - 1), "no half of a character");
        assert_eq!(end(&"x".repeat(SHOWN + 5)).len(), SHOWN);
    }
}
