//! The text of an answer while it grows: for operators, and as the sign that its provider has not stalled.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use systole_core::core::{ModelFailure, Usage};
use systole_core::vocab::Time;
use tokio::sync::Notify;

use crate::runtime::Thread;
use systole_store::clock::Clock;

/// Time between two events of one answer, and before the first.
const PAUSE: Duration = Duration::from_millis(500);
/// Bytes of the end of a text in an event, at most.
const SHOWN: usize = 400;

/// The growth of an answer, as its provider reports it. The text is the [draft](crate::drafts) of the listener's message, and
/// operators see its end in an event every half second. It is no part of the answer, and in no journal. The router drops an
/// attempt that doesn't grow.
#[derive(Clone)]
pub struct Growth {
    shown: Option<Rc<State>>,
    pulse: Rc<Pulse>,
}

struct State {
    thread: Thread,
    clock: Clock,
    /// Time of the next event.
    due: Cell<Time>,
    /// True if the text is the draft of a message.
    is_draft: bool,
}

/// The signs of life of one attempt.
#[derive(Default)]
pub(super) struct Pulse {
    beat: Notify,
    /// Bytes of the text so far.
    text: Cell<usize>,
    usage: Cell<Usage>,
}

impl Growth {
    /// Growth that nothing shows.
    pub fn hidden() -> Self {
        Self { shown: None, pulse: Rc::default() }
    }

    /// Growth of an answer to a handler on this thread: of the draft of its message, or of a text that is none.
    pub(super) fn of(thread: &Thread, clock: &Clock, is_draft: bool) -> Self {
        let due = Cell::new(clock.now().after(PAUSE));
        let shown = Rc::new(State { thread: thread.clone(), clock: clock.clone(), due, is_draft });
        Self { shown: Some(shown), pulse: Rc::default() }
    }

    /// The growth of another attempt at the same answer.
    pub(super) fn anew(&self) -> Self {
        Self { shown: self.shown.clone(), pulse: Rc::default() }
    }

    pub(super) fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// Returns the time of the organism; none outside of one.
    pub(super) fn now(&self) -> Option<Time> {
        self.shown.as_ref().map(|state| state.clock.now())
    }

    /// Reports that the model goes on without more text, such as with its thoughts. Comments and pings of a stream are no
    /// such sign.
    pub fn thinks(&self) {
        self.pulse.beat.notify_one();
    }

    /// Reports the tokens that the provider has counted so far: what is charged if the answer breaks off.
    pub fn counts(&self, usage: Usage) {
        self.pulse.usage.set(usage);
    }

    /// Reports that the attempt failed.
    pub(super) fn fail(&self, attempt: ModelFailure) {
        let Some(State { thread, is_draft, .. }) = self.shown.as_deref() else { return };
        if *is_draft {
            thread.redraft();
        }
        thread.unanswered(attempt);
    }

    /// Shows the text so far: that of the call before, and more. Operators see it, unless an event was made a moment before.
    pub fn show(&self, text: &str) {
        let before = self.pulse.text.replace(text.len());
        if before != text.len() {
            self.thinks();
        }
        let Some(State { thread, clock, due, is_draft }) = self.shown.as_deref() else { return };
        match text.get(before..) {
            _ if !is_draft => {}
            Some(more) => thread.draft(more),
            // The provider has begun anew.
            None => {
                thread.redraft();
                thread.draft(text);
            }
        }
        let now = clock.now();
        if now >= due.get() && !text.is_empty() {
            due.set(now.after(PAUSE));
            thread.grown(end(text).into());
        }
    }
}

impl Pulse {
    /// Waits for the next sign of life.
    pub(super) async fn beat(&self) {
        self.beat.notified().await;
    }

    /// The tokens that the provider has counted so far.
    pub(super) fn usage(&self) -> Usage {
        self.usage.get()
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
